"""From scores to the inputs that a metric evaluates: keep-masks and erased token rows."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from faithbench.core.types import Bools, Case, Encoding, Ints

Operator = Literal["mask", "delete", "pad"]
"""How a token is erased: replaced by the mask token, taken out, or replaced by padding."""


def top_count(n: int, percent: float) -> int:
    """Return how many tokens the top `percent` of n are: rounded half up, at least one."""
    # Not `round`, which takes halves to the even number: 2.5 of 5 tokens are 3.
    return max(1, math.floor(percent * n / 100 + 0.5))


def without(case: Case, count: int) -> Bools:
    """Return the keep-mask of the input that lost the `count` tokens ranked highest."""
    return keep_without(case, case.order[:count])


def only(case: Case, count: int) -> Bools:
    """Return the keep-mask of the input that lost all but the `count` tokens ranked highest."""
    return keep_without(case, case.order[count:])


def keep_without(case: Case, erased: Ints) -> Bools:
    """Return the keep-mask, one entry per token of the input, that erases these positions."""
    keep = np.ones(len(case.every_score), dtype=bool)
    keep[erased] = False
    return keep


def erase(encoding: Encoding, keep: Bools, operator: Operator, token_id: int) -> tuple[Ints, Ints]:
    """Return the row (ids, types) that keeps only the erasable tokens marked in `keep`."""
    kept = np.ones(len(encoding.ids), dtype=bool)
    kept[np.flatnonzero(encoding.erasable)] = keep
    return erase_tokens(encoding, kept, operator, token_id)


def erase_tokens(
    encoding: Encoding, keep: Bools, operator: Operator, token_id: int
) -> tuple[Ints, Ints]:
    """Return the row (ids, types) that keeps only the tokens marked in `keep`, one per token."""
    # Deleting closes the gap, so that later tokens move up; masking and padding keep positions.
    if operator == "delete":
        return encoding.ids[keep], encoding.types[keep]
    return np.where(keep, encoding.ids, token_id), encoding.types
