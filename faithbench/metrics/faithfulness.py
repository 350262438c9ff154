"""Erasure metrics: what happens to the prediction without the tokens ranked highest."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from faithbench.core.erasure import keep_without, only, top_count, without
from faithbench.core.types import Bools, Case, Floats, Outputs, rank
from faithbench.metrics.kinds import no_rows
from faithbench.metrics.rank_correlation import kendall
from faithbench.metrics.registry import metric

DECILES = (10, 20, 30, 40, 50, 60, 70, 80, 90)
ERASER = (1, 5, 10, 20, 50)
TWENTIETHS = tuple(range(5, 101, 5))
# ln p/(1-p) of a probability that is all but 1: further out, rounding decides.
CERTAIN = 1 - 1e-6
WIDEST = 2 * math.log(CERTAIN / (1 - CERTAIN))

ANY = (-math.inf, math.inf)
SWAPPED_RANKS = 0.05
"""A difference of the last bit can swap two ranks, and move Kendall's tau by this much."""


def without_top(percents: Sequence[int]) -> Callable[[Case], Bools]:
    """Make a plan: inputs without the top k%, for each k."""
    return lambda case: np.stack([without(case, top_count(case.n, k)) for k in percents])


def only_top(percents: Sequence[int]) -> Callable[[Case], Bools]:
    """Make a plan: inputs with nothing but the top k% of the evidence, for each k."""
    return lambda case: np.stack([only(case, top_count(case.n, k)) for k in percents])


without_deciles = without_top(DECILES)


@metric(
    "aopc",
    family="faithfulness",
    higher_is_better=True,
    bounds=(-1, 1),
    plan=without_deciles,
    keeps_curve=True,
    title="AOPC",
    headline=True,
    aspect="comprehensiveness",
    ranked=True,
    papers=("samek2017evaluating", "nguyen2018comparing", "song2024better"),
)
def aopc(case: Case, outputs: Outputs) -> float:
    """Mean fall of the target's probability without the top 10..90% (Song et al., Eq. 12)."""
    return float(np.mean(case.probability - outputs.probability))


@metric(
    "lodds",
    family="faithfulness",
    higher_is_better=False,
    bounds=ANY,
    plan=without_deciles,
    title="LOdds",
    aspect="comprehensiveness",
    papers=("song2024better",),
)
def lodds(case: Case, outputs: Outputs) -> float:
    """Mean log-ratio of the target's probability without the top 10..90% (Song et al., Eq. 13)."""
    return float(np.mean(outputs.log_probability - case.log_probability))


@metric(
    "comprehensiveness",
    family="faithfulness",
    higher_is_better=True,
    bounds=(-1, 1),
    plan=without_top(ERASER),
    aspect="comprehensiveness",
    papers=("deyoung2020eraser",),
)
def comprehensiveness(case: Case, outputs: Outputs) -> float:
    """Mean fall of the probability without the top 1, 5, 10, 20, 50% (DeYoung et al., Sec. 5)."""
    return float(np.mean(case.probability - outputs.probability))


@metric(
    "sufficiency",
    family="faithfulness",
    higher_is_better=False,
    bounds=(-1, 1),
    plan=only_top(ERASER),
    headline=True,
    aspect="sufficiency",
    ranked=True,
    papers=("deyoung2020eraser",),
)
def sufficiency(case: Case, outputs: Outputs) -> float:
    """Mean fall of the probability with only the top 1, 5, 10, 20, 50% (DeYoung et al., Sec. 5)."""
    return float(np.mean(case.probability - outputs.probability))


@metric(
    "flip_fraction",
    family="faithfulness",
    higher_is_better=False,
    bounds=(0, 1),
    plan=without_top(TWENTIETHS),
    enough=lambda outputs: not outputs.kept.all(),
    aspect="comprehensiveness",
    papers=("serrano2019attention", "chrysostomou2021enjoy"),
)
def flip_fraction(case: Case, outputs: Outputs) -> float:
    """Share of tokens erased, in steps of 5%, when the prediction first changes; 1 if never.

    The top 5%, 10%, ..., 100% of the n tokens are erased, each count rounded as every top k%: of
    few tokens two steps may be equal, and the share is that of the whole tokens erased.
    """
    flipped = np.flatnonzero(~outputs.kept)
    return top_count(case.n, TWENTIETHS[flipped[0]]) / case.n if len(flipped) else 1.0


@metric(
    "delta_log_odds",
    family="faithfulness",
    higher_is_better=True,
    bounds=(-WIDEST, WIDEST),
    plan=without_top((30,)),
    aspect="comprehensiveness",
    papers=("situ2021learning",),
)
def delta_log_odds(case: Case, outputs: Outputs) -> float:
    """Fall of the log-odds without the top 30%, probabilities within 1e-6 of 0 or 1 clipped."""
    return log_odds(case.probability) - log_odds(float(outputs.probability[0]))


def most_negative(case: Case) -> Bools:
    """Plan the input without the most negative tokens: 30%, and only those below 0."""
    count = min(top_count(case.n, 30), int((case.scores < 0).sum()))
    if not count:
        return no_rows(case)
    return keep_without(case, case.positions[rank(-case.scores)[:count]])[None]


@metric(
    "delta_log_odds_neg",
    family="faithfulness",
    higher_is_better=False,
    bounds=(-WIDEST, WIDEST),
    plan=most_negative,
    headline=True,
    aspect="sign",
    ranked=True,
    blank=0,
    papers=("situ2021learning",),
)
def delta_log_odds_neg(case: Case, outputs: Outputs) -> float | None:
    """Fall of the log-odds without the 30% most negative tokens; none negative: no value.

    In ranks, no value counts as 0: with no token to erase, nothing changes.
    """
    if not len(outputs.kept):
        return None
    return log_odds(case.probability) - log_odds(float(outputs.probability[0]))


def log_odds(probability: float) -> float:
    """Return ln p/(1-p), p clipped to [1e-6, 1 - 1e-6]."""
    p = min(max(probability, 1 - CERTAIN), CERTAIN)
    return math.log(p / (1 - p))


@metric(
    "agreement",
    family="faithfulness",
    higher_is_better=True,
    bounds=(0, 1),
    plan=only_top((30,)),
    aspect="sufficiency",
    attainable=1,
    papers=("situ2021learning",),
)
def agreement(case: Case, outputs: Outputs) -> float:
    """1 if the prediction is the same with only the top 30% of the evidence, else 0."""
    return float(outputs.kept[0])


def leave_one_out(case: Case) -> Bools:
    """Plan an input without each token that may be erased, in the order of the text."""
    keeps = np.ones((case.n, len(case.every_score)), dtype=bool)
    keeps[np.arange(case.n), case.positions] = False
    return keeps


@metric(
    "tau_loo",
    family="faithfulness",
    higher_is_better=True,
    bounds=(-1, 1),
    plan=leave_one_out,
    tolerance=SWAPPED_RANKS,
    attainable=1,
    papers=("jain2019attention",),
)
def tau_loo(case: Case, outputs: Outputs) -> float | None:
    """Kendall's tau-b between scores and the fall of the probability without each token; not
    ranked, as it grades the order of tokens that do not matter.

    Where one planted word decides, explainers that all put it first get anything between .11
    (gradient-shap) and 1 (occlusion): see `benchmarks/aspects.py`.
    """
    return kendall(case.scores, case.probability - outputs.probability)


@metric("fi_entropy", family="faithfulness", higher_is_better=None, bounds=(0, 1))
def fi_entropy(case: Case, outputs: Outputs) -> float | None:
    """How spread the importance is: entropy of |score| / sum, divided by ln n; a description."""
    return normalised_entropy(case.scores)


def normalised_entropy(scores: Floats) -> float | None:
    """Return the entropy of |score| / sum divided by ln n: 1 if all are equal, 0 for one alone.

    None for fewer than two scores, and where all are 0.
    """
    total = float(abs(scores).sum())
    if len(scores) < 2 or total == 0:
        return None
    shares = abs(scores) / total
    shares = shares[shares > 0]
    return float(-(shares * np.log(shares)).sum() / math.log(len(scores)))


@metric(
    "naopc",
    family="faithfulness",
    higher_is_better=True,
    bounds=ANY,
    plan=without_deciles,
    opt_in=True,
    needs_bounds=True,
    aspect="comprehensiveness",
    attainable=1,
    papers=("edin2025normalized",),
)
def naopc(case: Case, outputs: Outputs) -> float | None:
    """AOPC between the worst (0) and the best (1) order that a beam search finds for the input."""
    if case.bounds is None or case.bounds[0] == case.bounds[1]:
        return None
    low, high = case.bounds
    return (float(np.mean(case.probability - outputs.probability)) - low) / (high - low)


BEST = 20


@metric(
    "answer_recall_at_20",
    family="faithfulness",
    higher_is_better=True,
    bounds=(0, 1),
    need="answers",
    papers=("song2024better",),
)
def answer_recall_at_20(case: Case, outputs: Outputs) -> float | None:
    """Share of the gold answer's tokens among the 20 best (the Precision@20 of Song et al.).

    Of several accepted answers the one found best, as in SQuAD's own scores; none: no value.
    """
    if not case.gold:
        return None
    best = case.evidence[rank(case.every_score[case.evidence])[:BEST]]
    return max(float(gold[best].sum() / gold.sum()) for gold in case.gold)
