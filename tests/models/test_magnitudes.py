"""Weights kept at another precision: made once, renewed after a change, freed with the weight."""

from __future__ import annotations

import gc
import weakref

import torch

from faithbench.models.magnitudes import Magnitudes


def test_factors_are_made_once_per_weight() -> None:
    kept = Magnitudes()
    weight = torch.tensor([[1.5, -2.0]], dtype=torch.float64)
    factors = kept.of(weight, torch.float32)
    assert factors.weight.dtype == factors.magnitude.dtype == torch.float32
    assert factors.weight.tolist() == [[1.5, -2.0]]
    assert factors.magnitude.tolist() == [[1.5, 2.0]]
    assert kept.of(weight, torch.float32) is factors
    assert kept.of(weight.clone(), torch.float32) is not factors


def test_a_weight_that_changed_gets_new_ones() -> None:
    kept = Magnitudes()
    weight = torch.tensor([[1.0, -2.0]], dtype=torch.float64)
    kept.of(weight, torch.float32)
    weight.mul_(-3)
    assert kept.of(weight, torch.float32).weight.tolist() == [[-3.0, 6.0]]
    weight.data = torch.tensor([[7.0, -8.0]], dtype=torch.float64)
    assert kept.of(weight, torch.float32).magnitude.tolist() == [[7.0, 8.0]]


def test_factors_are_freed_with_their_weight() -> None:
    kept = Magnitudes()
    weight = torch.ones(2, 2, dtype=torch.float64)
    held = weakref.ref(kept.of(weight, torch.float32).weight)
    assert held() is not None
    del weight
    gc.collect()
    assert held() is None
