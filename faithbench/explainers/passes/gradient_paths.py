"""Gradients at many points of embedding space, batched across examples under a token budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import torch
import torch.nn.functional as F

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.passes.capture import against_others, count_others, embedding_leaf
from faithbench.models.encoding import inputs_of
from faithbench.models.model import Model
from faithbench.models.packs import Pack
from faithbench.models.session import Session

Baseline = Literal["zero", "pad", "mask"]
Point = tuple[int, int]
"""An example of the batch, and the number of the point."""

TOKENS = 2048
"""Padded tokens per pass: enough to fill the machine, little enough to fit its memory."""


def embed(model: Model, ids: torch.Tensor) -> torch.Tensor:
    """Look up word embeddings, without positions or segments."""
    with torch.no_grad():
        embeddings: torch.Tensor = model.network.get_input_embeddings()(ids)
    return embeddings


def baseline_embeddings(model: Model, batch: Batch, kind: str) -> torch.Tensor:
    """Return embeddings in which what may be erased is replaced; special tokens stay.

    `zero` is the zero vector, at every position as in captum's examples; `pad` and `mask`
    are the embedding of that token at the erasable positions.
    """
    tokenizer = model.tokenizer
    if kind == "zero":
        return torch.zeros_like(embed(model, batch.ids))
    ids = {"pad": tokenizer.pad_token_id, "mask": model.erasure_token("mask")[1]}
    if kind not in ids:
        raise FaithbenchError(f"baseline {kind!r} is not one of zero, pad, mask")
    return embed(model, batch.ids.masked_fill(batch.erasable, int(ids[kind])))


def sum_gradients(
    session: Session,
    batch: Batch,
    count: int,
    place: Callable[[Sequence[Point]], torch.Tensor],
    weigh: Callable[[Sequence[Point], torch.Tensor], torch.Tensor],
) -> torch.Tensor:
    """Sum weighed gradients of the target's logit over `count` points of each example.

    `place` gives the embeddings [points, tokens, width] of some points, `weigh` what their
    gradients add. Points of all examples of one length share passes of at most TOKENS tokens:
    without padding there is no mask, and attention is quicker.
    """
    network, fast = session.model.network, session.engine.differentiable
    total = torch.zeros_like(embed(session.model, batch.ids))
    for size, examples in _by_length(batch).items():
        points = [(row, step) for row in examples for step in range(count)]
        chunk = max(1, TOKENS // size)
        for start in range(0, len(points), chunk):
            part = points[start : start + chunk]
            rows = torch.tensor([row for row, _ in part], device=batch.ids.device)
            ids, types, attention = (
                t[rows, :size] for t in (batch.ids, batch.types, batch.attention)
            )
            with torch.enable_grad(), embedding_leaf(network, place(part)[:, :size]) as leaf:
                if fast is not None:
                    logits = fast(Pack.even(ids, types))
                else:
                    logits = network(**inputs_of(network, ids, types, attention))[batch.output]
            encodings = [batch.encodings[row] for row, _ in part]
            with torch.enable_grad():
                targets = logits.gather(1, batch.targets[rows, None])[:, 0]
                targets = against_others(network, encodings, leaf[0], targets)
                (gradient,) = torch.autograd.grad(targets.sum(), leaf[0])
            ran = len(part) + count_others(encodings)
            session.meter.charge(forwards=ran, backwards=ran)
            padded = F.pad(gradient, (0, 0, 0, total.shape[1] - size))
            total = total.index_add(0, rows, weigh(part, padded))
    return total


def _by_length(batch: Batch) -> dict[int, list[int]]:
    """Group the examples of a batch by their number of real tokens."""
    groups: dict[int, list[int]] = {}
    for row, encoding in enumerate(batch.encodings):
        groups.setdefault(len(encoding.ids), []).append(row)
    return groups


def target_logits(session: Session, batch: Batch, embeddings: torch.Tensor) -> torch.Tensor:
    """Return the target's logit of each example, of a choice its log-odds, at the embeddings."""
    network = session.model.network
    with torch.no_grad(), embedding_leaf(network, embeddings):
        logits = network(**inputs_of(network, batch.ids, batch.types, batch.attention))[
            batch.output
        ]
    session.meter.charge(forwards=len(batch.ids) + count_others(batch.encodings))
    targets: torch.Tensor = logits.gather(1, batch.targets[:, None]).squeeze(1)
    with torch.no_grad():
        return against_others(network, batch.encodings, embeddings, targets)
