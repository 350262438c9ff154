"""A toy objective in one file: found once its folder is on the path of the objectives."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from faithbench.training.items import TrainingBatch
from faithbench.training.objectives import ForwardPass, objective


@objective("label-smoothing")
@dataclass(frozen=True)
class LabelSmoothing:
    """Mix the gold class with the uniform distribution (Szegedy et al. 2016, section 7)."""

    amount: float = 0.1

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        (logits,) = forward.logits
        log_probabilities = logits.log_softmax(dim=1)
        gold = log_probabilities.gather(1, batch.targets)[:, 0]
        uniform = log_probabilities.mean(dim=1)
        return -((1 - self.amount) * gold + self.amount * uniform).mean()
