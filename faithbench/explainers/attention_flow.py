"""Explainers that compute maximum flows through layered attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from faithbench.core.errors import CannotServeError
from faithbench.core.types import Batch, Encoding, Floats
from faithbench.explainers.passes.capture import capture_square_attention
from faithbench.models.model import Model
from faithbench.models.session import Session


@dataclass(frozen=True)
class AttentionFlow:
    """Find the maximum flow through attention to each token.

    Attention flow, Abnar & Zuidema 2020: nodes are tokens at every level, edges have the
    capacities of attention, heads averaged, with the identity added for the residual and rows
    normalised; a token's score is the maximum flow to it from the token that the classifier
    reads. The released code then divides each row by its sum, which changes no ranking. One
    maximum flow per token is slow, so inputs of more than `max_tokens` are refused.
    """

    revision: ClassVar[int] = 2  # 2: charged with a forward pass alone.
    max_tokens: int = 128

    def check(self, model: Model, encodings: Sequence[Encoding]) -> None:
        """Refuse inputs that are too long; a run asks this before any work."""
        self._check_length(max(len(encoding.ids) for encoding in encodings))

    def _check_length(self, longest: int) -> None:
        if longest > self.max_tokens:
            raise CannotServeError(
                f"attention flow was asked for an input of {longest} tokens and takes at most "
                f"{self.max_tokens}; set max_tokens higher, or choose rollout"
            )

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the maximum flow to each token; padding gets 0."""
        lengths = [len(encoding.ids) for encoding in batch.encodings]
        self._check_length(max(lengths))
        seen = capture_square_attention(session, batch)
        # Flows are found on the host, in float64: one copy brings the attention of all examples.
        attentions, positions = torch.stack(seen.attentions).cpu(), seen.position.tolist()
        scores = np.zeros(batch.ids.shape)
        for row, (size, position) in enumerate(zip(lengths, positions, strict=True)):
            heads = attentions[:, row, :, :size, :size].double()
            layers = heads.mean(dim=1).numpy() + np.eye(size)
            layers = layers / layers.sum(axis=-1, keepdims=True)
            scores[row, :size] = max_flows(list(layers), position)
        return torch.from_numpy(scores).to(attentions.dtype)


UNITS = 2**30
"""Integer value of a capacity of 1: scipy's flows are int32, and no node emits more than 1."""


def max_flows(layers: Sequence[Floats], top: int) -> Floats:
    """Return the maximum flow from node `top` above the last layer to each node below the first.

    Layer l [nodes, nodes] holds the capacity from each node above it to each node below it, its
    rows summing to at most 1. Capacities are rounded to 2^-30, since scipy's Dinic in C counts
    in integers; networkx takes floats, but is orders of magnitude slower.
    """
    graph = layered_graph(layers)
    nodes = len(layers[0])
    source = len(layers) * nodes + top
    flows = [maximum_flow(graph, source, sink).flow_value for sink in range(nodes)]
    return np.array(flows, dtype=np.float64) / UNITS


def layered_graph(layers: Sequence[Floats]) -> csr_array:
    """Return capacities in units between (layers + 1) levels of nodes, the lowest level first."""
    nodes = len(layers[0])
    values: list[NDArray[np.int32]] = []
    sources: list[NDArray[np.int32]] = []
    sinks: list[NDArray[np.int32]] = []
    for level, layer in enumerate(layers):
        units = np.rint(layer * UNITS).astype(np.int32)
        above, below = np.nonzero(units)
        values.append(units[above, below])
        sources.append((above + (level + 1) * nodes).astype(np.int32))
        sinks.append((below + level * nodes).astype(np.int32))
    size = (len(layers) + 1) * nodes
    edges = (np.concatenate(sources), np.concatenate(sinks))
    return csr_array((np.concatenate(values), edges), shape=(size, size))
