"""The random control: its own numbers for each example, whatever the company."""

from __future__ import annotations

from typing import Any

import torch

from faithbench.encoding import collate
from faithbench.explainers.controls import Random

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a bad film ."]


def scores(model: Any, batch: Any, rows: list[int], seeds: list[int]) -> torch.Tensor:
    encodings = [batch.encodings[row] for row in rows]
    return Random()(model, collate(model, encodings, [0] * len(rows), seeds))


def test_seeded_per_example(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    found = scores(model, batch_of(model, TEXTS), [0, 0, 0], [7, 8, 7])
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[1])
    # Drawn by torch's own generator, in float64.
    first = torch.rand(4, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    assert torch.equal(found[0], first)
    assert ((found >= 0) & (found < 1)).all()


def test_batch_order_and_padding_change_nothing(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    together = scores(model, batch, [2, 0, 1], [12, 10, 11])
    assert together.shape == (3, 15)
    for row, example in enumerate([2, 0, 1]):
        alone = scores(model, batch, [example], [10 + example])[0]
        assert torch.equal(together[row, : len(alone)], alone)
        assert not together[row, len(alone) :].any()


def test_the_global_seed_is_neither_read_nor_moved(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    found = scores(model, batch, [0], [3])
    assert torch.equal(torch.rand(1), expected)
    torch.manual_seed(2)
    assert torch.equal(scores(model, batch, [0], [3]), found)
