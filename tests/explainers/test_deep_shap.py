"""The DeepSHAP explainer: scores that add up, baselines, cost, and what changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from explainers import ARCHITECTURES
from faithbench.encoding import inputs_of
from faithbench.errors import FaithbenchError
from faithbench.explainers.deep_shap import DeepShap, deep_lift
from faithbench.sharing import heads_of
from faithbench.testing import batch_of as conformance_batch
from faithbench.testing import check_explainer
from faithbench.tiny import tiny_model as tiny
from faithbench.types import Example

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
PAIRS = ["good film || the plot is dull", "a great plot is not very good || the film"]
BASELINES = ("mask", "pad", "zero")


def test_it_keeps_the_rules_of_explainers() -> None:
    check_explainer(DeepShap())


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_scores_sum_to_the_difference_of_logits(
    architecture: str, classes: int, baseline: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture, classes)
    for batch in (
        batch_of(model, TEXTS, [0, 1, classes - 1]),
        batch_of(model, PAIRS, [1, classes - 1], "both"),
        batch_of(model, PAIRS, [1, classes - 1], "text_b"),
    ):
        found = deep_lift(model, batch, baseline)
        assert found.difference.abs().min() > 1e-6
        assert found.gap.abs().max() < 1e-9
        torch.testing.assert_close(found.scores.sum(1), found.difference, rtol=0, atol=1e-9)
        # What is in both cannot contribute: special tokens, the other text, padding.
        assert not found.scores[~batch.erasable].any()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_both_ends_of_an_answer_add_up(architecture: str) -> None:
    model = tiny(architecture, qa=True)
    batch = conformance_batch(model, [Example("e", "the film is good", 0, "a plot is dull")])
    for part in heads_of(model, batch):
        found = deep_lift(model, part)
        assert found.difference.abs().min() > 1e-6
        assert found.gap.abs().max() < 1e-9


@pytest.mark.parametrize("baseline", ["mask", "pad"])
@pytest.mark.parametrize("architecture", ["bert", "distilbert", "electra", "albert"])
def test_the_difference_is_that_of_the_plain_network(
    architecture: str, baseline: Any, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, TEXTS, [0, 1, 1])
    token = model.erasure_token(baseline)[1]
    rows = (batch.ids, batch.ids.masked_fill(batch.erasable, token))
    logits = [
        model.network(**inputs_of(model.network, ids, batch.types, batch.attention)).logits
        for ids in rows
    ]
    expected = (logits[0] - logits[1]).gather(1, batch.targets[:, None])[:, 0]
    found = DeepShap(baseline)(model, batch).sum(1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-9)


def test_float32_agrees_with_float64(tiny_model: Any, batch_of: Any) -> None:
    narrow, wide = tiny_model("bert", 2, torch.float32), tiny_model("bert", 2, torch.float64)
    found = deep_lift(narrow, batch_of(narrow, TEXTS, [0, 1, 1]))
    assert found.scores.dtype == torch.float32
    assert found.gap.abs().max() < 1e-6
    expected = deep_lift(wide, batch_of(wide, TEXTS, [0, 1, 1]))
    torch.testing.assert_close(found.scores.double(), expected.scores, rtol=0, atol=1e-6)


def test_half_precision_is_widened(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert", 2, torch.bfloat16)
    found = deep_lift(model, batch_of(model, TEXTS, [0, 1, 1]))
    assert found.scores.dtype == torch.float32
    assert found.gap.abs().max() < 1e-6


def test_a_token_that_is_the_baseline_scores_nothing(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, ["good [MASK] film"], [1])
    assert batch.erasable[0].tolist() == [False, True, True, True, False]
    scores = DeepShap()(model, batch)[0]
    assert scores[2] == 0
    assert scores[[1, 3]].abs().min() > 1e-6


def test_a_batch_is_its_examples(tiny_model: Any, batch_of: Any) -> None:
    for architecture in ("bert", "gpt2"):
        model = tiny_model(architecture)
        together = DeepShap()(model, batch_of(model, TEXTS, [0, 1, 1]))
        for row, (text, target) in enumerate(zip(TEXTS, [0, 1, 1], strict=True)):
            alone = DeepShap()(model, batch_of(model, [text], [target]))[0]
            torch.testing.assert_close(together[row, : len(alone)], alone, rtol=0, atol=1e-12)


def test_input_and_baseline_are_both_charged(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    start = model.meter.total
    scores = DeepShap()(model, batch_of(model, TEXTS, [0, 1, 1]))
    spent = model.meter.since(start)
    assert (spent.forwards, spent.backwards) == (6, 6)
    assert not scores.requires_grad


def test_another_baseline_is_refused(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    with pytest.raises(FaithbenchError, match="baseline 'mean' is not one of"):
        DeepShap("mean")(model, batch_of(model, TEXTS, [0, 1, 1]))
