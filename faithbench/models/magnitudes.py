"""Weights and their magnitudes at another precision, made once and kept as long as the weights."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch.utils.weak import WeakTensorKeyDictionary


class Factors(NamedTuple):
    """A weight and its magnitude [outputs, inputs], both at the precision of products."""

    weight: torch.Tensor
    magnitude: torch.Tensor


class Magnitudes:
    """Gives the factors of weights; those of a weight that changed in place are made anew."""

    def __init__(self) -> None:
        self._kept: WeakTensorKeyDictionary = WeakTensorKeyDictionary()

    def of(self, weight: torch.Tensor, dtype: torch.dtype) -> Factors:
        """Return a weight and its magnitude in `dtype`, where the weight is."""
        state = (weight._version, weight.data_ptr(), dtype)
        kept = self._kept.get(weight)
        if kept is None or kept[0] != state:
            low = weight.detach().to(dtype)
            kept = self._kept[weight] = (state, Factors(low, low.abs()))
        factors: Factors = kept[1]
        return factors
