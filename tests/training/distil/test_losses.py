"""The losses of L2E against the values of the released code and of the paper's formulas."""

from __future__ import annotations

import json
import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.metrics.stability import five_labels
from faithbench.training.distil.losses import (
    label_losses,
    label_losses_released,
    pairs_of,
    ranking_losses,
    ranking_losses_released,
    tags_of,
)
from tests.support.paths import ROOT

CASES: list[dict[str, Any]] = json.loads(
    (ROOT / "tests/reference/golden/metrics/l2e_losses.json").read_text()
)


def words_of(case: dict[str, Any], positions: int | None = None) -> torch.Tensor:
    """Mark the words between the tags; the last case has padding after them."""
    words = torch.zeros(1, positions or len(case["scores_rank"]), dtype=torch.bool)
    words[0, 1 : len(case["weights"]) + 1] = True
    return words


def table(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)[None]


@pytest.mark.parametrize("case", CASES)
def test_labels_are_those_of_the_released_code(case: dict[str, Any]) -> None:
    count = len(case["weights"])
    assert five_labels(np.array(case["weights"])).tolist() == case["labels_five"][1 : count + 1]


@pytest.mark.parametrize("case", CASES)
def test_label_losses(case: dict[str, Any]) -> None:
    words, logits = words_of(case), table(case["logits_five"])
    labels = torch.full_like(words, 0, dtype=torch.long)
    labels[words] = torch.tensor(five_labels(np.array(case["weights"])))
    released = label_losses_released(logits, labels, words)
    assert released.item() == pytest.approx(case["ce_loss_formula"], abs=5e-6)
    # The paper's is without the two tags, which the released code trains to be neutral.
    neutral = -logits.log_softmax(dim=-1)[0, :, 2]
    tags = tags_of(words)[0]
    assert tags.nonzero().flatten().tolist() == [0, len(case["weights"]) + 1]
    paper = label_losses(logits, labels, words)
    assert paper.item() == pytest.approx(released.item() - neutral[tags].sum().item())


@pytest.mark.parametrize("case", CASES)
def test_ranking_losses(case: dict[str, Any]) -> None:
    words, scores = words_of(case), table(case["scores_rank"])
    weights = table(case["tgt_with_tags"])
    paper = ranking_losses(scores, weights.abs(), words).item()
    assert paper == pytest.approx(case["rank_loss_paper"], abs=1e-12)
    released = ranking_losses_released(scores, weights, words).item()
    assert released == pytest.approx(case["rank_loss_formula"], abs=1e-8)
    count = len(case["weights"])
    assert pairs_of(words).tolist() == [count * (count - 1) // 2]


def test_signed_ranking_is_the_sum_over_pairs() -> None:
    """By hand: of 2 and -3 the first is ahead, though -3 is the larger one; ties are the first's.

    Two texts in one batch, the second shorter, have the losses they have alone.
    """
    weights = torch.tensor([[0.0, 2.0, -3.0, 2.0, 0.0], [0.0, 1.0, 4.0, 0.0, 0.0]])
    scores = torch.tensor([[9.0, 0.5, 0.1, -0.7, 9.0], [9.0, 1.0, 3.0, 9.0, 9.0]])
    words = torch.tensor([[0, 1, 1, 1, 0], [0, 1, 1, 0, 0]], dtype=torch.bool)
    first, second = ranking_losses(scores, weights, words).tolist()
    gaps = [0.5 - 0.1, 0.5 + 0.7, -0.7 - 0.1]  # 1 before 2, 1 before 3 (a tie), 3 before 2
    assert first == pytest.approx(sum(math.log1p(math.exp(-gap)) for gap in gaps))
    assert second == pytest.approx(math.log1p(math.exp(-2.0)))
    assert len(list(combinations(range(3), 2))) == pairs_of(words)[0]


def test_a_label_that_is_none_of_the_five() -> None:
    words = torch.tensor([[False, True, True]])
    with pytest.raises(FaithbenchError, match="label 5 is none of the five"):
        label_losses(torch.zeros(1, 3, 5), torch.tensor([[7, 1, 5]]), words)
    with pytest.raises(FaithbenchError, match="label -100 is none of the five"):
        label_losses(torch.zeros(1, 3, 5), torch.tensor([[0, -100, 1]]), words)
