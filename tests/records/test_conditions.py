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
from faithbench.records.record import dumps, read, write
from faithbench.records.schema import FreshFacts
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
        "model_sha256": {"ids": ["x", "y"], "model": {"weights_sha256": "cd" * 32}},
        "dtype": {"ids": ["x", "y"], "model": {"dtype": "float16"}},
        "protocol": {"ids": ["x", "y"], "protocol": {"version": 2}},
        "operator": {"ids": ["x", "y"], "protocol": {"operator": "pad"}},
        "erasure_token": {"ids": ["x", "y"], "protocol": {"erasure_token": "<unk>"}},
        "long": {"ids": ["x", "y"], "protocol": {"long": "window"}},
    }
    for field, change in changes.items():
        assert differing([first, conditions(tmp_path, **change)]) == [field]
    assert differing([first, first]) == []


FRESH = FreshFacts(
    ratio=0.2,
    form="paper",
    base="base",
    base_sha256="0" * 64,
    recipe={"epochs": 2},
    train=1500,
    train_sha256="1" * 64,
    dev=100,
    dev_sha256="2" * 64,
    macro_f1=(0.75, 0.8),
)


def test_records_of_fresh_classifiers_are_compared_among_themselves(tmp_path: Path) -> None:
    """The ratio, the data and the recipe count; the scores do not."""
    path = store(tmp_path, "lime-11111111", {"fresh_f1_topk": [0.1, 0.2]})
    record, rows = read(path), StoredRecord(path, read(path)).rows
    assert '"fresh"' not in dumps(record), "records of runs stay as they were"

    def with_facts(**changes: object) -> Conditions:
        fresh = record.model_copy(update={"fresh": FRESH.model_copy(update=changes)})
        write(fresh, path)
        assert read(path) == fresh
        return conditions_of(fresh, rows)

    first = with_facts()
    assert first.fresh.startswith("0.2 (paper), 1500 texts ")
    assert first == with_facts(macro_f1=(0.1, 0.2))
    for change in ({"ratio": 0.1}, {"form": "released"}, {"dev": 99}, {"recipe": {"epochs": 3}}):
        assert differing([first, with_facts(**change)]) == ["fresh"]
    assert differing([first, conditions_of(record, rows)]) == ["fresh"]
    assert describe_field("fresh") == "ratio or training of the fresh classifiers"


def test_values_in_words(tmp_path: Path) -> None:
    first = replace(conditions(tmp_path), ids="0123456789", model_sha256="abcdef01", model="tiny")
    assert describe_value(first, "ids") == "2 examples, 012345"
    assert describe_value(first, "model_sha256") == "tiny, abcdef"
    assert describe_value(first, "data_sha256") == "000000"
    assert describe_value(first, "split") == "test" and describe_field("split") == "split"
    assert describe_field("ids") == "example ids"
