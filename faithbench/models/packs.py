"""Rows of one pass, laid out by the host before one copy to the device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from faithbench.core.types import Ints, TokenRow
from faithbench.models.devices import send
from faithbench.models.encoding import pad_rows

Lengths = tuple[tuple[int, int], ...]
"""The lengths of rows, ascending, each with the number of rows that have it."""


@dataclass(frozen=True, eq=False)
class Pack:
    """Rows of a pass on the device, shortest first, and where their real tokens are.

    `ids` and `types` are [rows, tokens], padded. `real` lists the real tokens among all cells,
    and `places` gives each cell's number in that list; padding has that of some real token, and
    `mask` [rows, 1, 1, tokens] is False there. All three are None where all rows have one length.
    `distinct` lists one real token per id, segment and index, and `inverse` says for each real
    token which of these it equals; both are None where tokens are not shared. `order` is the
    number that each row had when it was packed.
    """

    ids: Tensor
    types: Tensor
    lengths: Lengths
    order: Ints
    real: Tensor | None = None
    places: Tensor | None = None
    mask: Tensor | None = None
    distinct: Tensor | None = None
    inverse: Tensor | None = None

    @classmethod
    def even(cls, ids: Tensor, types: Tensor) -> Pack:
        """Pack rows of one length that are on the device already; nothing is shared."""
        count, size = ids.shape
        return cls(ids, types, ((size, count),), np.arange(count))


def pack_rows(
    rows: Sequence[TokenRow], pad_id: int, device: torch.device, *, share: bool, mask: bool
) -> Pack:
    """Sort rows by length, find the tokens they share, and send all of it in one copy.

    Numpy does on the host what would take the device several waits: sorting, grouping and
    finding equal tokens need values. The `mask` is made only if it is asked for.
    """
    sizes = np.array([len(ids) for ids, _ in rows])
    order = sizes.argsort(kind="stable")
    ids, types, attention = pad_rows([rows[index] for index in order], pad_id)
    lengths, counts = np.unique(sizes, return_counts=True)
    real = np.flatnonzero(attention)
    arrays = {"ids": ids, "types": types}
    if len(lengths) > 1:
        arrays["real"] = real
        if mask:
            arrays["places"] = np.where(attention, attention.cumsum().reshape(ids.shape) - 1, 0)
            arrays["mask"] = attention[:, None, None]
    if share:
        arrays["distinct"], arrays["inverse"] = _distinct_tokens(ids, types, real)
    sent = dict(zip(arrays, send(list(arrays.values()), device), strict=True))
    return Pack(
        ids=sent["ids"],
        types=sent["types"],
        lengths=tuple(zip(lengths.tolist(), counts.tolist(), strict=True)),
        order=order,
        real=sent.get("real"),
        places=sent["places"].flatten() if "places" in sent else None,
        mask=sent["mask"].bool() if "mask" in sent else None,
        distinct=sent.get("distinct"),
        inverse=sent.get("inverse"),
    )


def _distinct_tokens(ids: Ints, types: Ints, real: Ints) -> tuple[Ints, Ints]:
    """Return one real token of each kind, and the kind of each real token."""
    tokens = ids.shape[1]
    # (id, segment, index) as digits of one number in a mixed radix: the two lower digits are
    # below `types.max() + 1` and `tokens`, so different triples have different keys. A
    # vocabulary of 2^18, two segments and 512 tokens stay below 2^28, far from overflow.
    keys = (ids * (types.max() + 1) + types) * tokens + np.arange(tokens)
    _, first, inverse = np.unique(keys.ravel()[real], return_index=True, return_inverse=True)
    return first, inverse
