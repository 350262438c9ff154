"""Texts side by side: which are drawn, what of their words is shown, and differences by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.core.types import Example, quiet
from faithbench.data.dataset import Dataset
from faithbench.metrics.word_scores import words_of
from faithbench.models.encoding import encode
from faithbench.studies.reproduction.maps import _chosen, _marked, _shown, map_texts
from faithbench.studies.reproduction.measures.networks import Networks
from faithbench.studies.reproduction.recipe import Maps
from tests.studies.reproduction import HEAD, MODEL, clock_of, recipe_of, request_of
from tests.support.builders import make_task
from tests.support.training import dataset, save_base

MAPS = """\
[[items]]
id = "figure-1"
title = "Texts"
kind = "maps"
maps = {{ models = [{models}], explainers = [{explainers}]{more} }}
"""


def maps_of(**changes: Any) -> Maps:
    return Maps.model_validate({"models": ["net"], "explainers": ["attention"]} | changes)


# Which texts


def texts(*lengths: int, marked: bool = False) -> Dataset:
    """Return texts of these numbers of characters, of the labels 0 and 1 in turn."""
    rationale = ((0, 1),) if marked else None
    examples = [
        Example(f"e{n}", "x" * length, n % 2, rationale=rationale)
        for n, length in enumerate(lengths)
    ]
    return dataset(make_task(hub=None), examples, "test")


def test_texts_are_short_but_not_the_shortest_and_of_each_class_in_turn() -> None:
    """Of eight, those of the second quarter, as long as there are twice as many as are shown."""
    data = texts(8, 7, 6, 5, 4, 3, 2, 1)
    assert [e.id for e in _chosen(data, maps_of(texts=1))] == ["e4"]
    assert [e.id for e in _chosen(data, maps_of(texts=2))] == ["e4", "e5"]
    assert [e.id for e in _chosen(data, maps_of(texts=3))] == ["e4", "e5", "e2"]


def test_a_class_that_runs_out_is_made_up_for_by_others() -> None:
    data = texts(1, 2, 3, 4, 5, 6, 7, 8)
    ones = replace(data, examples=tuple(replace(e, label=1) for e in data.examples))
    assert len(_chosen(ones, maps_of(texts=3))) == 3
    assert len(_chosen(replace(data, examples=data.examples[:2]), maps_of(texts=3))) == 2
    assert _chosen(replace(data, examples=()), maps_of()) == []


def test_only_marked_texts_are_shown_if_asked() -> None:
    data, marked = texts(1, 2, 3, 4), texts(5, 6, 7, 8, marked=True)
    mixed = replace(data, examples=(*data.examples, *marked.examples))
    found = _chosen(mixed, maps_of(marked=True))
    assert len(found) == 2 and all(len(example.text) > 4 for example in found)


# Which weights


def test_weights_are_shares_of_the_strongest() -> None:
    scores = np.array([0.5, -2.0, 1.0, 0.0])
    assert _shown(scores, maps_of()).tolist() == [0.25, -1.0, 0.5, 0.0]
    assert _shown(np.zeros(3), maps_of()).tolist() == [0.0, 0.0, 0.0]


def test_only_the_top_words_have_weights() -> None:
    """The highest, not the largest by size, by how they stand to the highest; of equals the first.

    What speaks against the class counts as 0.
    """
    scores = np.array([0.5, -2.0, 1.0, 0.5])
    assert _shown(scores, maps_of(top=2)).tolist() == [0.5, 0.0, 1.0, 0.0]
    assert _shown(scores, maps_of(top=9)).tolist() == [0.5, 0.0, 1.0, 0.5]
    assert _shown(-np.ones(3), maps_of(top=2)).tolist() == [0.0, 0.0, 0.0]


def test_the_best_stretch_is_one() -> None:
    """A fifth of ten words is two; the best neighbours have 4 + 3."""
    scores = np.array([5.0, 0.0, 0.0, 4.0, 3.0, 0.0, 0.0, 0.0, 0.0, 6.0])
    assert _shown(scores, maps_of(contiguous=0.2)).tolist() == [0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    assert _shown(scores[:3], maps_of(contiguous=0.2)).tolist() == [1, 0, 0]


def test_words_are_marked_where_people_marked_them(tiny_model: Any) -> None:
    example = Example("a", "the film is good", 0, rationale=((4, 8), (14, 15)))
    words = words_of(encode(tiny_model(), example), np.ones(4))
    assert words.strings == ("the", "film", "is", "good")
    assert _marked(example, words) == (False, True, False, True)
    assert _marked(replace(example, rationale=None), words) == (False,) * 4


def test_marks_are_of_the_first_text_alone(tiny_model: Any) -> None:
    example = Example("a", "good film", 0, "dull plot", rationale=((0, 4),))
    words = words_of(encode(tiny_model(), example, "both"), np.ones(4))
    assert words.strings == ("good", "film", "dull", "plot")
    assert _marked(example, words) == (True, False, False, False)


# Texts with explainers and models


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("models")
    return {name: save_base(place, name) for name in ("bert", "electra", "cnn")}


def networks_of(place: Path, models: dict[str, Path], *names: str, **asked: str) -> Networks:
    """Return the networks of a recipe with one model per name, and its maps as asked."""
    text = HEAD + "".join(
        MODEL.replace("models.net", f"models.{name}").replace("bundled:sst2", str(models[name]))
        + "texts = 12\n"
        for name in names
    )
    keys = ", ".join(f'"{name}"' for name in names)
    text += MAPS.format(**{"models": keys, "explainers": '"attention"', "more": ""} | asked)
    request = request_of(recipe_of(place, text), place)
    return Networks(request, clock_of(request), quiet)


def shown_by(networks: Networks) -> Any:
    maps = networks.request.recipe.items[0].maps
    assert maps is not None
    return map_texts(networks, maps)


def test_the_first_explainer_is_shown_and_how_others_differ(
    tmp_path: Path, models: dict[str, Path]
) -> None:
    explainers = '"attention", "gradient"'
    both = shown_by(
        networks_of(tmp_path, models, "bert", explainers=explainers, more=", texts = 2")
    )
    gradient = shown_by(networks_of(tmp_path, models, "bert", explainers='"gradient"'))
    assert len(both) == 2 and len({text.id for text in both}) == 2
    for text, other in zip(both, gradient, strict=True):
        first, second = text.rows
        assert (first.label, second.label) == ("attention", "difference to gradient")
        assert max(map(abs, first.weights)) == 1.0 and len(first.weights) == len(text.words)
        difference = np.subtract(first.weights, other.rows[0].weights)
        assert second.weights == pytest.approx(difference.tolist(), abs=0.011)
        assert len(text.marked) == len(text.words) and text.predicted in ("negative", "positive")


def test_several_models_are_shown_with_one_explainer(
    tmp_path: Path, models: dict[str, Path]
) -> None:
    """Each beside what it predicts, and none as a difference."""
    for text in shown_by(networks_of(tmp_path, models, "bert", "electra")):
        assert [row.label for row in text.rows] == ["bert", "electra"]
        assert all(max(map(abs, row.weights)) == 1.0 for row in text.rows)
        assert text.predicted.startswith("bert: ") and "; electra: " in text.predicted


def test_an_explainer_that_cannot_serve_is_left_out(
    tmp_path: Path, models: dict[str, Path]
) -> None:
    networks = networks_of(tmp_path, models, "cnn", explainers='"rollout", "gradient"')
    for text in shown_by(networks):
        assert [row.label for row in text.rows] == ["gradient"]


def test_without_an_explainer_there_is_no_text(tmp_path: Path, models: dict[str, Path]) -> None:
    assert shown_by(networks_of(tmp_path, models, "cnn", explainers='"rollout"')) == ()


def test_without_a_model_there_is_no_text(tmp_path: Path) -> None:
    networks = networks_of(tmp_path, {"bert": tmp_path / "no"}, "bert")
    assert shown_by(networks) == ()
