"""The most that can flow from one top node of a layered graph down to each bottom node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from faithbench.types import Floats

UNITS = 2**30
"""What a capacity of 1 becomes: scipy counts in int32, and what leaves a node sums to 1."""


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
    places = (np.concatenate(sources), np.concatenate(sinks))
    return csr_array((np.concatenate(values), places), shape=(size, size))
