"""Whether a claim holds here: every statement about cells tested, and what they come to.

A statement is for its claim if the difference is significant in the claimed direction, after Holm
over all statements of the claim. It is against it if it is significant the other way, or if the
95% interval of our difference holds 0 but not the paper's own: a difference of that size would
have been seen. Otherwise there were too few examples to tell. Numbers that have neither examples
nor seeds, such as times, are compared as they are, and the trial says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from faithbench.stats.pairwise import ALPHA, holm, mcnemar, rank_sum, two_sample_t
from faithbench.stats.signed_rank import FEWEST, signed_rank
from faithbench.stats.summaries import Interval, summarise
from faithbench.studies.reproduction.claims import (
    ClaimSpec,
    Expression,
    Operand,
    Test,
    atoms_of,
    expand,
    operands_of,
)
from faithbench.studies.reproduction.recipe import CellSpec
from faithbench.studies.reproduction.values import Measured, Missing, Value

Verdict = Literal["holds", "does not hold", "cannot be told"]
ALONE = "by the numbers alone, without a test"
Side = Literal["for", "against", "undecided", "missing"]


@dataclass(frozen=True)
class Trial:
    """One statement about cells, tested.

    `difference` is ours in the claimed direction, `theirs` the paper's; a positive one agrees with
    the claim. So does a positive `effect`, that of the test: one outlier can turn a mean. `p` is
    after Holm, None where there was no test. `why` says why it cannot be told.
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


@dataclass(frozen=True)
class Judged:
    """A claim, its trials, and what they come to."""

    claim: ClaimSpec
    trials: tuple[Trial, ...]
    verdict: Verdict
    why: str

    @property
    def count(self) -> str:
        """How many trials are on which side."""
        sides = [trial.side for trial in self.trials]
        parts = [f"{sides.count('for')} of {len(sides)} for it"]
        parts += [f"{sides.count('against')} against"] if "against" in sides else []
        parts += [f"{sides.count('undecided')} undecided"] if "undecided" in sides else []
        parts += [f"{sides.count('missing')} not measured"] if "missing" in sides else []
        return ", ".join(parts)


def judge(claim: ClaimSpec, cells: Mapping[str, CellSpec], values: Mapping[str, Value]) -> Judged:
    """Test every statement of a claim, and say what they come to."""
    whole = expand(claim)
    tried = [_tried(atom, claim.test, cells, values) for atom in atoms_of(whole)]
    tested = [index for index, trial in enumerate(tried) if trial.p is not None]
    adjusted = holm([tried[index].p or 0.0 for index in tested]) if tested else []
    for index, p in zip(tested, adjusted, strict=True):
        tried[index] = replace(tried[index], p=p)
    trials = tuple(_sided(trial, claim.test) for trial in tried)
    verdict = _combined(whole, iter(trials))
    return Judged(claim, trials, verdict, _why(verdict, trials))


def _combined(expression: Expression, trials: Iterator[Trial]) -> Verdict:
    """Combine the trials, in the order of the statements, as all_of and count_of say."""
    parts = expression.all_of if expression.all_of is not None else expression.count_of
    if parts is None:
        sides: dict[Side, Verdict] = {"for": "holds", "against": "does not hold"}
        return sides.get(next(trials).side, "cannot be told")
    verdicts = [_combined(part, trials) for part in parts]
    need = len(verdicts) if expression.at_least is None else expression.at_least
    if verdicts.count("holds") >= need:
        return "holds"
    if len(verdicts) - verdicts.count("does not hold") < need:
        return "does not hold"
    return "cannot be told"


def _why(verdict: Verdict, trials: Sequence[Trial]) -> str:
    """Return why a claim cannot be told, in the words of its trials."""
    if verdict != "cannot be told":
        return ""
    open_ones = (trial for trial in trials if trial.side in ("undecided", "missing"))
    reasons = dict.fromkeys(trial.why for trial in open_ones if trial.why)
    return "; ".join(list(reasons)[:2]) + (" ..." if len(reasons) > 2 else "")


def _tried(
    atom: Expression,
    test: Test,
    cells: Mapping[str, CellSpec],
    values: Mapping[str, Value],
) -> Trial:
    """Test one statement, without correction for the others."""
    what = describe(atom)
    for operand in operands_of(atom):
        value = values.get(operand) if isinstance(operand, str) else None
        if isinstance(operand, str) and not isinstance(value, Measured):
            why = value.why if isinstance(value, Missing) else "not run"
            return Trial(what, "missing", why=why)
    if atom.correlation is not None:
        return _correlated(atom, what, values)
    first, second = atom.greater or atom.less or atom.same or (0.0, 0.0)
    sign = -1.0 if atom.less is not None else 1.0
    theirs = _printed_difference(first, second, cells)
    left, right = (_measured(operand, values) for operand in (first, second))
    trial = _compared(what, left, right, test, sign)
    trial = replace(trial, theirs=None if theirs is None else sign * theirs)
    if atom.same is not None:
        return _equal(trial, atom.within or 0.0)
    return trial


def describe(atom: Expression) -> str:
    """Return a statement in words."""
    if atom.correlation is not None:
        way = "rises" if atom.correlation.sign == "positive" else "falls"
        first, *_, last = atom.correlation.of
        return f"{way} from {first!r} to {last!r}"
    words = {"greater": ">", "less": "<", "same": "="}
    for name, sign in words.items():
        pair = getattr(atom, name)
        if pair is not None:
            margin = f" (within {atom.within:g})" if name == "same" else ""
            return f"{_named(pair[0])} {sign} {_named(pair[1])}{margin}"
    raise AssertionError("an atom is one of the four")


def _named(operand: Operand) -> str:
    return operand if isinstance(operand, str) else f"{operand:g}"


def _measured(operand: Operand, values: Mapping[str, Value]) -> Measured | float:
    if not isinstance(operand, str):
        return float(operand)
    value = values[operand]
    assert isinstance(value, Measured)  # `_tried` has looked
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


def _compared(
    what: str, left: Measured | float, right: Measured | float, test: Test, sign: float
) -> Trial:
    """Compare two sides by a test; the difference is in the claimed direction."""
    first, second = _columns(left, right)
    over_seeds = test == "t" or not first or not second
    if over_seeds:
        return _over_seeds(what, left, right, sign)
    if test == "rank-sum":
        result = rank_sum(list(first.values()), list(second.values()))
        if result.p is None:
            return Trial(what, "undecided", n=result.n, why=result.reason)
        difference = sign * (_mean(first) - _mean(second))
        spread = math.sqrt(sum(_error(column) ** 2 for column in (first, second)))
        ends = (difference - 1.96 * spread, difference + 1.96 * spread)
        return Trial(
            what, "undecided", difference, ends, p=result.p, n=result.n, effect=sign * result.effect
        )
    shared = [name for name in first if name in second]
    pairs = [first[name] for name in shared], [second[name] for name in shared]
    changes = [sign * (a - b) for a, b in zip(*pairs, strict=True)]
    if len(changes) < FEWEST:
        return Trial(what, "undecided", n=len(changes), why=f"only {len(changes)} examples")
    mean, interval, n, _ = summarise(changes)
    # Right or wrong, in any unit; means over several seeds are neither, and are ranked.
    two_valued = len({value for side in pairs for value in side} - {0.0}) == 1
    if test == "mcnemar" and two_valued:
        result = mcnemar(*([float(value != 0) for value in side] for side in pairs))
    else:
        result = signed_rank(*pairs)
    effect = sign * result.effect
    return Trial(what, "undecided", mean, interval, p=result.p, n=n, effect=effect)


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


def _over_seeds(what: str, left: Measured | float, right: Measured | float, sign: float) -> Trial:
    """Compare one number per seed by Student's t; of single numbers, only their difference."""
    sides = [list(side.by_seed) if isinstance(side, Measured) else [side] for side in (left, right)]
    means = [side.mean if isinstance(side, Measured) else side for side in (left, right)]
    difference, n = sign * (means[0] - means[1]), min(map(len, sides))
    p = two_sample_t(sides[0], sides[1])
    if p is None:
        plain = all(not isinstance(side, Measured) or side.n == 1 for side in (left, right))
        if n == 1 and plain and difference != 0:
            return Trial(what, "for" if difference > 0 else "against", difference, n=n, why=ALONE)
        seeds = max(map(len, sides))
        why = "one seed: no test" if seeds == 1 else "no test over seeds against one number"
        return Trial(what, "undecided", difference, n=n, why=why)
    variances = [float(np.var(side, ddof=1)) / len(side) for side in sides]
    from scipy.stats import t

    degrees = len(sides[0]) + len(sides[1]) - 2
    reach = float(t.ppf(0.975, degrees)) * math.sqrt(sum(variances))
    return Trial(what, "undecided", difference, (difference - reach, difference + reach), p=p, n=n)


def _equal(trial: Trial, within: float) -> Trial:
    """Judge a statement of equality by the interval of the difference alone."""
    if trial.interval is None:
        return replace(trial, side="undecided", p=None, why="no interval of the difference")
    low, high = trial.interval
    if -within <= low and high <= within:
        return replace(trial, side="for", p=None)
    if high < -within or low > within:
        return replace(trial, side="against", p=None)
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


def _sided(trial: Trial, test: Test) -> Trial:
    """Say on which side a tested statement is, once p is corrected."""
    if trial.side != "undecided" or test == "interval" or trial.difference is None:
        return trial
    if trial.p is not None and trial.p < ALPHA:
        lean = trial.effect or trial.difference
        return replace(trial, side="for" if lean > 0 else "against")
    if trial.interval is not None and trial.theirs is not None and trial.theirs > 0:
        low, high = trial.interval
        if low <= 0 and high < trial.theirs:
            return replace(trial, side="against")
    return replace(trial, why=trial.why or "too few to tell")
