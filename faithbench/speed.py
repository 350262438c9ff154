"""How long an explainer takes and how much memory, measured alone on a sample of examples."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch

from faithbench.attribution import explain, seed_of
from faithbench.encoding import collate
from faithbench.forward import engine_of
from faithbench.memory import with_peak
from faithbench.models import Model
from faithbench.sharing import release
from faithbench.types import Encoding, Explainer, Target
from faithbench.windows import parts_of

SAMPLE = 10
"""Of so many examples at most is speed measured."""
RESAMPLES = 2000


@dataclass(frozen=True)
class Speed:
    """Seconds of each example of a sample, and the highest memory of all, in bytes."""

    seconds: tuple[float, ...]
    peak_bytes: int | None

    @property
    def median(self) -> float:
        """The median over the examples."""
        return statistics.median(self.seconds)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The percentile-bootstrap 95% interval of the median."""
        if len(self.seconds) < 2:
            return None
        draws = np.random.default_rng(0).integers(
            0, len(self.seconds), (RESAMPLES, len(self.seconds))
        )
        medians = np.median(np.array(self.seconds)[draws], axis=1)
        low, high = np.percentile(medians, [2.5, 97.5])
        return float(low), float(high)


def spread(encodings: Sequence[Encoding], most: int = SAMPLE) -> list[Encoding]:
    """Choose examples evenly over all lengths: the shortest, the longest, and between.

    A quarter of all, but six of them if there are so many, and no more than `most`: what is
    dear to measure must not outweigh a small run.
    """
    order = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    count = min(len(order), most, max(6, len(order) // 4))
    places = np.linspace(0, len(order) - 1, count).round().astype(int)
    return [order[place] for place in places]


def measure_alone(
    model: Model,
    explainer: Explainer,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    seed: int,
) -> Speed:
    """Explain examples one at a time, each from scratch: nothing that others made is reused."""
    calls = [
        partial(_timed, model, explainer, encoding, target, seed)
        for encoding, target in zip(encodings, targets, strict=True)
    ]
    calls[0]()  # first calls build copies and kernels
    found = [with_peak(call, model.device) for call in calls]
    peaks = [peak for _, peak in found if peak is not None]
    return Speed(tuple(seconds for seconds, _ in found), max(peaks, default=None))


def _timed(
    model: Model, explainer: Explainer, encoding: Encoding, target: Target, seed: int
) -> float:
    parts = parts_of(encoding)
    seeds = [seed_of(seed, encoding.example.id)] * len(parts)
    batch = collate(model, parts, [target] * len(parts), seeds)
    release(model)
    engine_of(model).forget()
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    start = time.perf_counter()
    explain(explainer, model, batch)
    if model.device.type == "cuda":
        torch.cuda.synchronize(model.device)
    elapsed = time.perf_counter() - start
    release(model)
    return elapsed
