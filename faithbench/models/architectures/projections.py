"""Projections of attention scores onto the simplex: softmax, and sparse ones.

The sparse ones are written here. Those of the PyPI package entmax 1.3 are as exact (in float64 all
agree with stored reference values within 1e-15), but the second gradient of its entmax15 is wrong
without a word, and its sparsemax stops at a row that is all padding. What is needed is short: a
sort and cumulative sums find the support, and autograd sees a closed form on it, since the support
does not change with small changes of the scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from faithbench.core.errors import FaithbenchError, unknown

SPARSEGEN = "sparsegen"


def project(name: str, scores: Tensor, there: Tensor) -> Tensor:
    """Project scores along the last dimension; entries that are not `there` become exactly 0.

    `name` is softmax, sparsemax, entmax15 or sparsegen:x. A row without any entry is all 0.
    """
    hidden = ~there & there.any(dim=-1, keepdim=True)  # a row of -inf alone would become NaN
    return _function(name)(scores.masked_fill(hidden, -torch.inf)).masked_fill(~there, 0)


def projection_name(name: str) -> str:
    """Check the name of a projection and return its usual form: equal ones have equal names."""
    kind, strength = _read(name)
    return kind if strength is None else f"{kind}:{strength!r}".removesuffix(".0")


def softmax(scores: Tensor) -> Tensor:
    """Return exp(z) divided by its sum (Eq. 1 of Meister et al. 2021)."""
    return scores.softmax(dim=-1)


def sparsemax(scores: Tensor) -> Tensor:
    """Return the point of the simplex nearest to the scores (Martins and Astudillo 2016).

    On the support p = z - tau, where tau = (sum of z - 1) / size.
    """
    shifted = _shifted(scores)
    with torch.no_grad():
        ordered, counts = _ordered(shifted)
        support = _support(shifted, ordered, 1 + counts * ordered > ordered.cumsum(dim=-1))
    size = support.sum(dim=-1, keepdim=True)
    tau = (torch.where(support, shifted, 0).sum(dim=-1, keepdim=True) - 1) / size
    return torch.where(support, shifted - tau, 0).clamp(min=0)


def sparsegen(scores: Tensor, strength: float) -> Tensor:
    """Return sparsegen-lin (Laha et al. 2018), sparser the higher lambda (`strength`) below 1."""
    return sparsemax(scores / (1 - strength))


def entmax15(scores: Tensor) -> Tensor:
    """Return 1.5-entmax (Peters et al. 2019), between softmax and sparsemax.

    On the support p = (z / 2 - tau)^2, where tau = mean - sqrt((1 - D) / size) and D is the sum
    of squared deviations of z / 2 from their mean.
    """
    shifted = _shifted(scores) / 2
    with torch.no_grad():
        ordered, counts = _ordered(shifted)
        means = ordered.cumsum(dim=-1) / counts
        spread = ordered.square().cumsum(dim=-1) - counts * means.square()
        taus = means - ((1 - spread) / counts).clamp(min=0).sqrt()
        support = _support(shifted, ordered, taus <= ordered)  # false where -inf makes it NaN
    size = support.sum(dim=-1, keepdim=True)
    mean = torch.where(support, shifted, 0).sum(dim=-1, keepdim=True) / size
    deviations = torch.where(support, shifted - mean, 0)
    root = ((1 - deviations.square().sum(dim=-1, keepdim=True)) / size).sqrt()
    return torch.where(support, deviations + root, 0).clamp(min=0).square()


_KINDS: dict[str, Callable[[Tensor], Tensor]] = {
    "softmax": softmax,
    "sparsemax": sparsemax,
    "entmax15": entmax15,
}
PROJECTIONS = (*_KINDS, f"{SPARSEGEN}:LAMBDA")
"""The names that projections have; LAMBDA is a number below 1."""


def _function(name: str) -> Callable[[Tensor], Tensor]:
    kind, strength = _read(name)
    return _KINDS[kind] if strength is None else partial(sparsegen, strength=strength)


def _read(name: str) -> tuple[str, float | None]:
    """Return the kind of a projection, and of sparsegen its lambda."""
    kind, _, number = name.partition(":")
    if name in _KINDS:
        return name, None
    if kind != SPARSEGEN:
        raise unknown("projection", name, PROJECTIONS)
    try:
        strength = float(number)
    except ValueError:
        strength = math.nan
    if not -math.inf < strength < 1:
        raise FaithbenchError(
            f"projection {name!r} needs a lambda below 1, such as sparsegen:0.5 "
            "(0 is sparsemax, and more is sparser)"
        )
    return kind, strength


def _shifted(scores: Tensor) -> Tensor:
    """Move each row so that its largest score is 0: projections stay, and rounding gets less."""
    return scores - scores.detach().amax(dim=-1, keepdim=True)


def _ordered(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return each row from its largest score down, and 1, 2, 3, ... beside it."""
    ordered = scores.sort(dim=-1, descending=True).values
    counts = torch.arange(1, scores.shape[-1] + 1, dtype=scores.dtype, device=scores.device)
    return ordered, counts


def _support(scores: Tensor, ordered: Tensor, inside: Tensor) -> Tensor:
    """Mark the scores that are at least the last one `inside`; equal scores go together."""
    last = (inside.sum(dim=-1, keepdim=True) - 1).clamp(min=0)  # NaN is inside nothing
    return scores >= ordered.gather(-1, last)
