"""Rows are sorted, grouped and compared on the host, and sent as one piece."""

from __future__ import annotations

import numpy as np
import torch

from faithbench.models.packs import Pack, pack_rows

CPU = torch.device("cpu")
ROWS = [
    (np.array([2, 7, 8, 3]), np.array([0, 0, 0, 0])),
    (np.array([2, 7, 3]), np.array([0, 0, 0])),
    (np.array([2, 9, 8, 3]), np.array([0, 0, 1, 1])),
]


def test_a_pack_is_sorted_by_length_and_knows_its_real_tokens() -> None:
    pack = pack_rows(ROWS, 0, CPU, share=False, mask=True)
    assert pack.order.tolist() == [1, 0, 2]
    assert pack.lengths == ((3, 1), (4, 2))
    assert pack.ids.tolist() == [[2, 7, 3, 0], [2, 7, 8, 3], [2, 9, 8, 3]]
    assert pack.types.tolist() == [[0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 1]]
    assert pack.real is not None and pack.real.tolist() == [0, 1, 2, *range(4, 12)]
    assert pack.places is not None and pack.mask is not None
    assert pack.places.tolist() == [0, 1, 2, 0, 3, 4, 5, 6, 7, 8, 9, 10]
    assert pack.mask.shape == (3, 1, 1, 4)
    assert pack.mask[0, 0, 0].tolist() == [True, True, True, False]
    assert pack.distinct is None and pack.inverse is None


def test_equal_tokens_at_one_index_are_shared() -> None:
    """Of eleven real tokens, 2 and 7 in front are three and two times there; 8 differs by segment,
    3 by segment and index."""
    pack = pack_rows(ROWS, 0, CPU, share=True, mask=False)
    assert pack.distinct is not None and pack.inverse is not None and pack.real is not None
    assert len(pack.distinct) == 8
    ids, types = pack.ids.flatten()[pack.real], pack.types.flatten()[pack.real]
    for whole in (ids, types, pack.real % 4):
        assert torch.equal(whole[pack.distinct][pack.inverse], whole)


def test_rows_of_one_length_need_neither_mask_nor_places() -> None:
    pack = pack_rows(ROWS[::2], 0, CPU, share=False, mask=True)
    assert pack.lengths == ((4, 2),)
    assert (pack.real, pack.places, pack.mask) == (None, None, None)
    even = Pack.even(pack.ids, pack.types)
    assert (even.lengths, even.order.tolist()) == (((4, 2),), [0, 1])
