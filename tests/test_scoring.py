"""From a batch to attributions to metric values: checked, timed, and computed together."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from faithbench import capture as capturing
from faithbench.attribution import attribute, seed_of
from faithbench.capture import capture
from faithbench.encoding import inputs_of
from faithbench.erasure import rank, top_count
from faithbench.errors import FaithbenchError
from faithbench.evaluation import predict
from faithbench.forward import Engine
from faithbench.metrics import METRICS, Metric
from faithbench.models import Model, build_model
from faithbench.scoring import score
from faithbench.selection import Chosen, find_explainers
from faithbench.types import Attribution, Batch, Case, Encoding

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
BOTH = [METRICS["aopc"], METRICS["lodds"]]


@dataclass(frozen=True)
class Made:
    """Give the scores that a function makes of the batch."""

    scores: Callable[[Batch], torch.Tensor]

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        return self.scores(batch)


def made(scores: Callable[[Batch], torch.Tensor]) -> Chosen:
    return Chosen("made-up", Made(scores))


def ascending(batch: Batch) -> torch.Tensor:
    """Score each token by its place."""
    return torch.arange(batch.ids.numel(), dtype=torch.float32).view(batch.ids.shape)


# Attributions


def test_one_score_per_erasable_token(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS, [1, 0, 1])
    found = attribute(model, made(ascending), batch)
    # Rows of 15 tokens, of which the first and the last real one are special.
    assert [a.scores.tolist() for a in found] == [
        [1, 2],
        list(range(16, 29)),
        list(range(31, 36)),
    ]
    assert [a.target for a in found] == [1, 0, 1]
    assert [a.encoding for a in found] == list(batch.encodings)
    assert found[0].scores.dtype == np.float64


def test_a_pair_keeps_the_scores_of_its_evidence(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, ["good film || dull plot"], evidence="text_b")
    assert [a.scores.tolist() for a in attribute(model, made(ascending), batch)] == [[4, 5]]


@pytest.mark.parametrize(
    ("scores", "shape"),
    [
        (lambda batch: torch.zeros(batch.ids.shape[1]), r"\(15,\)"),
        (lambda batch: torch.zeros(3, 14), r"\(3, 14\)"),
        (lambda batch: torch.zeros(3, 15, 32), r"\(3, 15, 32\)"),
    ],
)
def test_a_wrong_shape_is_refused(scores: Any, shape: str, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    said = rf"explainer 'made-up' gave scores of shape {shape} for tokens of shape \(3, 15\)"
    with pytest.raises(FaithbenchError, match=said):
        attribute(model, made(scores), batch_of(model, TEXTS))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused(
    value: float, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model("bert")

    def broken(batch: Batch) -> torch.Tensor:
        scores = torch.zeros(batch.ids.shape)
        scores[2, 3] = value
        return scores

    said = "explainer 'made-up' gave a score that is not finite for example 'e2'"
    with pytest.raises(FaithbenchError, match=said):
        attribute(model, made(broken), batch_of(model, TEXTS))


def test_special_tokens_and_padding_may_get_any_score(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    found = attribute(model, made(lambda b: torch.where(b.erasable, 1.0, math.nan)), batch)
    assert [set(a.scores.tolist()) for a in found] == [{1.0}] * 3


def test_a_shared_pass_is_charged_to_each_reader(
    tiny_model: Any, batch_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only the passes move: 6 s for the shared one, 3 s for reading it."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    run = capturing.run_capture

    def slow(*args: Any) -> Any:
        now[0] += 6.0
        return run(*args)

    monkeypatch.setattr(capturing, "run_capture", slow)
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)

    def read(own: Batch) -> torch.Tensor:
        seen = capture(model, own)
        now[0] += 3.0
        return seen.attentions[-1][:, 0, 0]

    for _ in range(3):
        found = attribute(model, made(read), batch)
        assert [a.seconds for a in found] == [3.0, 3.0, 3.0]
        assert [(a.forwards, a.backwards) for a in found] == [(1, 1)] * 3
    assert now[0] == 6.0 + 3 * 3.0


def test_cost_of_known_explainers(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    costs = {}
    for chosen in find_explainers("random,attention,lrp-mask:mask=ones"):
        found = attribute(model, chosen, batch)
        costs[chosen.name] = {(a.forwards, a.backwards) for a in found}
        assert all(a.seconds > 0 for a in found)
    assert costs == {"random": {(0, 0)}, "attention": {(1, 1)}, "lrp-mask": {(2, 2)}}


# Seeds


def test_seeds_are_stable_numbers() -> None:
    """The first seven bytes of sha256("<seed>:<id>"), as one number."""
    assert seed_of(0, "e1") == 0xE3124B369A276C
    assert seed_of(1, "e1") != seed_of(0, "e1")
    assert seed_of(0, "e2") != seed_of(0, "e1")
    # Torch takes seeds below 2^63.
    assert all(0 <= seed_of(0, str(i)) < 2**56 for i in range(100))
    assert len({seed_of(s, str(i)) for s in range(10) for i in range(100)}) == 1000


# Scores


def naive(model: Model, encoding: Encoding, scores: Any, target: int, operator: str) -> Any:
    """Compute AOPC and LOdds one row at a time, from the definitions."""
    places = np.flatnonzero(encoding.erasable)
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))

    def probability(ids: list[int], types: list[int]) -> float:
        network = model.network
        row = torch.tensor([ids])
        inputs = inputs_of(network, row, torch.tensor([types]), torch.ones_like(row))
        with torch.no_grad():
            return float(network(**inputs).logits.softmax(-1)[0, target])

    ids, types = encoding.ids.tolist(), encoding.types.tolist()
    full = probability(ids, types)
    falls, ratios = [], []
    for percent in range(10, 100, 10):
        erased = {int(places[i]) for i in order[: top_count(len(scores), percent)]}
        if operator == "delete":
            kept = [i for i in range(len(ids)) if i not in erased]
            answer = probability([ids[i] for i in kept], [types[i] for i in kept])
        else:
            token = {"mask": 4, "pad": 0}[operator]
            answer = probability([token if i in erased else t for i, t in enumerate(ids)], types)
        falls.append(full - answer)
        ratios.append(math.log(answer / full))
    return {"aopc": np.mean(falls), "lodds": np.mean(ratios)}


def attributions_of(model: Model, batch: Batch) -> list[Attribution]:
    (chosen,) = find_explainers("input-x-gradient")
    return attribute(model, chosen, batch)


@pytest.mark.parametrize("operator", ["mask", "delete", "pad"])
@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_scores_equal_a_naive_computation(
    architecture: str, operator: Any, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, [*TEXTS, "film"], [0, 1, 1, 0])
    engine = Engine(model, budget=40)
    found = attributions_of(model, batch)
    full = predict(engine, batch.encodings)
    scored = score(engine, found, list(full), BOTH, operator)
    for attribution, result in zip(found, scored, strict=True):
        expected = naive(
            model, attribution.encoding, attribution.scores, attribution.target, operator
        )
        assert result.values == pytest.approx(expected, abs=1e-9)


def test_rows_are_shared_between_metrics_and_explainers(tiny_model: Any, batch_of: Any) -> None:
    """Two metrics ask for the same nine rows; short texts and equal rankings repeat them."""
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    engine = Engine(model)
    full = predict(engine, batch.encodings)
    assert (engine.asked, engine.distinct) == (3, 3)
    found = attributions_of(model, batch)
    scored = score(engine, found, list(full), BOTH, "mask")
    assert [s.rows_asked for s in scored] == [18, 18, 18]
    # 2 tokens: 1 or 2 erased. 13 tokens: 1, 3, 4, 5, 7, 8, 9, 10, 12. 5 tokens: 1 to 5.
    assert [s.distinct_rows for s in scored] == [2, 9, 5]
    assert (engine.asked, engine.distinct) == (3 + 54, 3 + 16)
    twice = score(engine, [*found, *found], [*full, *full], BOTH, "mask")
    assert twice == [*scored, *scored]
    assert engine.distinct == 19


def test_a_metric_gets_the_rows_it_planned(tiny_model: Any, batch_of: Any) -> None:
    """Metrics of different plans in one call, one of them without any row."""
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    engine = Engine(model)
    full = predict(engine, batch.encodings)

    def fact(name: str, plan: Any, value: Any) -> Metric:
        return Metric(name, "stability", True, -math.inf, math.inf, 1, "Made up.", plan, value)

    metrics = [
        fact("all", lambda c: np.ones((2, c.n), dtype=bool), lambda c, a: float(a[1, c.target])),
        fact("none", lambda c: np.ones((0, c.n), dtype=bool), lambda c, a: float(len(a))),
        METRICS["aopc"],
        fact("blank", lambda c: np.zeros((1, c.n), dtype=bool), lambda c, a: None),
    ]
    found = attributions_of(model, batch)
    scored = score(engine, found, list(full), metrics, "mask")
    alone = score(engine, found, list(full), [METRICS["aopc"]], "mask")
    for row, result in enumerate(scored):
        assert result.values["all"] == pytest.approx(full[row, 0], abs=1e-12)
        assert result.values["none"] == 0.0
        assert result.values["aopc"] == pytest.approx(alone[row].values["aopc"], abs=1e-12)
        assert result.values["blank"] is None
        assert result.rows_asked == 2 + 0 + 9 + 1
    # The blank of the two short texts is already among the deciles' rows.
    assert [s.distinct_rows for s in scored] == [3, 11, 6]


class BagOfWords(torch.nn.Module):
    """A linear model: the logit of class 1 is the sum of its tokens' weights."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(size, 1, dtype=torch.float64)
        self.config = SimpleNamespace(
            pad_token_id=0, max_position_embeddings=64, model_type="bag", num_labels=2
        )
        self.device, self.dtype = torch.device("cpu"), torch.float64

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        logit = (self.table(input_ids)[..., 0] * attention_mask).sum(1)
        return SimpleNamespace(logits=torch.stack([torch.zeros_like(logit), logit], dim=1))


@pytest.mark.parametrize("operator", ["mask", "delete", "pad"])
def test_a_linear_model_in_closed_form(operator: Any, tokenizer: Any, batch_of: Any) -> None:
    """Ten words w0 ... w9 weigh ln 2 times 4 3 2 1 0 0 0 -1 -2 -3, and special tokens nothing."""
    network = BagOfWords(len(tokenizer))
    powers = [4, 3, 2, 1, 0, 0, 0, -1, -2, -3]
    with torch.no_grad():
        network.table.weight.zero_()
        for i, power in enumerate(powers):
            network.table.weight[tokenizer.convert_tokens_to_ids(f"w{i}")] = power * math.log(2)
    model = build_model("bag", network, tokenizer, labels=("no", "yes"))  # type: ignore[arg-type]
    shuffled = [6, 9, 0, 4, 2, 7, 1, 8, 3, 5]
    batch = batch_of(model, [" ".join(f"w{i}" for i in shuffled)], [1])
    exact = made(lambda b: network.table(b.ids)[..., 0])
    engine = Engine(model)
    full = predict(engine, batch.encodings)
    assert np.exp(full[0, 1]) == pytest.approx(16 / 17)
    (scored,) = score(engine, attribute(model, exact, batch), list(full), BOTH, operator)
    left = [2.0**r / (1 + 2.0**r) for r in (0, -3, -5, -6, -6, -6, -6, -5, -3)]
    assert scored.values == pytest.approx(
        {
            "aopc": 16 / 17 - sum(left) / 9,
            "lodds": sum(math.log(p * 17 / 16) for p in left) / 9,
        },
        abs=1e-12,
    )


def test_a_metric_sees_the_case(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS, [1, 0, 1])
    engine = Engine(model)
    full = predict(engine, batch.encodings)
    seen: list[Case] = []

    def look(case: Case, _answers: Any) -> float:
        seen.append(case)
        return 0.0

    spy = Metric("spy", "stability", True, 0, 1, 1, "Look.", METRICS["aopc"].plan, look)
    found = attributions_of(model, batch)
    score(engine, found, list(full), [spy], "mask")
    for case, attribution, answer in zip(seen, found, full, strict=True):
        assert case.scores.tolist() == attribution.scores.tolist()
        assert case.order.tolist() == rank(attribution.scores).tolist()
        assert case.target == attribution.target
        assert case.full.tolist() == answer.tolist()


def test_the_completeness_gap_is_measured_outside_the_clock(tiny_model, batch_of) -> None:
    model = tiny_model()
    batch = batch_of(model, ["good film", "the plot is dull"], [0, 1])
    (fine,) = find_explainers("integrated-gradients:steps=50")
    (coarse,) = find_explainers("integrated-gradients:steps=1")
    (other,) = find_explainers("random")
    assert all(abs(a.gap) < 1e-9 for a in attribute(model, fine, batch))
    assert all(abs(a.gap) > 1e-6 for a in attribute(model, coarse, batch))
    assert [a.gap for a in attribute(model, other, batch)] == [None, None]
    assert [a.forwards for a in attribute(model, fine, batch)] == [50, 50]
