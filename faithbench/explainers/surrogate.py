"""Explainers that fit an additive model to the answers on partly masked texts."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch, Bools, Floats
from faithbench.explainers.perturbation import ask, counts, place
from faithbench.models.session import Session


@dataclass(frozen=True)
class Lime:
    """Fit a linear model to the probability of randomly masked texts.

    Ribeiro et al. 2016, Eq. 1-2: `samples` masks, the full text first, then each with a uniform
    number of masked tokens; weights exp(-d^2 / width^2), d the cosine distance to the
    full text; ridge regression with an intercept, whose coefficients are the scores. As lime's
    text explainer: width 0.25 and `ridge` 1, but its code takes the square root of the weights
    (here width 0.3536) and keeps ten words. captum's Lime is not called: it takes one text at a
    time and a Lasso by default; with the same masks and ridge it gives the same scores.
    """

    stochastic: ClassVar[bool] = True

    samples: int = 256
    width: float = 0.25
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check("lime", "samples", self.samples, self.samples >= 2, "at least 2")
        _check("lime", "width", self.width, 0 < self.width < math.inf, "above 0")
        _check("lime", "ridge", self.ridge, 0 < self.ridge < math.inf, "above 0")

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the coefficients."""
        keeps = [
            draw_masks(n, self.samples, np.random.default_rng(seed))
            for n, seed in zip(counts(batch), batch.seeds, strict=True)
        ]
        scores = [
            fit_ridge(keep, np.exp(answers), nearness(keep, self.width), self.ridge)
            for keep, answers in zip(keeps, ask(session, batch, keeps), strict=True)
        ]
        return place(batch, scores)


@dataclass(frozen=True)
class KernelShap:
    """Estimate Shapley values by weighted regression on masked texts.

    Lundberg & Lee 2017, Theorem 2: least squares under the Shapley kernel, with the scores'
    sum held at f(x) - f(all masked), f the target's probability. A text of n tokens with
    2^n - 2 <= `samples` coalitions takes all of them and is exact. Otherwise coalitions come in
    pairs with their complements: whole sizes while the kernel's share of the budget covers
    them, then draws from the other sizes by the kernel (as shap's KernelExplainer, without its
    L1 selection). Drawn coalitions get a `ridge`, weights having mean 1, which pulls towards
    equal shares: without it, texts of about `samples` / 2 tokens are mostly noise.
    """

    stochastic: ClassVar[bool] = True

    samples: int = 256
    ridge: float = 1.0

    def __post_init__(self) -> None:
        _check("kernel-shap", "samples", self.samples, self.samples >= 2, "at least 2")
        _check("kernel-shap", "ridge", self.ridge, 0 <= self.ridge < math.inf, "at least 0")

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the Shapley values."""
        coalitions = [
            draw_coalitions(n, self.samples, np.random.default_rng(seed))
            for n, seed in zip(counts(batch), batch.seeds, strict=True)
        ]
        answers = ask(session, batch, [keep for keep, _ in coalitions])
        scores = [
            fit_shapley(keep, np.exp(log_probabilities), weights, self.ridge)
            for (keep, weights), log_probabilities in zip(coalitions, answers, strict=True)
        ]
        return place(batch, scores)


def draw_masks(n: int, samples: int, draw: np.random.Generator) -> Bools:
    """Return `samples` keep-masks of n tokens: the full one, then 1 to n tokens masked."""
    # The ranks of random numbers are a random order: its first `masked` tokens go.
    masked = draw.integers(1, n + 1, size=samples - 1)
    keep = draw.random((samples - 1, n)).argsort(axis=1) >= masked[:, None]
    return np.vstack([np.ones((1, n), dtype=bool), keep])


def nearness(keep: Bools, width: float) -> Floats:
    """Return exp(-d^2 / width^2), d the cosine distance of each mask to the full one."""
    # The cosine of k ones among n with n ones is k / sqrt(k n); with none it counts as 0.
    distance = 1 - np.sqrt(keep.mean(axis=1))
    return np.asarray(np.exp(-(distance**2) / width**2))


def fit_ridge(keep: Bools, values: Floats, weights: Floats, ridge: float) -> Floats:
    """Return the coefficients of weighted ridge regression with a free intercept."""
    share = weights / weights.sum()
    x, y = keep - share @ keep, values - share @ values
    gram = (x.T * weights) @ x + ridge * np.eye(x.shape[1])
    return np.linalg.solve(gram, (x.T * weights) @ y)


def draw_coalitions(n: int, samples: int, draw: np.random.Generator) -> tuple[Bools, Floats]:
    """Return keep-masks, the empty and the full one first, and the others' kernel weights.

    Size k has mass (n - 1) / (k (n - k)) in the Shapley kernel; sizes k and n - k go together.
    """
    sizes = np.arange(1, n // 2 + 1)
    mass = (n - 1) / (sizes * (n - sizes)) * np.where(2 * sizes == n, 1, 2)
    everything = 2**n - 2 <= samples
    keeps, weights = [np.repeat([[False], [True]], n, axis=1)], [np.zeros(0)]
    left, taken = samples, 0
    for size in sizes.tolist():
        count = math.comb(n, size) * (1 if 2 * size == n else 2)
        if not everything and count > left * mass[taken] / mass[taken:].sum():
            break
        keeps.append(_all_of_size(n, size))
        weights.append(np.full(count, mass[taken] / count))
        left, taken = left - count, taken + 1
    pairs = left // 2 if taken < len(sizes) else 0
    if pairs:
        rest = mass[taken:]
        drawn = draw.choice(sizes[taken:], size=pairs, p=rest / rest.sum())
        half = draw.random((pairs, n)).argsort(axis=1) < drawn[:, None]
        keeps += [half, ~half]
        weights.append(np.full(2 * pairs, rest.sum() / (2 * pairs)))
    return np.vstack(keeps), np.concatenate(weights)


def _all_of_size(n: int, size: int) -> Bools:
    """Return every keep-mask with `size` of n tokens, and every one without."""
    members = np.array(list(itertools.combinations(range(n), size)))
    keep = np.zeros((len(members), n), dtype=bool)
    np.put_along_axis(keep, members, True, axis=1)
    return keep if 2 * size == n else np.vstack([keep, ~keep])


def fit_shapley(keep: Bools, values: Floats, weights: Floats, ridge: float) -> Floats:
    """Return the scores that sum to what the full text adds to the empty one and fit the rest."""
    rows, n = keep.shape
    equal = (values[1] - values[0]) / n
    # Equal shares plus what sums to 0: centred rows hold the sum and treat all tokens alike.
    size = keep[2:].sum(axis=1)
    x, y = keep[2:] - (size / n)[:, None], values[2:] - values[0] - size * equal
    root = np.sqrt(weights / weights.mean()) if len(weights) else weights
    damping = 0.0 if rows == 2**n else math.sqrt(ridge)
    solution = np.linalg.lstsq(
        np.vstack([root[:, None] * x, damping * np.eye(n)]),
        np.concatenate([root * y, np.zeros(n)]),
    )[0]
    return np.asarray(equal + solution - solution.mean())


def _check(name: str, setting: str, value: float, fine: bool, wanted: str) -> None:
    if not fine:
        raise FaithbenchError(f"{name}: {setting} is {wanted}, found {value}")
