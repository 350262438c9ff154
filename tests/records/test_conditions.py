"""Terms of records: what they hold, and in what they differ."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from faithbench.records.conditions import (
    Conditions,
    conditions_of,
    describe_field,
    describe_value,
    differing,
)
from faithbench.records.store import StoredRecord
from tests.support.stores import store


def terms(folder: Path, stem: str = "lime-11111111", **changes: object) -> Conditions:
    from faithbench.records.record import read

    path = store(folder, stem, {"aopc": [0.1, 0.2]}, **changes)
    stored = StoredRecord(path, read(path))
    assert stored.terms == conditions_of(stored.record, stored.rows)
    return stored.terms


def test_explainer_seed_and_order_of_examples_are_no_terms(tmp_path: Path) -> None:
    one = terms(tmp_path, ids=["x", "y"])
    assert one == terms(tmp_path, "gradient-22222222", ids=["y", "x"], seeds=(3,))
    assert one == terms(tmp_path, ids=["x", "y"], model={"name": "another name"})
    assert (one.task, one.source, one.split, one.n) == ("sst2", "bundled", "test", 2)


def test_what_differs_is_named(tmp_path: Path) -> None:
    one = terms(tmp_path, ids=["x", "y"])
    changes: dict[str, dict[str, object]] = {
        "ids": {"ids": ["x", "z"]},
        "split": {"ids": ["x", "y"], "task": {"split": "dev"}},
        "task_version": {"ids": ["x", "y"], "task": {"version": 2}},
        "source": {"ids": ["x", "y"], "task": {"source": "hub"}},
        "data_sha256": {"ids": ["x", "y"], "task": {"data_sha256": "ab" * 32}},
        "weights_sha256": {"ids": ["x", "y"], "model": {"weights_sha256": "cd" * 32}},
        "dtype": {"ids": ["x", "y"], "model": {"dtype": "float16"}},
        "protocol": {"ids": ["x", "y"], "protocol": {"version": 2}},
        "operator": {"ids": ["x", "y"], "protocol": {"operator": "pad"}},
        "erasure_token": {"ids": ["x", "y"], "protocol": {"erasure_token": "<unk>"}},
        "long": {"ids": ["x", "y"], "protocol": {"long": "window"}},
    }
    for field, change in changes.items():
        assert differing([one, terms(tmp_path, **change)]) == [field]
    assert differing([one, one]) == []


def test_values_in_words(tmp_path: Path) -> None:
    one = replace(terms(tmp_path), ids="0123456789", weights_sha256="abcdef01", model="tiny")
    assert describe_value(one, "ids") == "2 examples, 012345"
    assert describe_value(one, "weights_sha256") == "tiny, abcdef"
    assert describe_value(one, "data_sha256") == "000000"
    assert describe_value(one, "split") == "test" and describe_field("split") == "split"
    assert describe_field("ids") == "example ids"
