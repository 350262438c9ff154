"""What a network reads besides its tokens, told of tiny ones of every architecture."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from faithbench.models.encoding import inputs_of
from faithbench.models.traits import (
    has_decoder,
    is_tokens_first,
    reads_padding,
    reads_segments,
    row_groups,
    word_tables,
)
from faithbench.testing.tiny import ARCHITECTURES, PARTLY_SERVED, WITHOUT_BLOCKS, tiny_model

ALL = (*ARCHITECTURES, *WITHOUT_BLOCKS, *PARTLY_SERVED)


@pytest.mark.parametrize("architecture", ALL)
def test_padding_is_read_where_it_changes_logits(architecture: str) -> None:
    """The claim is held against the network itself: three more tokens, which the mask excludes."""
    network = tiny_model(architecture, 3).network
    ids = torch.tensor([[2, 5, 6, 7, 3]])
    padded = torch.cat([ids, torch.zeros(1, 3, dtype=torch.long)], dim=1)
    logits = []
    for rows in (ids, padded):
        mask = (torch.arange(rows.shape[1]) < 5).long()[None]
        with torch.no_grad():
            inputs = inputs_of(network, rows, torch.zeros_like(rows), mask)
            logits.append(network(**inputs).logits)
    changed = not torch.allclose(logits[0], logits[1], atol=1e-9)
    assert changed == reads_padding(network)


def test_who_reads_what() -> None:
    networks = {name: tiny_model(name, 2).network for name in ALL}
    assert {n for n, net in networks.items() if reads_padding(net)} == {"xlnet", "fnet"}
    assert {n for n, net in networks.items() if has_decoder(net)} == {"t5", "bart"}
    assert {n for n, net in networks.items() if is_tokens_first(net)} == {"xlnet"}
    assert reads_segments(networks["bert"]) and reads_segments(networks["xlnet"])
    assert not reads_segments(networks["distilbert"])


def test_rows_of_a_pass_are_of_one_group() -> None:
    short, long, two_ends = (np.array(ids) for ids in ([2, 5, 3], [2, 5, 6, 3], [2, 3, 3]))
    bert, fnet, bart = (
        row_groups(tiny_model(name, 2).network) for name in ("bert", "fnet", "bart")
    )
    assert bert(short) == bert(long) == bert(two_ends)
    assert fnet(short) != fnet(long) and fnet(short) == fnet(two_ends)
    assert bart(short) == bart(long) and bart(short) != bart(two_ends)


def test_an_encoder_and_a_decoder_look_words_up_apart() -> None:
    assert len(word_tables(tiny_model("bert", 2).network)) == 1
    for name in ("t5", "bart"):
        network = tiny_model(name, 2).network
        tables = word_tables(network)
        assert len(tables) == 2
        assert all(table.weight.shape[0] == network.config.vocab_size for table in tables)
