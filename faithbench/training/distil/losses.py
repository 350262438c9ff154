"""The losses of L2E (Situ et al. 2021, section 3), as the paper has them and as its code does.

All are sums over a text, as in the paper: who wants means divides by `pairs_of` or the number of
labels. Texts are rows of a padded batch whose first column is the first tag, and whose last tag
stands right after the text. The paper compares words alone; the released code also its tags.
"""

from __future__ import annotations

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.metrics.stability import HIGH_POSITIVE, NEUTRAL

TAG = -100.0
"""The weight that the released code gives to tags."""


def label_losses(logits: torch.Tensor, labels: torch.Tensor, words: torch.Tensor) -> torch.Tensor:
    """Return, per text, the sum over its words of the negative log-likelihood of their labels.

    `logits` are [texts, positions, 5], `labels` [texts, positions], and `words` marks the
    positions that count.
    """
    outside = (labels[words] < 0) | (labels[words] > HIGH_POSITIVE)
    if bool(outside.any()):
        raise FaithbenchError(
            f"label {int(labels[words][outside][0])} is none of the five, which are 0, high "
            f"negative, to {HIGH_POSITIVE}, high positive; label weights with five_labels"
        )
    chosen = logits.log_softmax(dim=-1).gather(2, labels.clamp(min=0)[:, :, None])[:, :, 0]
    return -chosen.masked_fill(~words, 0).sum(dim=1)


def label_losses_released(
    logits: torch.Tensor, labels: torch.Tensor, words: torch.Tensor
) -> torch.Tensor:
    """Return the same as the released code has it: both tags are trained to be neutral."""
    tags = tags_of(words)
    return label_losses(logits, labels.masked_fill(tags, NEUTRAL), words | tags)


def ranking_losses(
    scores: torch.Tensor, weights: torch.Tensor, words: torch.Tensor
) -> torch.Tensor:
    """Return, per text, the pairwise logistic loss over all pairs of its words.

    The word of a pair whose weight is larger should have the larger score; of equal weights it is
    the earlier one. The paper's weights are magnitudes: `weights.abs()`.
    """
    first = _firsts(weights)
    losses = _pair_losses(scores, first)
    return losses.masked_fill(~_pairs(words), 0).sum(dim=(1, 2))


def ranking_losses_released(
    scores: torch.Tensor, weights: torch.Tensor, words: torch.Tensor
) -> torch.Tensor:
    """Return the same as the released code has it.

    Its pairs include the tags, except for the pair of both. Tags weigh -100, of which the code
    takes the magnitude: the last tag wins against every word, against the intention. (The first
    tag loses to all, because it is the earlier one of its pairs.) A pair of equal magnitudes adds
    ln 1/2 to its loss, and the sum is divided by the text's length, tags included.
    """
    tags = tags_of(words)
    every = words | tags
    sizes = weights.abs().masked_fill(tags, -TAG)
    ahead = _firsts(sizes)
    front = torch.zeros_like(words)
    front[:, 0] = True
    # Pairs of the first tag come first in the code, with the comparison the other way round.
    ahead = ahead & ~front[:, :, None]
    losses = _pair_losses(scores, ahead)
    ties = (sizes[:, :, None] == sizes[:, None, :]) & words[:, :, None] & words[:, None, :]
    losses = losses + torch.where(ties, torch.log(torch.tensor(0.5)).to(losses), 0.0)
    counted = _pairs(every) & ~(tags[:, :, None] & tags[:, None, :])
    total = losses.masked_fill(~counted, 0).sum(dim=(1, 2))
    return total / every.sum(dim=1)


def pairs_of(words: torch.Tensor) -> torch.Tensor:
    """Return the number of pairs of words in each text."""
    count = words.sum(dim=1)
    return count * (count - 1) // 2


def tags_of(words: torch.Tensor) -> torch.Tensor:
    """Mark the tags: the first position, and the one right after the last word."""
    positions = torch.arange(words.shape[1], device=words.device)
    last = torch.where(words, positions, -1).amax(dim=1) + 1
    return (positions[None, :] == 0) | (positions[None, :] == last[:, None])


def _firsts(weights: torch.Tensor) -> torch.Tensor:
    """Mark the pairs [texts, i, j] whose first word is ahead; of equal ones it is."""
    return weights[:, :, None] >= weights[:, None, :]


def _pairs(words: torch.Tensor) -> torch.Tensor:
    """Mark the pairs [texts, i, j] of positions i < j that both count."""
    return (words[:, :, None] & words[:, None, :]).triu(diagonal=1)


def _pair_losses(scores: torch.Tensor, first: torch.Tensor) -> torch.Tensor:
    """Return -log sigmoid(score ahead - score behind) of all pairs [texts, i, j]."""
    gaps = scores[:, :, None] - scores[:, None, :]
    return torch.nn.functional.softplus(torch.where(first, -gaps, gaps))
