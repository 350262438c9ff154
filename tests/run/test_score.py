"""From attributions to metric values: rows of all metrics and examples, run together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.types import Attribution, Batch, Case, Encoding, rank
from faithbench.data.kinds.question_answering import QUESTION_ANSWERING
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.kinds import CaseMetric, no_rows
from faithbench.metrics.registry import METRICS, case_metrics, find_metrics
from faithbench.models.encoding import inputs_of
from faithbench.models.engine import Engine
from faithbench.models.model import Model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.attribute import attribute
from faithbench.run.score import WAVE, case_of, score
from tests.reference.protocol import TABLE, same, table
from tests.support.cases import attribution_of, bag_encoding, bag_model

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
BOTH = [METRICS["aopc"], METRICS["lodds"]]
ALL = [METRICS[name] for name in TABLE]


def attributions_of(model: Model, batch: Batch) -> list[Attribution]:
    (chosen,) = find_explainers("input-x-gradient")
    return attribute(Session(model), chosen, batch)


def full_of(engine: Engine, batch: Batch) -> list[float]:
    """Return ln f of each full input, of the batch's targets."""
    answers = engine.log_probabilities([(e.ids, e.types) for e in batch.encodings])
    return [float(answer[t]) for answer, t in zip(answers, batch.targets.tolist(), strict=True)]


# Against one row at a time


def naive(model: Model, encoding: Encoding, scores: Any, target: int, operator: str) -> Any:
    """Compute the table one row at a time, from the definitions."""
    places = np.flatnonzero(encoding.erasable).tolist()
    token = {"mask": 4, "pad": 0, "delete": None}[operator]

    def oracle(erased: frozenset[int]) -> tuple[float, bool]:
        gone = {places[i] for i in erased}
        pairs = [
            (token if i in gone else int(t), int(encoding.types[i]))
            for i, t in enumerate(encoding.ids)
            if token is not None or i not in gone
        ]
        ids, types = (torch.tensor([column]) for column in zip(*pairs, strict=True))
        inputs = inputs_of(model.network, ids, types, torch.ones_like(ids))
        with torch.no_grad():
            answer = model.network(**inputs).logits.softmax(-1)[0]
        return float(answer[target]), int(answer.argmax()) == target

    return table(scores.tolist(), oracle)


@pytest.mark.parametrize("operator", ["mask", "delete", "pad"])
@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_scores_equal_a_naive_computation(
    architecture: str, operator: Any, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    texts = [*TEXTS, "film"]
    engine = Engine(model, budget=40)
    encodings = batch_of(model, texts).encodings
    targets = [p.target for p in predictions(engine, encodings)]
    targets[1] = 1 - targets[1]
    batch = batch_of(model, texts, targets)
    found = attributions_of(model, batch)
    scored = score(engine, found, full_of(engine, batch), ALL, operator)
    for attribution, result in zip(found, scored, strict=True):
        expected = naive(
            model, attribution.encoding, attribution.scores, attribution.target, operator
        )
        assert same(result.values, expected), (result.values, expected)
    # The second target is not what the model predicts: it is lost from the first row on.
    assert scored[1].values["flip_fraction"] == 1 / 13
    assert max(s.values["flip_fraction"] for s in scored) == 1.0


# Rows


def test_rows_are_shared_between_metrics_and_explainers(tiny_model: Any, batch_of: Any) -> None:
    """Two metrics ask for the same nine rows; short texts and equal rankings repeat them."""
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    engine = Engine(model)
    full = full_of(engine, batch)
    assert (engine.asked, engine.distinct) == (3, 3)
    found = attributions_of(model, batch)
    scored = score(engine, found, full, BOTH, "mask")
    assert [s.rows_asked for s in scored] == [18, 18, 18]
    # 2 tokens: 1 or 2 erased. 13 tokens: 1, 3, 4, 5, 7, 8, 9, 10, 12. 5 tokens: 1 to 5.
    assert [s.distinct_rows for s in scored] == [2, 9, 5]
    # Equal rows of one text are made once, before the engine is asked.
    assert (engine.asked, engine.distinct) == (3 + 16, 3 + 16)
    twice = score(engine, [*found, *found], [*full, *full], BOTH, "mask")
    assert twice == [*scored, *scored]
    assert (engine.asked, engine.distinct) == (3 + 32, 3 + 16)


def test_rows_of_the_full_table(tokenizer: Any) -> None:
    """Ten tokens whose prediction never flips, three of them with a negative score.

    The deciles erase 1 ... 9 tokens. Comprehensiveness (1, 1, 1, 2, 5) and the top 30% (3)
    are among those; sufficiency adds the top 1, 2 and 5 alone, agreement the top 3 alone, the
    twentieths all 10 tokens erased, the negatives one row, leave-one-out 10 less the top one.
    """
    model = bag_model(tokenizer, np.zeros(10), bias=1.0)
    engine = Engine(model)
    scores = [0.5, -0.2, 0.9, 0.1, 0.8, -0.9, 0.7, 0.4, 0.6, -0.5]
    attribution = attribution_of(bag_encoding(range(10)), scores, 1)
    (full,) = predictions(engine, [attribution.encoding])
    before = engine.distinct
    (scored,) = score(
        engine, [attribution], [full.log_probability], case_metrics(find_metrics("all")), "mask"
    )
    assert scored.rows_asked == 9 + 9 + 5 + 5 + 20 + 1 + 1 + 1 + 10
    assert scored.distinct_rows == 9 + 3 + 1 + 1 + 1 + 9 == 24
    assert engine.distinct - before == 24
    alone = [
        score(Engine(model), [attribution], [full.log_probability], [m], "mask")[0] for m in ALL
    ]
    assert [a.distinct_rows for a in alone] == [9, 9, 3, 3, 10, 1, 1, 1, 10, 0]
    assert {k: v for a in alone for k, v in a.values.items()} == {
        name: scored.values[name] for name in TABLE
    }
    # Another explainer of the same input adds nothing if its ranking is the same.
    again = attribution_of(attribution.encoding, np.array(scores) * 2, 1)
    both = score(
        engine,
        [attribution, again],
        [full.log_probability] * 2,
        case_metrics(find_metrics("all")),
        "mask",
    )
    assert engine.distinct - before == 24
    assert both[0] == both[1] == scored


@pytest.mark.parametrize("flips_at", [1, 2, 3, 4, 7, 19, 20])
def test_no_row_past_the_wave_of_the_flip(flips_at: int, tokenizer: Any) -> None:
    """Twenty tokens of weight 1, one more erased at each step; the odds turn at `flips_at`."""
    model = bag_model(tokenizer, [1.0] * 20, bias=-20.5 + flips_at)
    engine = Engine(model)
    attribution = attribution_of(bag_encoding(range(20)), np.arange(20.0), 1)
    (full,) = predictions(engine, [attribution.encoding])
    assert full.target == 1
    before = engine.asked
    metric = METRICS["flip_fraction"]
    (scored,) = score(engine, [attribution], [full.log_probability], [metric], "mask")
    assert scored.values == {"flip_fraction": flips_at / 20}
    waves = math.ceil(flips_at / WAVE)
    assert scored.rows_asked == scored.distinct_rows == waves * WAVE
    assert engine.asked - before == waves * WAVE


def test_waves_run_side_by_side(tokenizer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs that flip early drop out; the others go on, all of a wave in one call."""
    model = bag_model(tokenizer, [1.0] * 20 + [0.0], bias=-14.5)
    engine = Engine(model)
    encodings = [bag_encoding(range(20 - i), f"e{i}") for i in range(3)]
    found = [attribution_of(e, np.zeros(e.erasable.sum()), 1) for e in encodings]
    full = [p.log_probability for p in predictions(engine, encodings)]
    sizes = []
    plain = Engine.log_probabilities

    def counted(self: Engine, rows: Any, head: str = "logits") -> Any:
        sizes.append(len(rows))
        return plain(self, rows, head)

    monkeypatch.setattr(Engine, "log_probabilities", counted)
    scored = score(engine, found, full, [METRICS["flip_fraction"], METRICS["aopc"]], "mask")
    # Margins 5.5, 4.5 and 3.5 are gone after 6, 5 and 4 tokens: in the third, third and second
    # wave (of 20, 19 and 18 tokens each step erases one, but for the 19th and the 18th).
    assert [s.values["flip_fraction"] for s in scored] == [6 / 20, 5 / 19, 4 / 18]
    assert [s.rows_asked - 9 for s in scored] == [6, 6, 4]
    # The first call holds the deciles too, which share rows with the first wave.
    assert sizes[1:] == [6, 4]
    assert len(sizes) == 3


def test_a_metric_gets_the_rows_it_planned(tiny_model: Any, batch_of: Any) -> None:
    """Metrics of different plans in one call, one of them without any row."""
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    engine = Engine(model)
    full = full_of(engine, batch)

    def fact(name: str, plan: Any, value: Any) -> CaseMetric:
        return CaseMetric(
            name=name,
            family="stability",
            higher_is_better=True,
            bounds=(-math.inf, math.inf),
            summary="Made up.",
            plan=plan,
            score=value,
        )

    def blank(case: Case) -> Any:
        keep = np.ones((1, len(case.every_score)), dtype=bool)
        keep[0, case.positions] = False
        return keep

    metrics = [
        fact(
            "all",
            lambda c: np.ones((2, len(c.every_score)), dtype=bool),
            lambda c, a: float(a.log_probability[1]),
        ),
        fact("none", no_rows, lambda c, a: float(len(a.kept))),
        METRICS["aopc"],
        fact("blank", blank, lambda c, a: None),
    ]
    found = attributions_of(model, batch)
    scored = score(engine, found, full, metrics, "mask")
    alone = score(engine, found, full, [METRICS["aopc"]], "mask")
    for row, result in enumerate(scored):
        assert result.values["all"] == pytest.approx(full[row], abs=1e-12)
        assert result.values["none"] == 0.0
        assert result.values["aopc"] == pytest.approx(alone[row].values["aopc"], abs=1e-12)
        assert result.values["blank"] is None
        assert result.rows_asked == 2 + 0 + 9 + 1
    # The blank of the two short texts is already among the deciles' rows.
    assert [s.distinct_rows for s in scored] == [3, 11, 6]


# What a metric sees


def test_a_metric_sees_the_case(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS, [1, 0, 1])
    engine = Engine(model)
    full = full_of(engine, batch)
    seen: list[Case] = []

    def look(case: Case, _answers: Any) -> float:
        seen.append(case)
        return 0.0

    spy = CaseMetric(
        name="spy",
        family="stability",
        higher_is_better=True,
        bounds=(0, 1),
        summary="Look.",
        plan=METRICS["aopc"].plan,
        score=look,
    )
    found = attributions_of(model, batch)
    bounds = [(0.0, 1.0), None, (0.25, 0.5)]
    score(engine, found, full, [spy], "mask", bounds)
    for case, attribution, log_probability, own in zip(seen, found, full, bounds, strict=True):
        places = np.flatnonzero(attribution.encoding.erasable)
        assert case.scores.tolist() == attribution.scores.tolist()
        assert case.positions.tolist() == case.evidence.tolist() == places.tolist()
        assert case.order.tolist() == places[rank(attribution.scores)].tolist()
        assert case.every_score.tolist() == attribution.every_score.tolist()
        assert (case.log_probability, case.bounds, case.gold) == (log_probability, own, ())
        assert case.n == len(places)
        assert case.probability == pytest.approx(math.exp(log_probability))


def test_a_predicted_answer_is_evidence_but_not_erasable() -> None:
    """Of five tokens the second and third are the answer; the scores of the others count."""
    attribution = attribution_of(bag_encoding(range(5)), [5.0, 4.0, 3.0, 2.0, 1.0], (2, 3))
    case = case_of(QUESTION_ANSWERING, attribution, math.log(0.25))
    assert case.positions.tolist() == [1, 4, 5]
    assert case.scores.tolist() == [5.0, 2.0, 1.0]
    assert case.evidence.tolist() == [1, 2, 3, 4, 5]
    assert case.probability == pytest.approx(0.25)
    none = case_of(
        QUESTION_ANSWERING, attribution_of(attribution.encoding, np.zeros(5), (0, 0)), 0.0
    )
    assert none.positions.tolist() == [1, 2, 3, 4, 5]
