"""One forward and backward pass that records what white-box explainers read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import torch

from faithbench.errors import FaithbenchError
from faithbench.models import Model, inputs_of
from faithbench.types import Batch

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Capture:
    """Values and gradients of the target's logit, one row per example.

    `attentions` [examples, heads, queries, keys] and `hidden` [examples, tokens, width]
    are tuples over blocks; `hidden` starts with the embedding output. `position` is the
    token whose last state the classifier reads: [CLS], <s>, or GPT-2's last token.
    """

    logits: torch.Tensor
    embeddings: torch.Tensor
    embedding_gradients: torch.Tensor
    hidden: tuple[torch.Tensor, ...]
    hidden_gradients: tuple[torch.Tensor, ...]
    attentions: tuple[torch.Tensor, ...]
    attention_gradients: tuple[torch.Tensor, ...]
    position: torch.Tensor
    seconds: float


_shared: WeakKeyDictionary[Model, tuple[int, Capture]] = WeakKeyDictionary()


def capture(model: Model, batch: Batch) -> Capture:
    """Run the pass for a batch, or hand out the one already made for this very batch.

    A reused pass is charged in full to whoever reads it, seconds included, so that cost
    does not depend on which explainers run side by side.
    """
    count = len(batch.encodings)
    held = _shared.get(model)
    if held is not None and held[0] == id(batch):
        model.meter.charge(forwards=count, backwards=count, shared_seconds=held[1].seconds)
        return held[1]
    made = run_capture(model.eager(), batch)
    model.meter.charge(forwards=count, backwards=count)
    _shared[model] = (id(batch), made)
    return made


def release(model: Model) -> None:
    """Free the shared pass; the run calls this when it leaves a batch."""
    _shared.pop(model, None)


def run_capture(network: PreTrainedModel, batch: Batch) -> Capture:
    """Record one forward and backward pass on a network with readable attention."""
    start = time.perf_counter()
    with torch.enable_grad(), embedding_leaf(network) as leaf:
        out = network(
            **inputs_of(network, batch.ids, batch.types, batch.attention),
            output_attentions=True,
            output_hidden_states=True,
        )
        hidden, attentions = readable(network, out)
        chosen = out.logits.gather(1, batch.targets[:, None]).sum()
        wanted = (leaf[0], *hidden, *attentions)
        gradients = torch.autograd.grad(chosen, wanted)
    blocks = len(hidden)
    if network.device.type == "cuda":
        torch.cuda.synchronize(network.device)
    return Capture(
        logits=out.logits.detach(),
        embeddings=leaf[0].detach(),
        embedding_gradients=gradients[0],
        hidden=tuple(h.detach() for h in hidden),
        hidden_gradients=gradients[1 : 1 + blocks],
        attentions=tuple(a.detach() for a in attentions),
        attention_gradients=gradients[1 + blocks :],
        position=gradients[blocks].norm(dim=-1).argmax(dim=-1),
        seconds=time.perf_counter() - start,
    )


def readable(
    network: PreTrainedModel, out: Any
) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    """Return the hidden states and attention matrices of a pass, or say why there are none."""
    if not out.attentions or any(a is None for a in out.attentions):
        raise FaithbenchError(
            f"a {network.config.model_type} model gives no attention matrices; "
            "choose a gradient or perturbation explainer"
        )
    return tuple(out.hidden_states), tuple(out.attentions)


@contextmanager
def embedding_leaf(network: PreTrainedModel) -> Iterator[list[torch.Tensor]]:
    """Make the word embeddings the leaf that gradients flow back to, while inside."""
    leaf: list[torch.Tensor] = []

    def cut(_module: torch.nn.Module, _args: Any, output: torch.Tensor) -> torch.Tensor:
        leaf.append(output.detach().requires_grad_())
        return leaf[-1]

    handle = network.get_input_embeddings().register_forward_hook(cut)
    try:
        yield leaf
    finally:
        handle.remove()
