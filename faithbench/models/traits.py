"""What networks differ in besides their sizes: padding, segments, and tables of word embeddings."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from torch.nn import Module

from faithbench.core.types import Ints

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def reads_padding(network: PreTrainedModel) -> bool:
    """Return whether padding on the right changes what a network says of a text.

    FNet mixes all tokens and takes no mask; XLNet classifies by the last position, or the mean of
    all, whatever is there.
    """
    # Only an argument of this name is a mask: FNet takes any others, and ignores them.
    takes_mask = "attention_mask" in inspect.signature(type(network).forward).parameters
    summary = getattr(network, "sequence_summary", None)
    return not takes_mask or (summary is not None and summary.summary_type != "first")


Group = tuple[int, int]
"""The length of a row where that counts, and the number of its end tokens where that counts."""


def row_groups(network: PreTrainedModel) -> Callable[[Ints], Group]:
    """Return what tells the group of a row from its ids: only rows of one group share a pass.

    For most networks there is one group. Where padding is read, rows must be of one length.
    Classifiers with a decoder read the state of the last end token, and refuse to read rows that
    have different numbers of them together.
    """
    padding, end = reads_padding(network), getattr(network.config, "eos_token_id", None)
    ends = has_decoder(network) and end is not None

    def group(ids: Ints) -> Group:
        return len(ids) if padding else 0, int(np.sum(ids == end)) if ends else 0

    return group


def reads_segments(network: PreTrainedModel) -> bool:
    """Return whether a network reads which of its texts a token belongs to."""
    # XLNet compares the segments of two tokens, so it has no table of them and no size of it.
    return getattr(network.config, "type_vocab_size", 0) > 1 or is_tokens_first(network)


def is_tokens_first(network: PreTrainedModel) -> bool:
    """Return whether states inside a network are [tokens, rows, width], as XLNet's are."""
    return network.config.model_type == "xlnet"


def has_decoder(network: PreTrainedModel) -> bool:
    """Return whether a network reads the text twice: by an encoder, then by a decoder."""
    return bool(getattr(network.config, "is_encoder_decoder", False))


def word_tables(network: PreTrainedModel) -> tuple[Module, ...]:
    """Return the modules that look up word embeddings: one, or an encoder's and a decoder's."""
    if not has_decoder(network):
        return (network.get_input_embeddings(),)
    stacks = network.get_encoder(), network.get_decoder()
    return tuple(stack.get_input_embeddings() for stack in stacks)
