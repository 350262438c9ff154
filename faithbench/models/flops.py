"""FLOPs of one forward pass, so that a pass of another network has a price in the model's own.

A multiplication and the addition after it are two FLOPs, and matrix products and convolutions
alone are counted: embeddings are looked up, not multiplied, and norms and activations are little.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.models.encoding import inputs_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from faithbench.models.model import Model

COUNTED = (2, 4, 6)
"""Lengths that a pass is counted at, in tokens: evenly spaced, and short, so that this is quick."""
CHECKED = 640
"""The length that checks them, if the network reads that many tokens: attention that is cut into
blocks, of 512 tokens at most in published models, shows there."""


@dataclass(frozen=True)
class FlopsByLength:
    """The FLOPs of one forward pass of a network, by the number of tokens it reads.

    Linear layers, convolutions and recurrent cells cost as much for every token, attention as
    much for every pair of tokens, a head as much for every text. So the FLOPs of a Transformer, a
    CNN or an LSTM are a polynomial in the length of degree 2 at most, and those at three lengths,
    `counts`, give it exactly.
    """

    counts: tuple[int, int, int]

    def __call__(self, tokens: int) -> int:
        """Return the FLOPs of one pass over one text of so many tokens."""
        first, second, third = self.counts
        start, middle, _ = COUNTED
        step = middle - start
        # Newton's form of the polynomial, in fractions: FLOPs are too many for some floats.
        slope = Fraction(second - first, step)
        bend = Fraction(third - 2 * second + first, 2 * step**2)
        return int(first + (tokens - start) * (slope + (tokens - middle) * bend))


def count_by_length(run: Callable[[int], object], longest: int, name: str) -> FlopsByLength:
    """Count a network's FLOPs: `run(n)` makes one forward pass over one text of n tokens.

    `longest` is the longest text that it reads. A network whose FLOPs are not a polynomial in
    the length, as with attention in blocks, is refused under its `name`.
    """
    first, second, third = (_count(run, tokens) for tokens in COUNTED)
    flops = FlopsByLength((first, second, third))
    last = min(longest, CHECKED)
    if (counted := _count(run, last)) != flops(last):
        raise FaithbenchError(
            f"the FLOPs of {name!r} do not follow from the number of tokens (at {last} tokens "
            f"{counted}, not {flops(last)}), so that passes of another network have no price "
            "here; choose a model with full attention"
        )
    return flops


def flops_of(model: Model) -> FlopsByLength:
    """Return the FLOPs of one forward pass of a model, counted when first asked for."""
    network = model.network
    if network not in _counted:
        _counted[network] = count_by_length(
            lambda tokens: _forward(network, tokens), model.max_tokens, model.public_name
        )
    return _counted[network]


# Forgets a network that nobody else holds. A count never changes, so sessions may share it.
_counted: WeakKeyDictionary[PreTrainedModel, FlopsByLength] = WeakKeyDictionary()


def _forward(network: PreTrainedModel, tokens: int) -> None:
    # Which tokens these are makes no difference: every one takes the same products.
    ids = torch.zeros(1, tokens, dtype=torch.long, device=network.device)
    network(**inputs_of(network, ids, torch.zeros_like(ids), torch.ones_like(ids)))


def _count(run: Callable[[int], object], tokens: int) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    # The engine adds products in place, which torch's counter does not know.
    counter = FlopCounterMode(display=False, custom_mapping={torch.ops.aten.addmm_: _added_flops})
    with torch.no_grad(), _plain_products(), counter:
        run(tokens)
    return int(counter.get_total_flops())


def _added_flops(_sum: list[int], a: list[int], b: list[int], **_: object) -> int:
    """Return the FLOPs of a product of matrices of these shapes."""
    return 2 * a[0] * a[1] * b[1]


@contextmanager
def _plain_products() -> Iterator[None]:
    """Turn off fused kernels inside: torch's counter takes some of them for no work at all.

    On the CPU these are attention, encoder layers and LSTMs; each has an unfused form.
    """
    from torch.nn.attention import SDPBackend, sdpa_kernel

    mha, before = torch.backends.mha, torch.backends.mha.get_fastpath_enabled()
    with warnings.catch_warnings(), torch.backends.cudnn.flags(enabled=False):
        warnings.simplefilter("ignore")  # mkldnn's flags warn of GPUs that are not there
        with torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH):
            mha.set_fastpath_enabled(False)
            try:
                yield
            finally:
                mha.set_fastpath_enabled(before)
