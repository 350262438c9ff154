"""The best and the worst order: against all orders, in closed form, and kept in a file."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.core.erasure import erase_tokens, top_count
from faithbench.core.types import Encoding, Example
from faithbench.data.kinds.kind import Prediction
from faithbench.metrics.registry import METRICS
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.model import Model
from faithbench.models.predictions import predictions
from faithbench.run.measures.aopc_bounds import aopc_bounds, append_bounds, bounds_key, read_bounds
from faithbench.run.score import score
from tests.support.cases import attribution_of, bag_encoding, bag_model

NAOPC = METRICS["naopc"]


def asked(model: Model, text: str) -> tuple[Engine, Encoding, Prediction]:
    engine = Engine(model)
    encoding = encode(model, Example("one", text, 0))
    (said,) = predictions(engine, [encoding])
    return engine, encoding, said


def every_aopc(engine: Engine, encoding: Encoding, said: Prediction, operator: Any) -> list[float]:
    """Return the AOPC of all orders in which the tokens may be erased."""
    places = np.flatnonzero(encoding.erasable)
    found = []
    for order in permutations(places):
        falls = []
        for percent in range(10, 100, 10):
            keep = np.ones(len(encoding.ids), dtype=bool)
            keep[list(order[: top_count(len(places), percent)])] = False
            row = erase_tokens(encoding, keep, operator, engine.model.erasure_id(operator))
            answer = engine.log_probabilities([row])[0, said.target]
            falls.append(math.exp(said.log_probability) - math.exp(answer))
        found.append(float(np.mean(falls)))
    return found


@pytest.mark.parametrize("operator", ["mask", "delete", "pad"])
@pytest.mark.parametrize("text", ["film", "good film", "a badly", "not very dull", "great film ."])
def test_up_to_three_tokens_the_bounds_are_exact(text: str, operator: Any, tiny_model: Any) -> None:
    """At most three sets have one size, and the beam holds five."""
    engine, encoding, said = asked(tiny_model("bert"), text)
    low, high = aopc_bounds(engine, encoding, said, operator)
    every = every_aopc(engine, encoding, said, operator)
    assert (low, high) == pytest.approx((min(every), max(every)), abs=1e-12)
    assert low <= high
    assert (low == high) == (encoding.erasable.sum() == 1)


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
@pytest.mark.parametrize("text", ["the good film .", "goodly plot , not", "a very dull bad plot"])
def test_the_beam_finds_the_bounds_of_four_and_five_tokens(
    text: str, architecture: str, tiny_model: Any
) -> None:
    """Of four tokens six pairs are cut to five, of five ten sets: here nothing is lost by it."""
    engine, encoding, said = asked(tiny_model(architecture), text)
    low, high = aopc_bounds(engine, encoding, said, "mask")
    every = every_aopc(engine, encoding, said, "mask")
    assert (low, high) == pytest.approx((min(every), max(every)), abs=1e-12)


def bag_aopc(margin: float, falls: list[float]) -> float:
    """Return the AOPC of a bag of words that loses these units in this order."""
    left = [margin - sum(falls[: top_count(len(falls), k)]) for k in range(10, 100, 10)]
    return 1 / (1 + math.exp(-margin)) - sum(1 / (1 + math.exp(-m)) for m in left) / 9


@pytest.mark.parametrize(
    ("n", "sizes"),
    [
        (12, [1] * 12),
        (40, [1] * 40),
        (41, [3] + [2] * 19),
        (60, [3] * 20),
    ],
)
def test_over_forty_tokens_go_by_twenty_spans(n: int, sizes: list[int], tokenizer: Any) -> None:
    weights = np.random.default_rng(n).integers(-8, 10, n) / 8
    engine = Engine(bag_model(tokenizer, weights))
    encoding = bag_encoding(range(n))
    (said,) = predictions(engine, [encoding])
    sign = 1 if said.target == 1 else -1
    ends = np.cumsum(sizes)
    units = [sign * weights[e - s : e].sum() for s, e in zip(sizes, ends, strict=True)]
    worst, best = sorted(units), sorted(units, reverse=True)
    margin = abs(weights.sum())
    low, high = aopc_bounds(engine, encoding, said, "mask")
    assert low == pytest.approx(bag_aopc(margin, worst), abs=1e-12)
    assert high == pytest.approx(bag_aopc(margin, best), abs=1e-12)
    assert low < high


def test_the_true_weights_are_at_one_end_and_the_reverse_at_the_other(tokenizer: Any) -> None:
    weights = np.array([5, -3, 8, 1, -1, 2, -6, 4, 3, 7]) / 8
    engine = Engine(bag_model(tokenizer, weights))
    encoding = bag_encoding(range(10))
    (said,) = predictions(engine, [encoding])
    bounds = aopc_bounds(engine, encoding, said, "mask")
    found = [attribution_of(encoding, s, 1) for s in (weights, -weights, np.zeros(10))]
    scored = score(engine, found, [said.log_probability] * 3, [NAOPC], "mask", [bounds] * 3)
    true, reverse, flat = (s.values["naopc"] for s in scored)
    assert (true, reverse) == pytest.approx((1.0, 0.0), abs=1e-12)
    assert 0.0 < flat < 1.0


def test_bounds_that_are_equal_leave_nothing_to_measure(tokenizer: Any) -> None:
    engine = Engine(bag_model(tokenizer, [1.0]))
    encoding = bag_encoding([0])
    (said,) = predictions(engine, [encoding])
    low, high = aopc_bounds(engine, encoding, said, "mask")
    assert low == high == pytest.approx(1 / (1 + math.exp(-1)) - 0.5)
    (scored,) = score(
        engine,
        [attribution_of(encoding, [1.0], 1)],
        [said.log_probability],
        [NAOPC],
        "mask",
        [(low, high)],
    )
    assert scored.values == {"naopc": None}


# The file


def test_bounds_are_kept_and_read_back(tmp_path: Path, tiny_model: Any) -> None:
    engine, encoding, prediction = asked(tiny_model("bert"), "not very dull .")
    assert read_bounds(tmp_path / "new", engine.model) == {}
    append_bounds(tmp_path / "new", engine.model, {})
    assert not (tmp_path / "new").exists(), "nothing to keep, nothing written"
    bounds = aopc_bounds(engine, encoding, prediction, "mask")
    key = bounds_key(engine.model, encoding, prediction, "mask")
    append_bounds(tmp_path / "new", engine.model, {key: bounds})
    assert read_bounds(tmp_path / "new", engine.model) == {key: bounds}
    (line,) = (tmp_path / "new" / "bounds-bert-2.jsonl").read_text().splitlines()
    assert json.loads(line[17:]) == [key, *bounds] and len(key) == 32


def test_each_question_has_its_own_bounds(tiny_model: Any) -> None:
    """Operator, prediction, tokens, segments, what may be erased: all matter; a name does not."""
    engine, encoding, prediction = asked(tiny_model("bert"), "not dull")
    other_class = replace(prediction, target=1 - prediction.target)
    fewer = encoding.erasable.copy()
    fewer[1] = False
    questions: list[Any] = [
        (encoding, prediction, "mask"),
        (encoding, prediction, "delete"),
        (encoding, other_class, "mask"),
        (replace(encoding, ids=encoding.ids[::-1].copy()), prediction, "mask"),
        (replace(encoding, types=1 - encoding.types), prediction, "mask"),
        (replace(encoding, erasable=fewer), prediction, "mask"),
    ]
    keys = [bounds_key(engine.model, *question) for question in questions]
    assert len(set(keys)) == len(questions)
    renamed = replace(encoding, example=Example("another", "", 1))
    assert bounds_key(engine.model, renamed, prediction, "mask") == keys[0]


def test_a_torn_last_line_is_skipped(tmp_path: Path, tiny_model: Any) -> None:
    model = tiny_model("bert")
    append_bounds(tmp_path, model, {"a": (0.125, 0.5), "b": (0.25, 0.75)})
    path = tmp_path / "bounds-bert-2.jsonl"
    whole = path.read_text()
    for cut in (1, 2, 10):
        path.write_text(whole[:-cut])
        known = {"a": (0.125, 0.5)}
        assert read_bounds(tmp_path, model) == known
        append_bounds(tmp_path, model, {"c": (0.0, 1.0)})
        # A line that lacked only its end is whole again.
        known |= {"b": (0.25, 0.75)} if cut == 1 else {}
        assert read_bounds(tmp_path, model) == known | {"c": (0.0, 1.0)}


def test_a_damaged_number_is_not_believed(tmp_path: Path, tiny_model: Any) -> None:
    model = tiny_model("bert")
    append_bounds(tmp_path, model, {"a": (0.125, 0.5), "b": (0.25, 0.75)})
    path = tmp_path / "bounds-bert-2.jsonl"
    path.write_text(path.read_text().replace("0.125", "0.925"))
    assert read_bounds(tmp_path, model) == {"b": (0.25, 0.75)}


def test_nothing_to_erase_has_no_bounds(qa_model: Any) -> None:
    """A text that is all answer."""
    engine = Engine(qa_model)
    encoding = encode(qa_model, Example("q", "good film", 0, "is it"))
    assert np.flatnonzero(encoding.erasable).tolist() == [4, 5]
    assert aopc_bounds(engine, encoding, Prediction((4, 5), -1.0, True), "mask") is None
    assert engine.asked == 0


def test_models_do_not_share_a_file(tmp_path: Path, tiny_model: Any) -> None:
    for classes in (2, 3):
        append_bounds(tmp_path, tiny_model("bert", classes), {"a": (0.0, 1.0)})
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "bounds-bert-2.jsonl",
        "bounds-bert-3.jsonl",
    ]
