"""Controls to compare explainers with: human rationales, random scores, and token order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from faithbench.core.types import Batch, Encoding, Floats
from faithbench.data.rationales import rationale_tokens
from faithbench.models.session import Session


@dataclass(frozen=True)
class Human:
    """Score the words that people marked as the reason, and no others.

    A token of the rationale has 1 divided by the number of its word's tokens, so that a marked
    word has the same score whatever pieces a tokenizer cuts it into. All is 0 without a
    rationale. It asks nothing of the model.
    """

    needs_rationale: ClassVar[bool] = True
    reads_model: ClassVar[bool] = False

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return each example's rationale as scores, on the CPU."""
        scores = np.zeros(tuple(batch.ids.shape))
        for row, encoding in enumerate(batch.encodings):
            scores[row, : len(encoding.ids)] = _marked(encoding)
        return torch.from_numpy(scores)


def _marked(encoding: Encoding) -> Floats:
    """Return one score per token: its part of a marked word, or 0."""
    counted = encoding.erasable & (encoding.words >= 0)
    pieces = np.bincount(encoding.words[counted], minlength=len(encoding.word_spans))
    marked = rationale_tokens(encoding) & counted
    scores = np.zeros(len(encoding.ids))
    scores[marked] = 1 / pieces[encoding.words[marked]]
    return scores


@dataclass(frozen=True)
class Random:
    """Score each token with a random number.

    Drawn per example from its own seed, so that batches and their order change nothing.
    """

    stochastic: ClassVar[bool] = True
    reads_model: ClassVar[bool] = False

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return uniform scores."""
        scores = torch.zeros(batch.ids.shape, dtype=torch.float64)
        for row, (encoding, seed) in enumerate(zip(batch.encodings, batch.seeds, strict=True)):
            draw = torch.Generator().manual_seed(seed)
            scores[row, : len(encoding.ids)] = torch.rand(
                len(encoding.ids), generator=draw, dtype=torch.float64
            )
        return scores


@dataclass(frozen=True)
class FirstTokens:
    """Score tokens by their position, the first one highest.

    What an explainer must beat where important words tend to stand early.
    """

    reads_model: ClassVar[bool] = False

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return scores that fall from 1 towards 0 along the text."""
        lengths = batch.attention.sum(dim=1, keepdim=True)
        positions = torch.arange(batch.ids.shape[1], device=batch.ids.device)
        return 1 - positions / lengths
