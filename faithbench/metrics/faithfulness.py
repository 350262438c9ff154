"""Erasure metrics: what happens to the prediction without the tokens ranked highest."""

from __future__ import annotations

import math

import numpy as np

from faithbench.erasure import top_count, without
from faithbench.metrics import metric
from faithbench.types import Bools, Case, Floats

DECILES = (10, 20, 30, 40, 50, 60, 70, 80, 90)


def without_deciles(case: Case) -> Bools:
    """Plan nine inputs, without the top 10%, ..., 90% of the tokens."""
    return np.stack([without(case.order, top_count(case.n, k)) for k in DECILES])


@metric(
    "aopc",
    family="faithfulness",
    higher_is_better=True,
    bounds=(-1.0, 1.0),
    plan=without_deciles,
)
def aopc(case: Case, answers: Floats) -> float:
    """Mean fall of the target's probability without the top 10..90% (Song et al., Eq. 12)."""
    return float(np.mean(np.exp(case.full[case.target]) - np.exp(answers[:, case.target])))


@metric(
    "lodds",
    family="faithfulness",
    higher_is_better=False,
    bounds=(-math.inf, math.inf),
    plan=without_deciles,
)
def lodds(case: Case, answers: Floats) -> float:
    """Mean log-ratio of the target's probability without the top 10..90% (Song et al., Eq. 13)."""
    return float(np.mean(answers[:, case.target] - case.full[case.target]))
