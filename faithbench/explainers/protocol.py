"""What an explainer is: the one required call, and what it may offer besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from faithbench.core.types import Batch

if TYPE_CHECKING:
    import torch

from faithbench.models.session import Session


class Explainer(Protocol):
    """A frozen dataclass whose fields are its settings; returns one score per token."""

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Explain the batch's targets; special tokens and padding may get any score."""
        ...
