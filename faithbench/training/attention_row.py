"""The row of attention that a classifier reads, inside a training's graph."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from faithbench.explainers.passes.capture import run_capture
from faithbench.models.encoding import collate
from faithbench.models.model import Model
from faithbench.training.forward import forward
from faithbench.training.items import TrainingItem, collate_items


@dataclass(frozen=True)
class AttentionRow:
    """Which row that is: the first, or that of each text's last token, as GPT-2's."""

    reads_last: bool

    @classmethod
    def of(cls, model: Model, item: TrainingItem) -> AttentionRow:
        """Find it by the gradient of one item; a network without attention is refused."""
        forward(model, collate_items(model, [item], None), frozenset({"attentions"}))
        training = model.network.training
        model.network.eval()
        seen = run_capture(model.network, collate(model, [item.encoding], [0], [0]))
        model.network.train(training)
        # The row of one query is the first and the last, however long the text.
        one_query = getattr(model.network.config, "has_one_query", False)
        return cls(not one_query and int(seen.position[0]) == len(item.encoding.ids) - 1)

    def read(self, attentions: tuple[torch.Tensor, ...], real: torch.Tensor) -> torch.Tensor:
        """Return the last block's attention [items, tokens], heads averaged; `real` marks words."""
        attention = attentions[-1].mean(dim=1)
        if not self.reads_last:
            return attention[:, 0]
        last = real.sum(dim=1) - 1
        return attention[torch.arange(len(attention), device=attention.device), last]
