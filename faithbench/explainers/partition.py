"""Shapley credit split down a tree of neighbouring tokens, by the shap library."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch, Bools, Floats
from faithbench.explainers.perturbation import ask, counts, place
from faithbench.models.session import Session


@dataclass(frozen=True)
class PartitionShap:
    """Split Shapley credit down a balanced tree of neighbouring tokens.

    Owen values (Owen 1977) as shap's PartitionExplainer computes them, on the target's
    probability and the mask token: the halves of a span share its credit as two players, with
    the rest of the text as the tree's contexts. Exact after 2 (n^2 + 2) / 3 rows for n = 2^k
    tokens; within `evaluations` rows the spans with most credit are split first and the rest is
    shared equally. shap explains one text at a time and breaks ties by numpy's global random
    numbers, which are seeded per example here. Needs `pip install 'faithbench[shap]'`.
    """

    evaluations: int = 256

    def __post_init__(self) -> None:
        if self.evaluations < 4:
            raise FaithbenchError(
                f"partition-shap: evaluations is at least 4, found {self.evaluations}"
            )

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the Owen values."""
        shap = _import_shap()
        scores = [
            _owen_values(shap, partial(_probability, session, batch, i), n, self.evaluations, seed)
            for i, (n, seed) in enumerate(zip(counts(batch), batch.seeds, strict=True))
        ]
        return place(batch, scores)


def halves(n: int) -> Floats:
    """Return the balanced binary tree over n neighbours as scipy linkage rows, the root last."""
    rows: list[list[float]] = []

    def build(start: int, stop: int) -> int:
        if stop - start == 1:
            return start
        middle = (start + stop + 1) // 2
        left, right = build(start, middle), build(middle, stop)
        rows.append([left, right, stop - start, stop - start])
        return n + len(rows) - 1

    build(0, n)
    return np.array(rows, dtype=np.float64)


class _Tokens:
    """The masker that shap asks for: it passes the mask itself on to the model function."""

    def __init__(self, n: int) -> None:
        self.shape = (1, n)
        self.clustering = halves(n)

    def __call__(self, mask: Bools, _: Bools) -> tuple[Bools]:
        return (mask[None],)


def _owen_values(
    shap: Any, probability: Callable[[Bools], Floats], n: int, evaluations: int, seed: int
) -> Floats:
    if n == 1:  # a tree needs two leaves
        return np.diff(probability(np.array([[False], [True]])))
    explainer = shap.PartitionExplainer(probability, _Tokens(n))
    before = np.random.get_state()
    np.random.seed(seed % 2**32)
    try:
        explanation = explainer(np.ones((1, n), dtype=bool), max_evals=evaluations, silent=True)
    finally:
        np.random.set_state(before)
    return np.asarray(explanation.values[0], dtype=np.float64)


def _probability(session: Session, batch: Batch, i: int, keeps: Bools) -> Floats:
    """Return the target's probability for masks of one example; the others get no mask."""
    asked = [keeps if row == i else keeps[:0] for row in range(len(batch.encodings))]
    return np.exp(ask(session, batch, asked)[i])


def _import_shap() -> Any:
    try:
        return importlib.import_module("shap")
    except ImportError:
        raise FaithbenchError(
            "partition-shap needs the shap library; pip install 'faithbench[shap]'"
        ) from None
