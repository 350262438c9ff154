"""Entrants: like with like, seeds pooled, and errors that say how to choose."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.records.entrants import find_entrants, pooled
from faithbench.records.rows import add_values
from tests.support.builders import row
from tests.support.stores import store

VALUES = {"aopc": [0.1, 0.2, None]}
MORE = {"aopc": [0.1, 0.2, None, 0.4]}


def complaint(words: list[str], folder: Path, metrics: tuple[str, ...] = ()) -> str:
    with pytest.raises(FaithbenchError) as caught:
        find_entrants(words, "sst2", folder, metrics)
    return str(caught.value)


def test_words_become_entrants_in_their_order(tmp_path: Path) -> None:
    store(tmp_path, "random-11111111", VALUES)
    store(tmp_path, "lime-22222222", {"aopc": [3.0, 2.0, 1.0]}, ids=["e2", "e1", "e0"])
    for words in (["lime", "random"], ["lime,random"]):
        lime, random = find_entrants(words, "sst2", tmp_path)
        assert (lime.label, random.label) == (
            "lime",
            "random",
        ) and lime.conditions == random.conditions
        # Paired by id, whatever the order in the files.
        ids = ["e0", "e1", "e2"]
        assert lime.values("aopc", ids) == [1.0, 2.0, 3.0]
        assert random.values("aopc", ids) == [0.1, 0.2, None]


def test_seeds_are_one_entrant_by_their_mean(tmp_path: Path) -> None:
    store(tmp_path, "random-11111111", {"aopc": [0.5, None, None]}, seeds=(1,))
    store(tmp_path, "random-22222222", {"aopc": [0.0, 0.25, None]}, seeds=(0,))
    store(tmp_path, "lime-33333333", VALUES)
    random, _ = find_entrants(["random", "lime"], "sst2", tmp_path)
    assert random.seeds == (0, 1)
    assert random.values("aopc", ["e0", "e1", "e2"]) == [0.25, 0.25, None]


def test_pooling_counts_every_seed_once() -> None:
    """Seeds 0 to 2 of one record and 3 of another: the mean of four, not of two means."""
    three = add_values(row("e0", values={}), {"aopc": [0.0, 0.0, 0.6], "lodds": [None, None, 1.0]})
    one = add_values(row("e0", values={}), {"aopc": [0.6], "lodds": [None]})
    assert three.values["aopc"] == 0.2
    assert pooled([three, one], "aopc") == 0.3
    assert pooled([three, one], "lodds") == 1.0
    assert pooled([one, one], "lodds") is None


def test_seeds_that_overlap_are_refused(tmp_path: Path) -> None:
    one = store(tmp_path, "random-11111111", VALUES, seeds=(0,))
    three = store(tmp_path, "random-22222222", VALUES, seeds=(0, 1, 2))
    store(tmp_path, "lime-33333333", VALUES)
    assert complaint(["random", "lime"], tmp_path) == (
        "random means several records, which differ in seeds that overlap (0 and 0, 1, 2); "
        f"name one by its file in place of random: {one} or {three}"
    )
    random, _ = find_entrants([str(three), "lime"], "sst2", tmp_path)
    assert (random.label, random.seeds) == ("random", (0, 1, 2))


def test_the_only_comparable_records_are_taken(tmp_path: Path) -> None:
    store(tmp_path, "random-11111111", VALUES)
    store(tmp_path, "random-22222222", MORE)
    store(tmp_path, "lime-33333333", MORE)
    random, lime = find_entrants(["random", "lime"], "sst2", tmp_path)
    assert random.records[0].path.stem == "random-22222222" and lime.conditions.n == 4


def test_incomparable_records_are_refused_and_the_difference_named(tmp_path: Path) -> None:
    store(tmp_path, "random-11111111", VALUES)
    store(tmp_path, "lime-22222222", VALUES, task={"split": "dev"}, protocol={"operator": "pad"})
    assert complaint(["random", "lime"], tmp_path) == (
        "cannot compare random and lime: their records differ in split, operator "
        "(random test, mask; lime dev, pad); run them again with the same options, all in one "
        "`faithbench run`"
    )


def test_the_error_speaks_of_the_nearest_conditions(tmp_path: Path) -> None:
    store(tmp_path, "random-11111111", VALUES, task={"split": "dev"}, model={"dtype": "float16"})
    store(tmp_path, "random-22222222", VALUES)
    store(tmp_path, "lime-33333333", VALUES, task={"source": "hub"})
    assert "differ in data source (random bundled; lime hub)" in complaint(
        ["random", "lime"], tmp_path
    )


def test_several_ways_are_chosen_by_a_file(tmp_path: Path) -> None:
    paths = [
        store(tmp_path, f"{name}-1111111{len(values['aopc'])}", values)
        for name in ("random", "lime")
        for values in (VALUES, MORE)
    ]
    message = complaint(["random", "lime"], tmp_path)
    assert message.startswith(
        "random and lime can be compared in 2 ways, which differ in example ids; name one record "
        f"by its file in place of random: {paths[0]} (3 examples, "
    )
    assert f" or {paths[1]} (4 examples, " in message
    random, lime = find_entrants([str(paths[1]), "lime"], "sst2", tmp_path)
    assert (random.label, lime.label, lime.conditions.n) == ("random", "lime", 4)


def test_settings_that_a_word_leaves_open(tmp_path: Path) -> None:
    one = store(
        tmp_path, "mine-11111111", VALUES, explainer={"name": "lime"}, settings={"steps": 1}
    )
    two = store(
        tmp_path, "mine-22222222", VALUES, explainer={"name": "lime"}, settings={"steps": 2}
    )
    store(tmp_path, "random-33333333", VALUES)
    assert complaint(["lime", "random"], tmp_path) == (
        "lime means several records, which differ in settings ({'steps': 1} and {'steps': 2}); "
        f"name one by its file in place of lime: {one} or {two}"
    )
    lime, _ = find_entrants(["lime:steps=2", "random"], "sst2", tmp_path)
    assert (lime.label, lime.records[0].path) == ("lime:steps=2", two)
    first, second = find_entrants([str(one), str(two)], "sst2", tmp_path)
    assert (first.label, second.label) == ("mine-11111111", "mine-22222222")


def test_metrics_choose_between_records_of_one_seed(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", VALUES)
    store(tmp_path, "lime-22222222", {**VALUES, "lodds": [0.0, 1.0, 2.0]})
    store(tmp_path, "random-33333333", VALUES)
    message = complaint(["lime", "random"], tmp_path)
    assert "lime means several records, which differ in metrics (lodds only in one; or" in message
    lime, _ = find_entrants(["lime", "random"], "sst2", tmp_path, ["lodds"])
    assert lime.records[0].path.stem == "lime-22222222"


def test_two_different_words_are_needed(tmp_path: Path) -> None:
    assert complaint(["lime"], tmp_path) == (
        "compare needs two explainers or more, found lime; name another"
    )
    assert complaint(["lime", "random,lime"], tmp_path) == (
        "'lime' is named twice; name two different explainers"
    )
