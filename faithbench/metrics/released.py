"""Metrics as released code computes them, where that departs from the paper: on request only.

They exist to reproduce published numbers; the leaderboard uses the paper's definitions.
"""

from __future__ import annotations

import math

import numpy as np

from faithbench.core.erasure import keep_without
from faithbench.core.types import Bools, Case, Outputs, rank
from faithbench.metrics.faithfulness import (
    ANY,
    SWAPPED_RANKS,
    leave_one_out,
    without_top,
)
from faithbench.metrics.rank_correlation import kendall
from faithbench.metrics.registry import metric


def mask_lrp_grid(case: Case) -> Bools:
    """Plan the nine inputs of the Mask-LRP and AttCAT code.

    All T tokens are ranked, special ones too. Those that may be erased are erased from the top,
    round(k T / 9) of them as long as there are so many, but never the one ranked last of all.
    """
    size = len(case.every_score)
    order = rank(case.every_score)[:-1]
    free = order[np.isin(order, case.positions)]
    counts = np.round(np.linspace(0, 1, 10) * size)[1:].astype(int)
    return np.stack([keep_without(case, free[:count]) for count in counts])


@metric(
    "aopc:variant=mask-lrp",
    family="faithfulness",
    higher_is_better=True,
    bounds=(-1, 1),
    plan=mask_lrp_grid,
    opt_in=True,
    papers=("song2024better",),
)
def aopc_mask_lrp(case: Case, outputs: Outputs) -> float:
    """AOPC on the grid of the Mask-LRP code; with --operator pad, its published numbers."""
    return float(np.mean(case.probability - outputs.probability))


@metric(
    "lodds:variant=mask-lrp",
    family="faithfulness",
    higher_is_better=False,
    bounds=ANY,
    plan=mask_lrp_grid,
    opt_in=True,
    papers=("song2024better",),
)
def lodds_mask_lrp(case: Case, outputs: Outputs) -> float:
    """LOdds on the grid of the Mask-LRP code; with --operator pad, its published numbers."""
    return float(np.mean(outputs.log_probability - case.log_probability))


@metric(
    "aopc:variant=attcat",
    family="faithfulness",
    higher_is_better=True,
    bounds=(0, 1),
    plan=mask_lrp_grid,
    opt_in=True,
    papers=("qiang2022attcat",),
)
def aopc_attcat(case: Case, outputs: Outputs) -> float:
    """AOPC of the AttCAT code: the same grid, but rises of the probability count as falls."""
    return float(np.mean(abs(case.probability - outputs.probability)))


def saloss_steps(case: Case) -> Bools:
    """Plan the inputs of the SaLoss code at batch size 1: 1, 1 + s, 1 + 2s, ... tokens erased.

    s = max(1, round(5% of all T tokens)), half to even; special tokens are ranked and erased
    like the others.
    """
    order = rank(case.every_score)
    return np.stack([keep_without(case, order[:c]) for c in _saloss_counts(len(order))])


def _saloss_counts(size: int) -> range:
    return range(1, size + 1, max(1, round(0.05 * size)))


@metric(
    "flip_fraction:variant=saloss",
    family="faithfulness",
    higher_is_better=False,
    bounds=(0, 1),
    plan=saloss_steps,
    enough=lambda outputs: not outputs.kept.all(),
    opt_in=True,
    papers=("chrysostomou2021enjoy",),
)
def flip_fraction_saloss(case: Case, outputs: Outputs) -> float:
    """Share of all T tokens erased at the first flip, by the steps of the SaLoss code."""
    size = len(case.every_score)
    flipped = np.flatnonzero(~outputs.kept)
    return _saloss_counts(size)[flipped[0]] / size if len(flipped) else 1.0


@metric(
    "tau_loo:variant=jain-wallace",
    family="faithfulness",
    higher_is_better=True,
    bounds=(-1, 1),
    plan=leave_one_out,
    tolerance=SWAPPED_RANKS,
    opt_in=True,
    papers=("jain2019attention",),
)
def tau_loo_jain_wallace(case: Case, outputs: Outputs) -> float | None:
    """Kendall's tau-b between scores and how far the probability moves, up or down."""
    return kendall(case.scores, abs(case.probability - outputs.probability))


@metric(
    "delta_log_odds:variant=l2e",
    family="faithfulness",
    higher_is_better=True,
    bounds=ANY,
    plan=without_top((30,)),
    opt_in=True,
    papers=("situ2021learning",),
)
def delta_log_odds_l2e(case: Case, outputs: Outputs) -> float:
    """Fall of the log-odds without the top 30%, as the L2E code: not clipped, 0 where p is 1."""
    return log_odds_l2e(case.probability) - log_odds_l2e(float(outputs.probability[0]))


def log_odds_l2e(probability: float) -> float:
    """Return ln p/(1-p), and 0 for a probability of 1."""
    return 0.0 if probability == 1 else math.log(probability / (1 - probability))
