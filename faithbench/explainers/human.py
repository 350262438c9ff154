"""The human rationale as an explainer: the ceiling of plausibility, and a row to compare with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from faithbench.models import Model
from faithbench.rationales import rationale_tokens
from faithbench.types import Batch, Encoding, Floats


@dataclass(frozen=True)
class Human:
    """Score the words that people marked as the reason, and no others.

    A token of the rationale has 1 divided by the number of its word's tokens, so that a marked
    word has the same score whatever pieces a tokenizer cuts it into. All is 0 without a
    rationale. It asks nothing of the model.
    """

    needs_rationale: ClassVar[bool] = True

    def __call__(self, model: Model, batch: Batch) -> torch.Tensor:
        """Return each example's rationale as scores, on the CPU."""
        scores = np.zeros(tuple(batch.ids.shape))
        for row, encoding in enumerate(batch.encodings):
            scores[row, : len(encoding.ids)] = _marked(encoding)
        return torch.from_numpy(scores)


def _marked(encoding: Encoding) -> Floats:
    """Return one score per token: its part of a marked word, or 0."""
    counted = encoding.erasable & (encoding.words >= 0)
    pieces = np.bincount(encoding.words[counted], minlength=len(encoding.word_spans))
    chosen = rationale_tokens(encoding) & counted
    scores = np.zeros(len(encoding.ids))
    scores[chosen] = 1 / pieces[encoding.words[chosen]]
    return scores
