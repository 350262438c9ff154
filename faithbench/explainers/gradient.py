"""Explainers that read the gradient of the target's logit at the word embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.passes.capture import capture_gradients
from faithbench.explainers.passes.deep_lift import DeepLift, run_deep_lift
from faithbench.explainers.passes.gradient_paths import (
    Point,
    baseline_embeddings,
    embed,
    sum_gradients,
    target_logits,
)
from faithbench.models.session import Session


@dataclass(frozen=True)
class Gradient:
    """Measure the gradient at each embedding.

    Saliency, Simonyan et al. 2014: `norm` is l2 or l1 over the embedding's width, or the
    signed sum.
    """

    norm: str = "l2"

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the size of the gradient."""
        return reduce(capture_gradients(session, batch).embedding_gradients, self.norm)


@dataclass(frozen=True)
class InputXGradient:
    """Multiply each embedding by its gradient.

    Shrikumar et al. 2017; the gradient of the target's logit, summed over the embedding's
    width. captum's InputXGradient gives the same values but needs a pass of its own.
    """

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the signed products."""
        seen = capture_gradients(session, batch)
        return (seen.embeddings * seen.embedding_gradients).sum(dim=-1)


@dataclass(frozen=True)
class IntegratedGradients:
    """Integrate the gradient along the line from a baseline to the input.

    Sundararajan et al. 2017, Eq. 1, by Gauss-Legendre quadrature as captum does. captum
    itself is not called: it takes one text's steps at a time, and pools GPT-2 wrongly on
    padded batches of embeddings; here steps of all examples share passes.
    """

    steps: int = 50
    baseline: str = "pad"

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the integral, summed over the embedding's width."""
        if self.steps < 1:
            raise FaithbenchError(f"integrated-gradients: steps is 1 or more, found {self.steps}")
        nodes, weights = np.polynomial.legendre.leggauss(self.steps)
        start, end = (
            baseline_embeddings(session.model, batch, self.baseline),
            embed(session.model, batch.ids),
        )
        alphas = torch.tensor((1 + nodes) / 2, dtype=end.dtype, device=end.device)
        shares = torch.tensor(weights / 2, dtype=end.dtype, device=end.device)

        def place(points: Sequence[Point]) -> torch.Tensor:
            rows, steps = _columns(points, end.device)
            return start[rows] + alphas[steps][:, None, None] * (end - start)[rows]

        def weigh(points: Sequence[Point], gradients: torch.Tensor) -> torch.Tensor:
            return shares[_columns(points, end.device)[1]][:, None, None] * gradients

        mean = sum_gradients(session, batch, self.steps, place, weigh)
        return ((end - start) * mean).sum(dim=-1)

    def gaps(self, session: Session, batch: Batch, scores: torch.Tensor) -> torch.Tensor:
        """Return how far each example's scores miss the change of the logit (completeness)."""
        start, end = (
            baseline_embeddings(session.model, batch, self.baseline),
            embed(session.model, batch.ids),
        )
        change = target_logits(session, batch, end) - target_logits(session, batch, start)
        return (scores * batch.attention).sum(dim=1) - change


@dataclass(frozen=True)
class SmoothGrad:
    """Average the gradient over noisy copies of the input.

    Smilkov et al. 2017, Eq. 3: `samples` copies with Gaussian noise of `noise` times the
    range of the text's embeddings; `norm` as for gradient. Noise is drawn per example.
    """

    stochastic: ClassVar[bool] = True

    samples: int = 16
    noise: float = 0.15
    norm: str = "l2"

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the size of the mean gradient."""
        end = embed(session.model, batch.ids)
        draws = _noise(batch, self.samples, end)
        spread = _ranges(batch, end) * self.noise

        def place(points: Sequence[Point]) -> torch.Tensor:
            rows, steps = _columns(points, end.device)
            return end[rows] + spread[rows][:, None, None] * draws[rows, steps]

        def weigh(_points: Sequence[Point], gradients: torch.Tensor) -> torch.Tensor:
            return gradients / self.samples

        return reduce(sum_gradients(session, batch, self.samples, place, weigh), self.norm)


@dataclass(frozen=True)
class GradientShap:
    """Average gradients at random points between a baseline and the input.

    Expected gradients (Lundberg & Lee 2017; Erion et al. 2021): the integral of integrated
    gradients by `samples` random points, with Gaussian noise of `noise` times the range of
    the text's embeddings.
    """

    stochastic: ClassVar[bool] = True

    samples: int = 16
    baseline: str = "pad"
    noise: float = 0.05

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the mean of gradient times distance, summed over the embedding's width."""
        start, end = (
            baseline_embeddings(session.model, batch, self.baseline),
            embed(session.model, batch.ids),
        )
        draws = _noise(batch, self.samples, end)
        spread = _ranges(batch, end) * self.noise
        drawn = torch.stack([_uniform(seed, self.samples) for seed in batch.seeds])
        alphas = drawn.to(end.dtype).to(end.device)  # in float64, which a device may not have

        def place(points: Sequence[Point]) -> torch.Tensor:
            rows, steps = _columns(points, end.device)
            noisy = end[rows] + spread[rows][:, None, None] * draws[rows, steps]
            return start[rows] + alphas[rows, steps][:, None, None] * (noisy - start[rows])

        def weigh(points: Sequence[Point], gradients: torch.Tensor) -> torch.Tensor:
            rows, steps = _columns(points, end.device)
            noisy = end[rows] + spread[rows][:, None, None] * draws[rows, steps]
            return (noisy - start[rows]) * gradients / self.samples

        return sum_gradients(session, batch, self.samples, place, weigh).sum(dim=-1)


def reduce(gradients: torch.Tensor, norm: str) -> torch.Tensor:
    """Turn one gradient vector per token into one number."""
    if norm == "sum":
        return gradients.sum(dim=-1)
    if norm in ("l1", "l2"):
        sizes: torch.Tensor = torch.linalg.vector_norm(gradients, ord=int(norm[1]), dim=-1)
        return sizes
    raise FaithbenchError(f"norm {norm!r} is not one of l1, l2, sum")


def _columns(points: Sequence[Point], device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Split points into their examples and their numbers."""
    rows, steps = torch.tensor(list(points), device=device).unbind(dim=1)
    return rows, steps


def _uniform(seed: int, count: int) -> torch.Tensor:
    # Drawn on the CPU, whose generator gives the same numbers on every machine.
    draw = torch.Generator("cpu").manual_seed(seed)
    return torch.rand(count, generator=draw, dtype=torch.float64, device="cpu")


def _noise(batch: Batch, count: int, like: torch.Tensor) -> torch.Tensor:
    """Draw [examples, samples, tokens, width] from each example's own seed; padding gets none."""
    noise = torch.zeros(len(like), count, *like.shape[1:], dtype=like.dtype, device=like.device)
    for row, (encoding, seed) in enumerate(zip(batch.encodings, batch.seeds, strict=True)):
        draw = torch.Generator("cpu").manual_seed(seed)
        shape = (count, len(encoding.ids), like.shape[-1])
        sample = torch.randn(shape, generator=draw, dtype=torch.float32, device="cpu")
        noise[row, :, : len(encoding.ids)] = sample.to(like)
    return noise


def _ranges(batch: Batch, embeddings: torch.Tensor) -> torch.Tensor:
    """Return the range (largest minus smallest entry) of each example's own embeddings."""
    padding = batch.attention[:, :, None] == 0
    high = embeddings.masked_fill(padding, -torch.inf).amax(dim=(1, 2))
    return high - embeddings.masked_fill(padding, torch.inf).amin(dim=(1, 2))


@dataclass(frozen=True)
class DeepShap:
    """Split the logit's difference to a baseline by DeepLIFT multipliers.

    Lundberg & Lee 2017, Section 4.2, with one baseline, which is DeepLIFT (Shrikumar et al.
    2017, Eq. 1-3, rescale rule) with products split as Shapley values; captum's does not see
    functional operations, so cannot split attention. `baseline` is what stands at erasable
    tokens: mask, pad, or zero vectors; special tokens and positions stay, and score 0. Scores
    are signed and sum to the difference of the target's logit.
    """

    baseline: str = "mask"

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the contribution of each token."""
        return deep_lift(session, batch, self.baseline).scores

    def gaps(self, session: Session, batch: Batch, scores: torch.Tensor) -> torch.Tensor:
        """Return how far each example's scores miss the difference of the logit."""
        return deep_lift(session, batch, self.baseline).gap


def deep_lift(session: Session, batch: Batch, baseline: str = "mask") -> DeepLift:
    """Return the pass of a batch; its `gap` says how exactly the scores sum to the difference."""

    def make() -> DeepLift:
        return _deep_lift(session, batch, baseline)

    return session.share(batch, f"deep-lift {baseline}", make, forwards=2, backwards=2)


def _deep_lift(session: Session, batch: Batch, baseline: str) -> DeepLift:
    inputs = embed(session.model, batch.ids)
    erased = baseline_embeddings(session.model, batch, baseline)
    baselines = torch.where(batch.erasable[..., None], erased, inputs)
    # Half precision has too few digits for differences; float32 ranks as float64 does.
    network = session.model.eager(torch.promote_types(session.model.dtype, torch.float32))
    return run_deep_lift(network, batch, inputs, baselines)
