"""The released variants against what the published code computed, row by row."""

from __future__ import annotations

import copy
import json
import math
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.erasure import erase_tokens, top_count
from faithbench.core.types import Attribution, Case
from faithbench.metrics.kinds import Metric
from faithbench.metrics.rank_correlation import kendall
from faithbench.metrics.registry import METRICS
from faithbench.metrics.released import log_odds_l2e
from faithbench.models.engine import Engine
from faithbench.models.model import Model, build_model
from faithbench.models.predictions import evaluate_inputs
from faithbench.run.score import score
from tests.support.architectures import MODELS, reference_network
from tests.support.cases import attribution_of, case_of, row_encoding, said

SPECIAL = (101, 102)
# The references ran in float32.
CLOSE = 1e-6
LAYOUTS = [f"nl{classes}/attr{number}" for classes in (2, 3) for number in range(6)]


@cache
def stored(name: str) -> Any:
    return json.loads((MODELS.parent / "metrics" / f"{name}.json").read_text())


@cache
def reference(classes: int, tokenizer: Any) -> Engine:
    labels = tuple(str(c) for c in range(classes))
    return Engine(build_model("reference", reference_network(classes), tokenizer, labels=labels))


def corpus(layout: str) -> list[Attribution]:
    """Return the six texts, with the attribution and the gold label of one layout."""
    classes, number = int(layout[2]), int(layout[-1])
    return [
        attribution_of(
            row_encoding(text["input_ids"], SPECIAL),
            text["attributions"][number],
            text[f"label{classes}"],
        )
        for text in stored("aopc_lodds")["sequences"]
    ]


def full_log_f(engine: Engine, attributions: list[Attribution]) -> list[float]:
    rows = [(a.encoding.ids, a.encoding.types) for a in attributions]
    encodings, targets = [a.encoding for a in attributions], [a.target for a in attributions]
    return evaluate_inputs(
        engine, [[row] for row in rows], encodings, targets
    ).log_probability.tolist()


def values(engine: Engine, layout: str, name: str, operator: Any) -> list[float]:
    found = corpus(layout)
    scored = score(engine, found, full_log_f(engine, found), [METRICS[name]], operator)
    return [s.values[name] for s in scored]


# Mask-LRP and AttCAT


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_curves_of_mask_lrp(layout: str, tokenizer: Any) -> None:
    """Each of the nine points of each text: fall of the gold label's probability, log-ratio."""
    engine = reference(int(layout[2]), tokenizer)
    found = corpus(layout)
    full = full_log_f(engine, found)
    published = stored("aopc_lodds")["mask_lrp"][layout]["per_example"]
    for attribution, log_probability, expected in zip(found, full, published, strict=True):
        encoding = attribution.encoding
        places = np.flatnonzero(encoding.erasable)
        scores = attribution.every_score
        case = Case(scores[places], places, log_probability, scores, places)
        plan = METRICS["aopc:variant=mask-lrp"].rows(case)
        assert plan.shape == (9, len(scores))
        rows = [erase_tokens(encoding, keep, "pad", 0) for keep in plan]
        answers = evaluate_inputs(
            engine, [[row] for row in rows], [encoding] * 9, [attribution.target] * 9
        )
        np.testing.assert_allclose(
            case.probability - answers.probability, expected["aopc"], atol=CLOSE
        )
        np.testing.assert_allclose(
            answers.log_probability - log_probability, expected["lodds"], atol=CLOSE
        )


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_means_of_mask_lrp(layout: str, tokenizer: Any) -> None:
    engine = reference(int(layout[2]), tokenizer)
    published = stored("aopc_lodds")["mask_lrp"][layout]
    for name in ("aopc", "lodds"):
        found = values(engine, layout, f"{name}:variant=mask-lrp", "pad")
        per_example = [np.mean(example[name]) for example in published["per_example"]]
        assert found == pytest.approx(per_example, abs=CLOSE)
        assert np.mean(found) == pytest.approx(published[name], abs=CLOSE)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("operator", "key"), [("pad", "padreplace"), ("delete", "deletion")])
def test_the_means_of_attcat(operator: str, key: str, layout: str, tokenizer: Any) -> None:
    """Its LOdds are those of Mask-LRP, for either operator."""
    engine = reference(int(layout[2]), tokenizer)
    published = stored("aopc_lodds")["attcat"][layout]
    falls = values(engine, layout, "aopc:variant=attcat", operator)
    ratios = values(engine, layout, "lodds:variant=mask-lrp", operator)
    assert np.mean(falls) == pytest.approx(published[f"aopc_{key}"], abs=CLOSE)
    assert np.mean(ratios) == pytest.approx(published[f"logodds_{key}"], abs=CLOSE)


def test_the_grid_of_mask_lrp_by_hand() -> None:
    """T = 6: 1 1 2 3 3 4 5 5 6 tokens are to go; special ones and that ranked last stay."""
    every = np.array([0.5, 0.9, 0.1, 0.7, 0.3, 0.2])
    places = np.array([1, 2, 3, 4])
    case = Case(every[places], places, math.log(0.5), every, places)
    plan = METRICS["aopc:variant=mask-lrp"].rows(case)
    # By score 1 3 0 4 5 2, of which 0 and 5 are special, and 2 is ranked last.
    erased = [np.flatnonzero(~keep).tolist() for keep in plan]
    assert erased == [[1], [1], [1, 3], *[[1, 3, 4]] * 6]


def test_a_rise_counts_as_a_fall_in_attcat() -> None:
    case, answers = case_of([3.0, 2.0, 1.0], 0.5), said([0.75] * 4 + [0.25] * 5)
    assert METRICS["aopc:variant=mask-lrp"].value(case, answers) == pytest.approx(0.25 / 9)
    assert METRICS["aopc:variant=attcat"].value(case, answers) == pytest.approx(0.25)


# Precision@20


def test_precision_at_20() -> None:
    """The published number is 22 tokens found of 32 in all; ours is the mean of the shares."""
    published = stored("precision20")
    counts, sizes = [], []
    for question in published["cases"]:
        scores = np.array(question["attribution"])
        places = np.arange(len(scores))
        gold = (places >= question["start"]) & (places <= question["end"])
        case = Case(scores, places, 0.0, scores, places, gold=(gold,))
        share = METRICS["answer_recall_at_20"].value(case, said([]))
        assert share == pytest.approx(question["count"] / question["perfect"], abs=1e-12)
        assert gold.sum() == question["perfect"]
        counts.append(share * gold.sum())
        sizes.append(gold.sum())
    assert sum(counts) == pytest.approx(22)
    assert sum(counts) / sum(sizes) == pytest.approx(published["value"], abs=1e-12)


# SaLoss


@pytest.fixture(scope="module")
def flipping(tokenizer: Any) -> Model:
    network = copy.deepcopy(reference_network(2))
    with torch.no_grad():
        network.classifier.bias.copy_(torch.tensor(stored("saloss")["classifier_bias"]))
    return build_model("saloss", network, tokenizer, labels=("0", "1"))


@pytest.mark.parametrize("kind", ["attention", "gradients", "ig", "scaled attention"])
def test_fractions_to_flip_of_saloss(kind: str, flipping: Model) -> None:
    """At batch size 1; a score of -inf, that of special tokens, is ranked last."""
    engine = Engine(flipping)
    found, expected = [], []
    for text in stored("saloss")["sequences"]:
        encoding = row_encoding(text["input_ids"], ())
        answers = engine.log_probabilities([(encoding.ids, encoding.types)])[0]
        scores = [float(s) for s in text["attributions"][kind]]
        found.append(attribution_of(encoding, scores, int(answers.argmax())))
        expected.append(text["fraction_to_flip"][kind])
    metric = METRICS["flip_fraction:variant=saloss"]
    scored = score(engine, found, full_log_f(engine, found), [metric], "pad")
    assert [s.values[metric.name] for s in scored] == pytest.approx(expected, abs=1e-9)
    assert len(set(expected)) > 2


@pytest.mark.parametrize(
    ("size", "counts"),
    [
        (6, [1, 2, 3, 4, 5, 6]),
        (29, list(range(1, 30))),  # 1.45
        (30, list(range(1, 31, 2))),  # 1.5, to even
        (50, list(range(1, 51, 2))),  # 2.5, to even
        (51, list(range(1, 52, 3))),  # 2.55
    ],
)
def test_the_steps_of_saloss(size: int, counts: list[int]) -> None:
    scores = np.linspace(1, 0, size)
    case = Case(scores, np.arange(size), 0.0, scores, np.arange(size))
    plan = METRICS["flip_fraction:variant=saloss"].rows(case)
    assert (~plan).sum(1).tolist() == counts


# ERASER


def test_the_points_of_eraser() -> None:
    """Comprehensiveness and sufficiency at 1, 5, 10, 20, 50%, from given probabilities."""
    published = stored("eraser")
    expected = published["expected"]
    assert expected["aopc_thresholds"] == [0.01, 0.05, 0.1, 0.2, 0.5]
    for name, part in (("comprehensiveness", "without"), ("sufficiency", "only")):
        metric = METRICS[name]
        means, points = [], []
        for instance in published["instances"]:
            own = instance["predicted"]
            assert instance["full"][own] > 0.5
            case = case_of(np.arange(10.0), instance["full"][own])
            rest = [pair[own] for pair in instance[part]]
            means.append(metric.value(case, said(rest)))
            points.append([metric.value(case, said([p])) for p in rest])
        assert np.mean(means) == pytest.approx(expected[f"{name}_aopc"], abs=1e-9)
        np.testing.assert_allclose(
            np.mean(points, axis=0), expected[f"{name}_aopc_points"], atol=1e-9
        )


# Jain and Wallace


@pytest.mark.parametrize("number", range(8))
def test_tau_of_jain_and_wallace(number: int) -> None:
    """Positions 1 to L - 2; how far the probability moves without a token, up or down."""
    example = stored("jain_wallace")[number]
    size = len(example["without"])
    places = np.arange(1, size - 1)
    metric = METRICS["tau_loo:variant=jain-wallace"]
    for kind, key in (("attention", "tau_loo_attn"), ("gradient", "tau_loo_grad")):
        scores = np.array(example[kind])
        case = Case(scores[places], places, math.log(example["probability"]), scores, places)
        plan = metric.rows(case)
        assert plan.shape == (size - 2, size)
        assert [np.flatnonzero(~keep).tolist() for keep in plan] == [[i] for i in places]
        answers = said(np.array(example["without"])[places])
        assert metric.value(case, answers) == pytest.approx(example[key], abs=1e-9)
    first, second = (np.array(example[kind])[places] for kind in ("attention", "gradient"))
    assert kendall(first, second) == pytest.approx(example["tau_attn_grad"], abs=1e-9)


def test_the_direction_is_lost_in_jain_and_wallace() -> None:
    """The first token lowers the probability most, the last raises it more."""
    case, answers = case_of([3.0, 2.0, 1.0], 0.5), said([0.3, 0.4, 0.9])
    assert METRICS["tau_loo"].value(case, answers) == pytest.approx(1.0)
    assert METRICS["tau_loo:variant=jain-wallace"].value(case, answers) == pytest.approx(-1 / 3)


# L2E


def test_log_odds_of_l2e() -> None:
    for pair in stored("l2e")["log_odds"]:
        assert log_odds_l2e(pair["p"]) == pytest.approx(pair["v"], abs=1e-9)


def test_a_certain_answer_has_log_odds_of_zero_in_l2e() -> None:
    case = case_of([3.0, 2.0, 1.0], 1.0)
    odds = METRICS["delta_log_odds:variant=l2e"]
    assert odds.value(case, said([0.5])) == 0.0
    assert odds.value(case, said([0.9])) == pytest.approx(-math.log(9))
    # Clipped at 1e-6 from 1, as in the protocol.
    assert METRICS["delta_log_odds"].value(case, said([0.5])) == pytest.approx(13.8155, abs=1e-4)
    far = case_of([3.0, 2.0, 1.0], 1 - 1e-12)
    assert odds.value(far, said([1e-9])) == pytest.approx(48.354, abs=1e-2)


def masked(metric: Metric, masking: Any) -> list[int]:
    """Return which of the weights a metric erases, among words of weight 0.

    So many of these that 30% of all words are the published number of words to mask.
    """
    count = next(n for n in range(8, 40) if top_count(n, 30) == masking["interval"])
    weights = masking["weights"] + [0.0] * (count - len(masking["weights"]))
    case = case_of(weights)
    (keep,) = metric.rows(case)
    return (np.flatnonzero(~keep) - 1).tolist()


@pytest.mark.parametrize("number", range(16))
def test_the_words_that_l2e_masks(number: int) -> None:
    masking = stored("l2e")["masking"][number]
    name = {"pos": "delta_log_odds", "neg": "delta_log_odds_neg"}[masking["cat"]]
    expected = [i for i, word in enumerate(masking["base"]) if word == "[MASK]"]
    assert masked(METRICS[name], masking) == expected
    if masking["cat"] == "pos":
        assert masked(METRICS["delta_log_odds:variant=l2e"], masking) == expected


def test_released_variants_run_on_request_only() -> None:
    variants = [m for name, m in METRICS.items() if ":" in name]
    assert len(variants) == 14
    assert all(m.opt_in for m in variants)
    assert sum(m.family == "faithfulness" for m in variants) == 6
