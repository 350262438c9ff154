"""Attention times gradient, by the last block: a template for white-box explainers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from faithbench import explainer

if TYPE_CHECKING:
    import torch

    from faithbench.core.types import Batch
    from faithbench.models.session import Session


@explainer("my-white-box")
@dataclass(frozen=True)
class MyWhiteBox:
    """Weigh the last block's attention by its gradient, at the token the classifier reads."""

    positive: bool = True

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return one score per token."""
        from faithbench.explainers.passes.capture import capture

        # Made once per batch; all built-in explainers read this very pass, and each reader is
        # charged for it in full.
        seen = capture(session, batch)
        weighted = (seen.attentions[-1] * seen.attention_gradients[-1]).mean(dim=1)
        rows = weighted[range(len(batch.ids)), seen.position]
        return rows.clamp(min=0) if self.positive else rows
