"""One pass of the network in training, with what the objectives capture of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.passes.capture import embedding_leaf
from faithbench.models.encoding import inputs_of
from faithbench.models.model import Model
from faithbench.training.items import TrainingBatch
from faithbench.training.objectives.protocol import Capture, ForwardPass

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def make_readable(model: Model, captures: frozenset[Capture]) -> None:
    """Let the network show what is captured of it; without captures nothing changes.

    Fused attention keeps no probabilities, and has no gradient of its gradient on a CPU.
    """
    if captures and not has_levels(model.network):
        model.network.set_attn_implementation("eager")


def has_levels(network: PreTrainedModel) -> bool:
    """Return whether an architecture names its own levels, as those of this package do."""
    return bool(getattr(network.config, "has_levels", False))


def forward(model: Model, batch: TrainingBatch, captures: frozenset[Capture]) -> ForwardPass:
    """Run the network on a batch, and keep what is captured inside the graph."""
    network: Any = model.network
    inputs: dict[str, Any] = {**inputs_of(network, batch.ids, batch.types, batch.attention)}
    own = has_levels(network)
    if "levels" in captures:
        inputs["output_levels" if own else "output_hidden_states"] = True
    if "attentions" in captures:
        inputs["output_attentions"] = True
    with ExitStack() as hooks:
        words: list[torch.Tensor] = []
        if "levels" in captures:  # embeddings that are not trained get a gradient by this
            words = hooks.enter_context(embedding_leaf(network, cut=False))
        outputs = network(**inputs)
    attentions = tuple(outputs.get("attentions") or ()) if "attentions" in captures else ()
    if "attentions" in captures and (not attentions or any(a is None for a in attentions)):
        raise FaithbenchError(
            f"a {network.config.model_type} model gives no attention, which an objective of this "
            "training reads; choose another --base or --objective"
        )
    levels: Mapping[str, torch.Tensor] = {}
    if "levels" in captures:
        levels = outputs["levels"] if own else _levels(words[0], outputs["hidden_states"])
    return ForwardPass(tuple(outputs[name] for name in model.outputs), attentions, levels)


def _levels(words: torch.Tensor, hidden: tuple[torch.Tensor, ...]) -> dict[str, torch.Tensor]:
    """Name the levels of a Transformer: its word embeddings and its middle block's output."""
    # `hidden` starts with the embeddings as the first block reads them.
    return {"word": words, "intermediate": hidden[len(hidden) // 2]}
