"""The AttnLRP explainer: the shared rules, its cost, and what padding and precision change."""

from __future__ import annotations

from typing import Any

import torch

from faithbench.explainers.attn_lrp import AttnLrp
from faithbench.testing import check_explainer

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]


def test_it_keeps_the_rules_of_explainers() -> None:
    check_explainer(AttnLrp())


def test_one_forward_and_one_backward_each(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    start = model.meter.total
    scores = AttnLrp()(model, batch_of(model, TEXTS, [0, 1, 1]))
    spent = model.meter.since(start)
    assert (spent.forwards, spent.backwards) == (3, 3)
    assert not scores.requires_grad


def test_padding_scores_nothing(tiny_model: Any, batch_of: Any) -> None:
    for architecture in ("bert", "gpt2"):
        model = tiny_model(architecture)
        batch = batch_of(model, TEXTS, [0, 1, 1])
        assert not AttnLrp()(model, batch)[batch.attention == 0].any()


def test_float32_agrees_with_float64(tiny_model: Any, batch_of: Any) -> None:
    narrow, wide = tiny_model("bert", 2, torch.float32), tiny_model("bert", 2, torch.float64)
    found = AttnLrp()(narrow, batch_of(narrow, TEXTS, [0, 1, 1]))
    assert found.dtype == torch.float32
    expected = AttnLrp()(wide, batch_of(wide, TEXTS, [0, 1, 1]))
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-6)
