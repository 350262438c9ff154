"""Conditions of records: what they hold, and in what they differ."""

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
from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from tests.support.stores import store


def conditions(folder: Path, stem: str = "lime-11111111", **changes: object) -> Conditions:
    path = store(folder, stem, {"aopc": [0.1, 0.2]}, **changes)
    stored = StoredRecord(path, read(path))
    assert stored.conditions == conditions_of(stored.record, stored.rows)
    return stored.conditions


def test_explainer_seed_and_order_of_examples_do_not_count(tmp_path: Path) -> None:
    first = conditions(tmp_path, ids=["x", "y"])
    assert first == conditions(tmp_path, "gradient-22222222", ids=["y", "x"], seeds=(3,))
    assert first == conditions(tmp_path, ids=["x", "y"], model={"name": "another name"})
    assert (first.task, first.source, first.split, first.n) == ("sst2", "bundled", "test", 2)


def test_differing_names_the_field(tmp_path: Path) -> None:
    first = conditions(tmp_path, ids=["x", "y"])
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
        assert differing([first, conditions(tmp_path, **change)]) == [field]
    assert differing([first, first]) == []


def test_values_in_words(tmp_path: Path) -> None:
    first = replace(conditions(tmp_path), ids="0123456789", weights_sha256="abcdef01", model="tiny")
    assert describe_value(first, "ids") == "2 examples, 012345"
    assert describe_value(first, "weights_sha256") == "tiny, abcdef"
    assert describe_value(first, "data_sha256") == "000000"
    assert describe_value(first, "split") == "test" and describe_field("split") == "split"
    assert describe_field("ids") == "example ids"
