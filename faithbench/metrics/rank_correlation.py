"""Kendall's tau-b, the agreement of two orders, by counting pairs."""

from __future__ import annotations

import math

import numpy as np

from faithbench.core.types import Bools, Floats, Ints

_BLOCK = 64
_EARLIER = np.tri(_BLOCK, k=-1, dtype=bool).T
"""The pairs (i, j) of a block with i before j."""


def kendall(first: Floats, second: Floats) -> float | None:
    """Return tau-b, or None where either side is constant and there is no order to agree on.

    This is the statistic of `scipy.stats.kendalltau` to the last bit, without its p value, its
    import and most of its time.
    """
    n = len(first)
    if n < 2 or np.isnan(first).any() or np.isnan(second).any():
        return None
    in_order = np.sort(second)
    # Ranks are integers as small as n allows: many of them are compared at a time.
    ranks = in_order.searchsorted(second).astype(np.min_scalar_type(n))
    order = np.lexsort((ranks, first))
    first, ranks = first[order], ranks[order]
    steps, rank_steps = first[1:] != first[:-1], in_order[1:] != in_order[:-1]
    pairs, tied, rank_tied = n * (n - 1) // 2, _tied_pairs(steps), _tied_pairs(rank_steps)
    if pairs in (tied, rank_tied):
        return None
    both = _tied_pairs(steps | (ranks[1:] != ranks[:-1])) if tied and rank_tied else 0
    # Pairs that agree less those that do not: of all pairs, each is one of these or tied.
    excess = pairs - tied - rank_tied + both - 2 * _inversions(ranks)
    # In scipy's order of operations, which decides the last bit.
    tau = excess / math.sqrt(pairs - tied) / math.sqrt(pairs - rank_tied)
    return min(1.0, max(-1.0, tau))


def _inversions(ranks: Ints) -> int:
    """Count the pairs whose earlier rank is the higher one."""
    count = 0
    for start in range(0, len(ranks), _BLOCK):
        block = ranks[start : start + _BLOCK]
        higher = block[:, None] > ranks[start:]
        higher[:, : len(block)] &= _EARLIER[: len(block), : len(block)]
        count += int(np.count_nonzero(higher))
    return count


def _tied_pairs(steps: Bools) -> int:
    """Count the equal pairs of a sorted list from the places where it takes a step."""
    if steps.all():
        return 0
    ends = np.concatenate([[-1], np.flatnonzero(steps), [len(steps)]])
    sizes = np.diff(ends)
    return int((sizes * (sizes - 1) // 2).sum())
