"""Weights and head masks that are fitted: recipes, objectives, training and head statistics.

A training is `load_splits`, a `Recipe`, and `fit.fit(splits, recipe, out, progress)`, which returns
the card of the model it writes. `head_calibration.fit_heads` measures and calibrates the heads of
lrp-mask. Both modules import torch, and are imported where they are used.
"""

from __future__ import annotations

from faithbench.training.objectives import find_objective, objective
from faithbench.training.recipe import Recipe, Splits, load_splits, usual_metric

__all__ = [
    "Recipe",
    "Splits",
    "find_objective",
    "load_splits",
    "objective",
    "usual_metric",
]
