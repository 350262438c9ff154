"""Whether a claim holds here: every statement about cells tested, and what they come to.

A statement is for its claim if the difference is significant in the claimed direction, after Holm
over all statements of the claim. It is against it if it is significant the other way, or if the
95% interval of our difference holds 0 but not the paper's own: a difference of that size would
have been seen. Of many statements one misses the paper's difference by chance, so that the end
towards it is that of the wide interval, for all statements together. Otherwise there were too few
examples to tell. Numbers that have neither examples nor seeds, such as times, are compared as they
are, and the trial says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from faithbench.stats.pairwise import ALPHA, holm
from faithbench.studies.reproduction.claims import ClaimSpec, Expression, Test, atoms_of, expand
from faithbench.studies.reproduction.recipe import CellSpec
from faithbench.studies.reproduction.trials import (
    ALONE,
    Side,
    Trial,
    describe,
    lacking,
    try_statement,
)
from faithbench.studies.reproduction.values import Value

Verdict = Literal["holds", "does not hold", "cannot be told"]


@dataclass(frozen=True)
class Judged:
    """A claim, its trials, and what they come to."""

    claim: ClaimSpec
    trials: tuple[Trial, ...]
    verdict: Verdict
    why: str

    @property
    def count(self) -> str:
        """How many trials are on which side, and how many of them had no test."""
        sides = [trial.side for trial in self.trials]
        parts = [f"{sides.count('for')} of {len(sides)} for it"]
        parts += [f"{sides.count('against')} against"] if "against" in sides else []
        parts += [f"{sides.count('undecided')} undecided"] if "undecided" in sides else []
        parts += [f"{sides.count('missing')} not measured"] if "missing" in sides else []
        alone = sum(trial.why == ALONE for trial in self.trials)
        parts += [f"{alone} without a test"] if alone else []
        return ", ".join(parts)


def judge(claim: ClaimSpec, cells: Mapping[str, CellSpec], values: Mapping[str, Value]) -> Judged:
    """Test every statement of a claim, and say what they come to."""
    whole = expand(claim)
    atoms = list(atoms_of(whole))
    reasons = [lacking(atom, values) for atom in atoms]
    # The share of error that each statement may have, of those that are tested.
    error = ALPHA / max(1, reasons.count(None))
    tried = [
        try_statement(atom, claim.test, cells, values, error)
        if why is None
        else Trial(describe(atom), "missing", why=why)
        for atom, why in zip(atoms, reasons, strict=True)
    ]
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


def _sided(trial: Trial, test: Test) -> Trial:
    """Say on which side a tested statement is, once p is corrected."""
    if trial.side != "undecided" or test == "interval" or trial.difference is None:
        return trial
    if trial.p is not None and trial.p < ALPHA:
        lean = trial.effect or trial.difference
        return replace(trial, side="for" if lean > 0 else "against")
    if _is_smaller(trial):
        return replace(trial, side="against")
    return replace(trial, why=trial.why or "too few to tell")


def _is_smaller(trial: Trial) -> bool:
    """Return whether our difference may be 0, and cannot be as large as the paper's."""
    if trial.interval is None or trial.wide is None or trial.theirs is None:
        return False
    return trial.interval[0] <= 0 and trial.theirs > 0 and trial.wide[1] < trial.theirs
