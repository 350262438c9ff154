"""One statement about cells, tested: by how much two sides differ, and by how much theirs do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Literal

import numpy as np

from faithbench.stats.pairwise import ALPHA, mcnemar, rank_sum, two_sample_t
from faithbench.stats.signed_rank import FEWEST, signed_rank
from faithbench.stats.summaries import Interval, summarise
from faithbench.studies.reproduction.claims import Expression, Operand, Test, operands_of
from faithbench.studies.reproduction.recipe import CellSpec
from faithbench.studies.reproduction.values import Measured, Missing, Value

ALONE = "by the numbers alone, without a test"
Side = Literal["for", "against", "undecided", "missing"]


@dataclass(frozen=True)
class Trial:
    """One statement about cells, tested.

    `difference` is ours in the claimed direction, `theirs` the paper's; a positive one agrees with
    the claim. So does a positive `effect`, that of the test: one outlier can turn a mean. `p` is
    after Holm, None where there was no test. `interval` is that of the difference alone, `wide`
    that for all statements of the claim together (Bonferroni). `why` says why it cannot be told.
    """

    what: str
    side: Side
    difference: float | None = None
    interval: Interval | None = None
    theirs: float | None = None
    p: float | None = None
    n: int = 0
    why: str = ""
    effect: float = 0.0
    wide: Interval | None = None


@dataclass(frozen=True)
class _Question:
    """What is asked of two sides: in words, by which test, and in which direction, 1 or -1.

    `error` is the share of error that its wide interval may have.
    """

    what: str
    test: Test
    sign: float
    error: float


def lacking(atom: Expression, values: Mapping[str, Value]) -> str | None:
    """Return why a statement cannot be tested; None if all its cells are measured."""
    for operand in operands_of(atom):
        value = values.get(operand) if isinstance(operand, str) else None
        if isinstance(operand, str) and not isinstance(value, Measured):
            return value.why if isinstance(value, Missing) else "not run"
    return None


def try_statement(
    atom: Expression,
    test: Test,
    cells: Mapping[str, CellSpec],
    values: Mapping[str, Value],
    error: float,
) -> Trial:
    """Test one statement; its p is not corrected for the others, and `error` is its share."""
    what = describe(atom)
    if atom.correlation is not None:
        return _correlated(atom, what, values)
    first, second = atom.greater or atom.less or atom.same or atom.not_above or (0.0, 0.0)
    sign = -1.0 if atom.less is not None else 1.0
    theirs = _printed_difference(first, second, cells)
    left, right = (_measured(operand, values) for operand in (first, second))
    trial = _compared(_Question(what, test, sign, error), left, right)
    trial = replace(trial, theirs=None if theirs is None else sign * theirs)
    if atom.within is None:
        return trial
    return _bounded(trial, atom.within, below=atom.same is not None)


def describe(atom: Expression) -> str:
    """Return a statement in words."""
    if atom.correlation is not None:
        way = "rises" if atom.correlation.sign == "positive" else "falls"
        first, *_, last = atom.correlation.of
        return f"{way} from {first!r} to {last!r}"
    words = {"greater": ">", "less": "<", "same": "=", "not_above": "<="}
    for name, sign in words.items():
        pair = getattr(atom, name)
        if pair is not None:
            margin = f" (within {atom.within:g})" if atom.within is not None else ""
            return f"{_named(pair[0])} {sign} {_named(pair[1])}{margin}"
    raise AssertionError("an atom is one of the five")


def _named(operand: Operand) -> str:
    return operand if isinstance(operand, str) else f"{operand:g}"


def _measured(operand: Operand, values: Mapping[str, Value]) -> Measured | float:
    if not isinstance(operand, str):
        return float(operand)
    value = values[operand]
    assert isinstance(value, Measured)  # `lacking` has looked
    return value


def _printed_difference(
    first: Operand, second: Operand, cells: Mapping[str, CellSpec]
) -> float | None:
    numbers = [
        cells[operand].printed if isinstance(operand, str) else float(operand)
        for operand in (first, second)
    ]
    if numbers[0] is None or numbers[1] is None:
        return None
    return numbers[0] - numbers[1]


def _compared(asked: _Question, left: Measured | float, right: Measured | float) -> Trial:
    """Compare two sides by a test; the difference is in the claimed direction."""
    first, second = _columns(left, right)
    if asked.test == "t" or not first or not second:
        return _over_seeds(asked, left, right)
    if asked.test == "rank-sum":
        return _unpaired(asked, first, second)
    return _paired(asked, first, second)


def _columns(
    left: Measured | float, right: Measured | float
) -> tuple[Mapping[str, float], Mapping[str, float]]:
    """Return both sides by example; a number is the same for all examples of the other side."""
    if isinstance(left, Measured) and isinstance(right, Measured):
        return left.values, right.values
    if isinstance(left, Measured) and not isinstance(right, Measured):
        return left.values, dict.fromkeys(left.values, right)
    if isinstance(right, Measured) and not isinstance(left, Measured):
        return dict.fromkeys(right.values, left), right.values
    return {}, {}


def _mean(column: Mapping[str, float]) -> float:
    return math.fsum(column.values()) / len(column)


def _error(column: Mapping[str, float]) -> float:
    """Return the standard error of a column's mean."""
    values = np.array(list(column.values()))
    return float(values.std(ddof=1) / math.sqrt(len(values))) if len(values) > 1 else 0.0


def _unpaired(asked: _Question, first: Mapping[str, float], second: Mapping[str, float]) -> Trial:
    """Compare the texts of both sides as strangers, by Wilcoxon's rank-sum test."""
    result = rank_sum(list(first.values()), list(second.values()))
    if result.p is None:
        return Trial(asked.what, "undecided", n=result.n, why=result.reason)
    difference = asked.sign * (_mean(first) - _mean(second))
    spread = math.sqrt(sum(_error(column) ** 2 for column in (first, second)))
    return Trial(
        asked.what,
        "undecided",
        difference,
        _around(difference, 1.96 * spread),
        p=result.p,
        n=result.n,
        effect=asked.sign * result.effect,
        wide=_around(difference, _normal_end(asked.error) * spread),
    )


def _paired(asked: _Question, first: Mapping[str, float], second: Mapping[str, float]) -> Trial:
    """Compare the texts that both sides have, by McNemar's test or by signed ranks."""
    shared = [name for name in first if name in second]
    pairs = [first[name] for name in shared], [second[name] for name in shared]
    changes = [asked.sign * (a - b) for a, b in zip(*pairs, strict=True)]
    if len(changes) < FEWEST:
        return Trial(asked.what, "undecided", n=len(changes), why=f"only {len(changes)} examples")
    mean, interval, n, _ = summarise(changes)
    assert mean is not None and interval is not None  # of at least FEWEST values
    scale = _normal_end(asked.error) / _normal_end(ALPHA)
    wide = (mean - scale * (mean - interval[0]), mean + scale * (interval[1] - mean))
    # Right or wrong, in any unit; means over several seeds are neither, and are ranked.
    kinds = {value for side in pairs for value in side} - {0.0}
    two_valued = len(kinds) == 1
    if two_valued and not any(changes):
        # No draw of pairs that are equal has one that differs, but of all texts some may: with n
        # texts, 1 - x^(1/n) is the share of which none is drawn with a chance of x.
        size = abs(kinds.pop())
        interval, wide = (
            _around(0.0, size * (1 - (level / 2) ** (1 / n))) for level in (ALPHA, asked.error)
        )
    if asked.test == "mcnemar" and two_valued:
        result = mcnemar(*([float(value != 0) for value in side] for side in pairs))
    else:
        result = signed_rank(*pairs)
    return Trial(
        asked.what,
        "undecided",
        mean,
        interval,
        p=result.p,
        n=n,
        effect=asked.sign * result.effect,
        wide=wide,
    )


def _around(middle: float, reach: float) -> Interval:
    return middle - reach, middle + reach


def _normal_end(error: float) -> float:
    """Return how many standard errors an interval with this share of error reaches."""
    return NormalDist().inv_cdf(1 - error / 2)


def _over_seeds(asked: _Question, left: Measured | float, right: Measured | float) -> Trial:
    """Compare one number per seed by Student's t; of single numbers, only their difference."""
    sides = [list(side.by_seed) if isinstance(side, Measured) else [side] for side in (left, right)]
    means = [side.mean if isinstance(side, Measured) else side for side in (left, right)]
    difference, n = asked.sign * (means[0] - means[1]), min(map(len, sides))
    p = two_sample_t(sides[0], sides[1])
    if p is None:
        plain = all(not isinstance(side, Measured) or side.n == 1 for side in (left, right))
        if n == 1 and plain and difference != 0:
            side: Side = "for" if difference > 0 else "against"
            return Trial(asked.what, side, difference, n=n, why=ALONE)
        seeds = max(map(len, sides))
        why = "one seed: no test" if seeds == 1 else "no test over seeds against one number"
        return Trial(asked.what, "undecided", difference, n=n, why=why)
    variances = [float(np.var(side, ddof=1)) / len(side) for side in sides]
    from scipy.stats import t

    degrees, spread = len(sides[0]) + len(sides[1]) - 2, math.sqrt(sum(variances))
    interval, wide = (
        _around(difference, float(t.ppf(1 - level / 2, degrees)) * spread)
        for level in (ALPHA, asked.error)
    )
    return Trial(asked.what, "undecided", difference, interval, p=p, n=n, wide=wide)


def _bounded(trial: Trial, within: float, *, below: bool) -> Trial:
    """Judge by intervals alone that a difference is small: at most so far above 0, or also below.

    Where only above counts, a difference that is significantly above 0 is against it, too.
    """
    if trial.interval is None or trial.wide is None:
        return replace(trial, side="undecided", p=None, why="no interval of the difference")
    low, high = trial.interval
    least, most = trial.wide
    if least > (within if below else 0.0) or (below and most < -within):
        return replace(trial, side="against", p=None)
    if high <= within and (-within <= low or not below):
        return replace(trial, side="for", p=None)
    return replace(trial, p=None, why=f"the interval reaches beyond {within:g}")


def _correlated(atom: Expression, what: str, values: Mapping[str, Value]) -> Trial:
    """Test whether cells rise or fall with numbers, by Kendall's tau over the cells."""
    from scipy.stats import kendalltau

    asked = atom.correlation
    assert asked is not None
    ours = [_number(operand, values) for operand in asked.of]
    by = [_number(operand, values) for operand in asked.by]
    result = kendalltau(by, ours)
    sign = 1.0 if asked.sign == "positive" else -1.0
    if math.isnan(result.statistic):
        return Trial(what, "undecided", n=len(ours), why="all cells are equal")
    return Trial(
        what, "undecided", sign * float(result.statistic), p=float(result.pvalue), n=len(ours)
    )


def _number(operand: Operand, values: Mapping[str, Value]) -> float:
    side = _measured(operand, values)
    return side.mean if isinstance(side, Measured) else side
