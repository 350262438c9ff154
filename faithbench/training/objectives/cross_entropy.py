"""Cross-entropy with the gold label or answer: the objective of the bundled models."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from faithbench.training.items import TrainingBatch
from faithbench.training.objectives import ForwardPass, objective


@objective("cross-entropy")
@dataclass(frozen=True)
class CrossEntropy:
    """Minimise the mean cross-entropy, weighted by class where classes are unbalanced.

    For a question answerer it is the mean of two: over positions of the answer's first and of
    its last token.
    """

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        """Return the loss of a batch."""
        logits = forward.logits
        if len(logits) > 1:  # the classes of each output are positions, and padding is no answer
            padding = batch.attention == 0
            logits = tuple(scores.masked_fill(padding, -torch.inf) for scores in logits)
        losses = [
            F.cross_entropy(scores, batch.targets[:, column], weight=batch.class_weights)
            for column, scores in enumerate(logits)
        ]
        return torch.stack(losses).mean()
