"""The paper's claims, each with the tests that decide it.

Tests compare texts, paired: what they say holds for these networks. Seeds are averaged text by text
where networks of several projections are compared, and whether every seed agrees is told beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from faithbench.core.types import Floats
from faithbench.metrics.rank_correlation import kendall
from faithbench.stats.pairwise import ALPHA, holm, mcnemar
from faithbench.stats.signed_rank import PairedTest, signed_rank
from faithbench.studies.sparse_attention.adversary import WEIGHT, Adversary
from faithbench.studies.sparse_attention.record import StudyRecord

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be told"]
HALF = 0.5
"""Above it, an entropy is called high; below it, a word has the smaller part of its own h."""


@dataclass(frozen=True)
class Trial:
    """One test: what was compared, by how much they differ in the claimed direction, and p.

    `difference` is positive where the claim is right, and so is `effect`, that of the test: one
    text far off can turn a mean. `p` is after Holm's correction over the trials of the claim, None
    where there was no test. `seeds` is how many seeds differ in the
    claimed direction, of how many.
    """

    what: str
    difference: float
    p: float | None
    n: int
    seeds: tuple[int, int] | None = None
    effect: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """Whether this trial is for the claim, against it, or neither."""
        if self.p is None or self.p >= ALPHA:
            return "cannot be told"
        return "holds" if (self.effect or self.difference) > 0 else "does not hold"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper, its trials, and what they come to."""

    number: str
    sentence: str
    test: str
    trials: tuple[Trial, ...]
    note: str = ""

    @property
    def verdict(self) -> Verdict:
        """Holds if every trial says so, does not if none does; undecided ones count for neither."""
        verdicts = [trial.verdict for trial in self.trials]
        if not verdicts or set(verdicts) == {"cannot be told"}:
            return "cannot be told"
        if all(verdict == "holds" for verdict in verdicts):
            return "holds"
        return "holds in part" if "holds" in verdicts else "does not hold"

    @property
    def count(self) -> str:
        """How many trials are for the claim, against it, and undecided."""
        verdicts = [trial.verdict for trial in self.trials]
        against, undecided = (verdicts.count(v) for v in ("does not hold", "cannot be told"))
        return (
            f"{verdicts.count('holds')} of {len(verdicts)} for it, {against} against, "
            f"{undecided} undecided"
        )


@dataclass(frozen=True)
class Group:
    """The trained networks of one task and architecture, by projection; a list holds its seeds."""

    task: str
    arch: str
    by_projection: dict[str, list[StudyRecord]]

    @property
    def name(self) -> str:
        """What tables call it."""
        return f"{self.task}, {self.arch}"

    @property
    def strengths(self) -> dict[float, list[StudyRecord]]:
        """The networks with a lambda, from the lowest lambda up."""
        found = {
            records[0].network.strength: records
            for records in self.by_projection.values()
            if records[0].network.strength is not None
        }
        return {key: found[key] for key in sorted(k for k in found if k is not None)}


def groups_of(records: Sequence[StudyRecord]) -> list[Group]:
    """Sort trained networks by task and architecture, in their order."""
    groups: dict[tuple[str, str], dict[str, list[StudyRecord]]] = {}
    for record in records:
        if record.network.trained:
            key = (record.task.name, record.network.arch)
            by_projection = groups.setdefault(key, {})
            by_projection.setdefault(record.network.projection, []).append(record)
    return [Group(task, arch, found) for (task, arch), found in groups.items()]


def column(record: StudyRecord, name: str) -> Floats:
    """Return the values of a measure, NaN where one is missing."""
    values = record.values[name]
    return np.array([math.nan if value is None else value for value in values])


def over_seeds(records: Sequence[StudyRecord], name: str) -> Floats:
    """Return each text's mean over the seeds; a text that one of them lacks is missing."""
    values: Floats = np.mean([column(record, name) for record in records], axis=0)
    return values


def mean(values: Floats) -> float | None:
    """Return the mean of what is there, None if nothing is."""
    present = values[~np.isnan(values)]
    return float(present.mean()) if len(present) else None


def claims_of(
    records: Sequence[StudyRecord], adversaries: Sequence[Adversary] = ()
) -> tuple[Claim, ...]:
    """Test every claim of the paper on the records of a study."""
    groups = groups_of(records)
    sparse = [
        record
        for group in groups
        for strength, found in group.strengths.items()
        if strength >= 0
        for record in found
    ]
    trained = [record for record in records if record.network.trained]
    return (
        _inner_above_inputs("1", trained, "gradient", inside=False),
        _inner_above_inputs("1 (leave-one-out)", trained, "loo", inside=False),
        _inner_above_inputs("1 (inside the support)", trained, "gradient", inside=True),
        _spread("2", trained),
        _not_its_own("2 (own share)", trained),
        _importance_not_sparse("3", sparse),
        _trend(
            "3 (Table 2)",
            "The entropy of input importance falls with lambda (the sign of Table 2).",
            groups,
            "entropy_gradient_x",
            rises=False,
            note="The paper's text says the opposite of its table, that entropy increases with "
            "sparsity: a trial against this claim is one for the text.",
        ),
        _trend(
            "4",
            "Agreement of attention with the gradient of inputs falls as lambda grows.",
            groups,
            "tau_gradient_x",
            rises=False,
        ),
        _trend(
            "4 (leave-one-out)",
            "The same of leave-one-out.",
            groups,
            "tau_loo_x",
            rises=False,
        ),
        _trend(
            "4 (share of the ceiling)",
            "The same of the gradient, as a share of what ties allow.",
            groups,
            "share_gradient_x",
            rises=False,
            note="With few weights above 0, tau-b cannot be high, whatever attention is on.",
        ),
        *_adversarial(adversaries),
    )


def _tested(
    number: str,
    sentence: str,
    test: str,
    trials: Sequence[tuple[str, float, PairedTest, tuple[int, int] | None]],
    note: str = "",
) -> Claim:
    """Correct the trials of one claim together."""
    tested = [index for index, trial in enumerate(trials) if trial[2].p is not None]
    ps = [trials[index][2].p or 0.0 for index in tested]
    adjusted = dict(zip(tested, holm(ps) if ps else [], strict=True))
    return Claim(
        number,
        sentence,
        test,
        tuple(
            Trial(what, difference, adjusted.get(index), result.n, seeds, result.effect)
            for index, (what, difference, result, seeds) in enumerate(trials)
        ),
        note,
    )


def _compared(what: str, higher: Floats, lower: Floats) -> tuple[str, float, PairedTest, None]:
    """Test whether one column is the higher, text by text."""
    both = ~np.isnan(higher) & ~np.isnan(lower)
    first, second = higher[both].tolist(), lower[both].tolist()
    difference = float(np.mean(higher[both] - lower[both])) if both.any() else 0.0
    return what, difference, signed_rank(first, second), None


def _inner_above_inputs(
    number: str, records: Sequence[StudyRecord], kind: str, *, inside: bool
) -> Claim:
    prefix = "inside" if inside else "tau"
    note = ""
    if inside:
        note = (
            "Off the support the influence of h is exactly 0, as is attention, so that tau with h "
            "is high by construction. Here only words with attention above 0 are compared."
        )
    return _tested(
        number,
        "Attention agrees more with inner representations than with inputs.",
        f"tau-b with the {'gradient' if kind == 'gradient' else 'leave-one-out change'} of h "
        "against that of x, signed ranks over texts, each network",
        [
            _compared(
                record.network.name,
                column(record, f"{prefix}_{kind}_h"),
                column(record, f"{prefix}_{kind}_x"),
            )
            for record in records
        ],
        note,
    )


def _spread(number: str, records: Sequence[StudyRecord]) -> Claim:
    return _tested(
        number,
        "Inner representations are far from one-to-one with inputs: entropies are high.",
        f"entropy of the influence on h above {HALF}, signed ranks over texts, each network",
        [
            _compared(
                record.network.name,
                values := column(record, "entropy_on_h"),
                np.full_like(values, HALF),
            )
            for record in records
        ],
        "An untrained network of the same shape has high entropies too (below Table 1).",
    )


def _not_its_own(number: str, records: Sequence[StudyRecord]) -> Claim:
    return _tested(
        number,
        "Most of what moves h_i is not the word x_i.",
        f"own share of x_i in h_i below {HALF}, signed ranks over texts, each network",
        [
            _compared(
                record.network.name,
                np.full_like(values := column(record, "own_share"), HALF),
                values,
            )
            for record in records
        ],
    )


def _importance_not_sparse(number: str, records: Sequence[StudyRecord]) -> Claim:
    return _tested(
        number,
        "Sparse attention does not make input importance sparse.",
        "entropy of the gradient of x above that of attention, signed ranks over texts, each "
        "network with lambda of 0 or more",
        [
            _compared(
                record.network.name,
                column(record, "entropy_gradient_x"),
                column(record, "entropy_attention"),
            )
            for record in records
        ],
    )


def trends(by_strength: dict[float, list[StudyRecord]], name: str) -> Floats:
    """Return, per text, Kendall's tau-b between lambda and a measure's mean over the seeds."""
    strengths = np.array(list(by_strength))
    table = np.array([over_seeds(records, name) for records in by_strength.values()])
    correlations = [
        math.nan if np.isnan(values).any() else kendall(strengths, values) for values in table.T
    ]
    return np.array([0.0 if value is None else value for value in correlations])


def _trend(
    number: str,
    sentence: str,
    groups: Sequence[Group],
    name: str,
    *,
    rises: bool,
    note: str = "",
) -> Claim:
    sign = 1.0 if rises else -1.0
    trials = []
    for group in groups:
        by_strength = group.strengths
        if len(by_strength) < 2:
            continue
        found = sign * trends(by_strength, name)
        what, difference, result, _ = _compared(group.name, found, np.zeros_like(found))
        trials.append((what, difference, result, _agreeing(by_strength, name, sign)))
    return _tested(
        number,
        sentence,
        "tau-b with lambda within each text, its mean over texts against 0 by signed ranks, each "
        "task and architecture",
        trials,
        note,
    )


def _agreeing(
    by_strength: dict[float, list[StudyRecord]], name: str, sign: float
) -> tuple[int, int]:
    """Count the seeds whose own trend has the claimed sign."""
    seeds = min(map(len, by_strength.values()))
    alone = [
        mean(sign * trends({k: [found[seed]] for k, found in by_strength.items()}, name))
        for seed in range(seeds)
    ]
    return sum(value is not None and value > 0 for value in alone), seeds


def _adversarial(adversaries: Sequence[Adversary]) -> tuple[Claim, ...]:
    usual = [one for one in adversaries if one.weight == WEIGHT]
    if not usual:
        return ()

    def claim(number: str, sentence: str, lower: Callable[[Adversary], tuple[bool, ...]]) -> Claim:
        trials = []
        for one in usual:
            base = [float(value) for value in one.base]
            other = [float(value) for value in lower(one)]
            difference = float(np.mean(base) - np.mean(other))
            trials.append((one.network, difference, mcnemar(base, other), None))
        return _tested(number, sentence, "accuracy on all test texts, exact McNemar", trials)

    frozen = "With frozen weights, attention that diverges costs accuracy"
    return (
        claim("5", f"{frozen}, at the trained adversary's divergence.", lambda one: one.near),
        claim("5 (as far as possible)", f"{frozen}, on the least attended word.", lambda a: a.far),
        claim(
            "5 (trained; the paper expects it not to hold)",
            "A network that is trained to diverge is less accurate.",
            lambda one: one.trained,
        ),
    )
