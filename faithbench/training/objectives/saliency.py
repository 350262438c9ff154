"""Saliency Learning (Ghaeini et al., NAACL 2019): gradients that agree with rationales."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Bools
from faithbench.data.rationales import rationale_tokens
from faithbench.models.model import Model
from faithbench.training.forward import forward as run_forward
from faithbench.training.items import TrainingBatch, TrainingSet, collate_items
from faithbench.training.objectives import objective
from faithbench.training.objectives.protocol import Capture, ForwardPass

LEVELS = ("word", "intermediate", "decision")
SCORES = ("sum", "gate", "contrast")
OUTPUTS = ("probability", "logit")

NO_SIGNAL = 1e-4
"""Least share of a gradient's norm that its sum over dimensions must have to be learnt from."""

_PROBED = 8
"""Items on which `check` measures that share."""


@objective("saliency", papers=("ghaeini2019saliency",))
@dataclass(frozen=True)
class Saliency:
    """Ask the marked words to speak for the gold class, by their gradient (Eq. 1 and 4).

    At each level, the hinge max(0, -saliency) is summed over marked words and averaged over the
    batch. `score` is the saliency of a word: `sum` of its gradient over dimensions, as the paper;
    `gate`, the gradient of a factor of its vector (vector times gradient), which does not depend
    on the basis; `contrast`, the gate's value above the mean of the unmarked words, which cannot
    be had by making all words positive. `of` is what is differentiated: the gold class's
    `probability` after the softmax, or its `logit`. Texts without a rationale add nothing.
    """

    levels: str = "word+intermediate+decision"
    weight: float = 0.5
    score: str = "sum"
    of: str = "probability"

    auxiliary: ClassVar[bool] = True
    needs_rationale: ClassVar[bool] = True
    captures: ClassVar[frozenset[Capture]] = frozenset({"levels"})

    def __post_init__(self) -> None:
        for level in self.names:
            if level not in LEVELS:
                raise unknown("level", level, LEVELS)
        if self.score not in SCORES:
            raise unknown("score of saliency", self.score, SCORES)
        if self.of not in OUTPUTS:
            raise unknown("output of saliency", self.of, OUTPUTS)

    @property
    def names(self) -> tuple[str, ...]:
        """The levels by name, each once."""
        return tuple(dict.fromkeys(self.levels.split("+")))

    def check(self, model: Model, training_set: TrainingSet) -> None:
        """Refuse a model without such levels, or with a level whose sums are always 0."""
        if not model.kind.has_classes:
            raise FaithbenchError(
                f"saliency learns from the gradient of a class, and a {model.kind.model_noun} has "
                "none; choose a task with classes"
            )
        marked = [item for item in training_set.items if rationale_tokens(item.encoding).any()]
        batch = collate_items(model, marked[:_PROBED], None)
        with torch.enable_grad():
            seen = run_forward(model, batch, self.captures)
        architecture = model.network.config.model_type
        if absent := [name for name in self.names if name not in seen.levels]:
            raise FaithbenchError(
                f"a {architecture} model has no level {absent[0]!r}; choose from "
                f"{', '.join(seen.levels)}, such as saliency:levels=word"
            )
        if self.score != "sum":
            return
        gradients = level_gradients(seen, batch.targets[:, 0], self.names, "logit")
        for name, gradient in gradients.items():
            if name != "decision" and signal_of_sums(gradient, batch.attention) < NO_SIGNAL:
                raise FaithbenchError(
                    f"the gradient of a {architecture} model sums to 0 over the dimensions of "
                    f"level {name!r}, which a layer norm follows; give score=gate, or other levels"
                )

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> Tensor:
        """Return the hinge of all levels."""
        encodings = [item.encoding for item in batch.items]
        width, device = batch.ids.shape[1], batch.ids.device
        marks = padded([rationale_tokens(encoding) for encoding in encodings], width, device)
        if not marks.any():
            return forward.logits[0].new_zeros(())
        unmarked = padded([encoding.erasable for encoding in encodings], width, device) & ~marks
        gradients = level_gradients(
            forward, batch.targets[:, 0], self.names, self.of, create_graph=True
        )
        hinges = [
            hinge(saliency(forward.levels[name], gradient, self.score), marks, unmarked, self.score)
            for name, gradient in gradients.items()
        ]
        return self.weight * torch.stack(hinges).sum()


def level_gradients(
    forward: ForwardPass,
    classes: Tensor,
    names: Sequence[str],
    of: str,
    *,
    create_graph: bool = False,
) -> Mapping[str, Tensor]:
    """Return the gradient of each item's class at each level, in the level's own shape."""
    logits = forward.logits[0]
    values = logits.softmax(dim=-1) if of == "probability" else logits
    # Items do not see each other, so the gradient of the sum is that of each item's own value.
    total = values.gather(1, classes[:, None]).sum()
    tensors = [forward.levels[name] for name in names]
    gradients = torch.autograd.grad(total, tensors, create_graph=create_graph)
    return dict(zip(names, gradients, strict=True))


def saliency(level: Tensor, gradient: Tensor, score: str) -> Tensor:
    """Return one number per token from a level [items, tokens, width] or [items, tokens]."""
    values = gradient if score == "sum" else level * gradient
    return values.sum(dim=-1) if values.dim() > 2 else values


def hinge(scores: Tensor, marks: Tensor, unmarked: Tensor, score: str = "sum") -> Tensor:
    """Sum max(0, -score) over the marked tokens of an item, and average over items.

    With `contrast`, the mean of the item's unmarked tokens takes the place of 0.
    """
    least = torch.zeros_like(scores[:, :1])
    if score == "contrast":
        least = (scores * unmarked).sum(1, keepdim=True) / unmarked.sum(1, keepdim=True).clamp(1)
    return ((least - scores).clamp(min=0) * marks).sum(dim=1).mean()


def signal_of_sums(gradient: Tensor, attention: Tensor) -> float:
    """Return the size of the gradient's sums over dimensions, as a share of its norms."""
    real = attention.bool()
    sums, norms = gradient.sum(dim=-1)[real], gradient.norm(dim=-1)[real]
    size = norms.square().mean().sqrt()
    # A gradient that is 0 everywhere, such as that of an untrained head, says nothing of sums.
    return float(sums.square().mean().sqrt() / size) if size > 0 else 1.0


def padded(rows: Sequence[Bools], width: int, device: torch.device) -> Tensor:
    """Stack marks of tokens, with False at padding."""
    stacked = np.zeros((len(rows), width), dtype=bool)
    for number, row in enumerate(rows):
        stacked[number, : len(row)] = row
    return torch.tensor(stacked, device=device)
