"""Verdicts worked by hand: each kind of statement, the rules, and numbers that are swapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from scipy.stats import kendalltau

from faithbench.stats.pairwise import holm
from faithbench.studies.reproduction.values import Measured, Missing, Value
from faithbench.studies.reproduction.verdicts import judge
from tests.studies.reproduction import (
    HIGH,
    LOW,
    A,
    B,
    C,
    alone,
    claim,
    judged,
    made,
    sides,
    unprinted,
)

# Each kind of statement, and its numbers swapped


def test_greater_and_less_are_opposites() -> None:
    values = {A: made(HIGH), B: made(LOW)}
    found = judged("signed-rank", values, greater=[A, B])
    (trial,) = found.trials
    assert (found.verdict, found.why, found.count) == ("holds", "", "1 of 1 for it")
    assert (trial.what, trial.side, trial.n) == ("A | x > B | x", "for", 10)
    assert trial.difference == pytest.approx(0.355) and trial.p == 2 / 2**10
    assert trial.interval is not None and 0.31 <= trial.interval[0] < 0.355 < trial.interval[1]
    swapped = judged("signed-rank", {A: values[B], B: values[A]}, greater=[A, B])
    assert (swapped.verdict, swapped.count) == ("does not hold", "0 of 1 for it, 1 against")
    assert swapped.trials[0].difference == pytest.approx(-0.355)
    # A positive difference is one in the claimed direction.
    less = judged("signed-rank", values, less=[B, A])
    assert less.verdict == "holds" and less.trials[0].difference == pytest.approx(0.355)
    assert less.trials[0].what == "B | x < A | x"
    assert judged("signed-rank", values, less=[A, B]).verdict == "does not hold"


def test_a_cell_is_compared_with_a_number() -> None:
    values = {A: made(HIGH)}
    assert judged("signed-rank", values, greater=[A, 0.4]).verdict == "holds"
    assert judged("signed-rank", values, greater=[0.4, A]).verdict == "does not hold"
    found = judged("signed-rank", values, less=[A, 0.5])
    # Only the first, .41, is below .5: by .09, which has rank 2 after the .02 of the second.
    assert found.verdict == "does not hold" and found.trials[0].p == pytest.approx(6 / 2**10)
    assert found.trials[0].what == "A | x < 0.5"


def test_same_asks_for_an_interval_within_the_margin() -> None:
    near = tuple(value + step for value, step in zip(LOW, (0.01, -0.01) * 5, strict=True))
    values = {A: made(near), B: made(LOW)}
    found = judged("interval", values, same=[A, B], within=0.02)
    (trial,) = found.trials
    assert found.verdict == "holds" and trial.what == "A | x = B | x (within 0.02)"
    assert trial.p is None and trial.difference == pytest.approx(0)
    assert trial.interval is not None and -0.01 <= trial.interval[0] < trial.interval[1] <= 0.01
    # All of it outside the margin is against, on either side; a part of it says nothing.
    for pair in ([A, B], [B, A]):
        apart = judged("interval", {A: made(HIGH), B: made(LOW)}, same=pair, within=0.3)
        assert apart.verdict == "does not hold" and apart.trials[0].p is None
    across = judged("interval", {A: made(HIGH), B: made(LOW)}, same=[A, B], within=0.355)
    assert (across.verdict, across.why) == ("cannot be told", "the interval reaches beyond 0.355")


def test_not_above_asks_for_an_interval_below_the_margin() -> None:
    """EVEN reaches some .13 to either side of 0, and .31 to .41 lie between HIGH and LOW."""
    even = {A: made(EVEN), B: made([0.0] * 8)}
    found = judged("interval", even, not_above=[A, B], within=0.2)
    (trial,) = found.trials
    assert found.verdict == "holds" and trial.what == "A | x <= B | x (within 0.2)"
    assert trial.p is None and trial.difference == pytest.approx(0)
    across = judged("interval", even, not_above=[A, B], within=0.1)
    assert (across.verdict, across.why) == ("cannot be told", "the interval reaches beyond 0.1")
    # Significantly above is against, whatever the margin; significantly below is for.
    apart = {A: made(HIGH), B: made(LOW)}
    for within in (0.3, 0.9):
        assert judged("interval", apart, not_above=[A, B], within=within).verdict == "does not hold"
    assert judged("interval", apart, not_above=[B, A], within=0.01).verdict == "holds"
    assert judged("interval", apart, same=[B, A], within=0.01).verdict == "does not hold"


@pytest.mark.parametrize(("mean", "one", "ten"), [(0.05, "for", "for"), (0.08, "against", "for")])
def test_of_many_each_is_significant_less_easily(mean: float, one: str, ten: str) -> None:
    """The interval reaches .065 to either side, and for ten statements together .093."""
    values: dict[str, Value] = {A: made([v / 2 + mean for v in EVEN]), B: made([0.0] * 8)}
    values |= {f"{n} | x": values[B] for n in range(9)}
    statements = [{"not_above": [name, B], "within": 1.0} for name in (A, *values) if name != B]
    (alone,) = judged("interval", values, all_of=statements[:1]).trials
    (first, *_) = judged("interval", values, all_of=statements[1:]).trials
    assert (alone.side, first.side) == (one, ten) and alone.interval == first.interval


def test_a_correlation_is_tested_over_cells() -> None:
    names = [f"A | {n}" for n in range(6)]
    values: dict[str, Value] = {name: alone(0.1 * n) for n, name in enumerate(names)}
    rises = {"of": names, "by": [0, 1, 2, 3, 4, 5], "sign": "positive"}
    found = judged("tau", values, correlation=rises)
    (trial,) = found.trials
    assert (found.verdict, trial.what) == ("holds", "rises from 'A | 0' to 'A | 5'")
    # One order of 720 agrees in all pairs, and one disagrees.
    assert trial.difference == pytest.approx(1) and trial.p == pytest.approx(2 / 720)
    falls = judged("tau", values, correlation=rises | {"sign": "negative"})
    assert (falls.verdict, falls.trials[0].what[:5]) == ("does not hold", "falls")
    swapped = dict(zip(names, reversed(values.values()), strict=True))
    assert judged("tau", swapped, correlation=rises).verdict == "does not hold"
    # Cells may be compared with cells, and means with means.
    by = [f"B | {n}" for n in range(6)]
    both = values | {name: made((n**2, n**2 + 1)) for n, name in enumerate(by)}
    assert judged("tau", both, correlation=rises | {"by": by}).verdict == "holds"


def test_a_correlation_of_few_or_of_equal_cells_cannot_be_told() -> None:
    names = ["A | 0", "A | 1", "A | 2"]
    few = {name: alone(float(n)) for n, name in enumerate(names)}
    rises = {"of": names, "by": [0, 1, 2], "sign": "positive"}
    found = judged("tau", few, correlation=rises)
    assert (found.verdict, found.why) == ("cannot be told", "too few to tell")
    assert found.trials[0].p == pytest.approx(kendalltau([0, 1, 2], [0, 1, 2]).pvalue) == 1 / 3
    equal = dict.fromkeys(names, alone(1.0))
    found = judged("tau", equal, correlation=rises)
    assert (found.verdict, found.why) == ("cannot be told", "all cells are equal")


def test_all_of_holds_if_all_do() -> None:
    values = {A: made(HIGH), B: made(LOW), C: made([v - 0.3 for v in LOW])}
    both = [{"greater": [A, B]}, {"less": [C, B]}]
    found = judged("signed-rank", values, all_of=both)
    assert (found.verdict, found.count) == ("holds", "2 of 2 for it")
    one_wrong = [{"greater": [A, B]}, {"less": [B, C]}]
    found = judged("signed-rank", values, all_of=one_wrong)
    assert (found.verdict, found.count) == ("does not hold", "1 of 2 for it, 1 against")
    swapped = {A: values[B], B: values[A], C: values[C]}
    assert judged("signed-rank", swapped, all_of=both).verdict == "does not hold"
    one_open = [{"greater": [A, B]}, {"greater": [B, 0.4]}]
    assert judged("signed-rank", values, all_of=one_open).verdict == "cannot be told"


@pytest.mark.parametrize(
    ("at_least", "verdict"),
    [(1, "holds"), (2, "holds"), (3, "cannot be told"), (4, "does not hold")],
)
def test_a_count_is_told_as_soon_as_the_rest_cannot_change_it(at_least: int, verdict: str) -> None:
    """Two for it, one against, one undecided: three are possible, four are not."""
    values = {A: made([v + 9 for v in HIGH]), B: made(LOW), C: made([v - 9 for v in LOW])}
    four = [{"greater": [A, B]}, {"greater": [B, C]}, {"greater": [C, A]}, {"greater": [B, 0.4]}]
    found = judged("signed-rank", values, count_of=four, at_least=at_least)
    assert sides(found) == ["for", "for", "against", "undecided"]
    assert found.count == "2 of 4 for it, 1 against, 1 undecided"
    assert found.verdict == verdict
    assert found.why == ("too few to tell" if verdict == "cannot be told" else "")


def test_a_count_may_be_of_wholes() -> None:
    """Two tasks of two: on the first, A is above all others; on the second, only above B."""
    names = {f"{row} | {task}" for row in "ABC" for task in "xy"}
    levels = {"A | x": 3, "B | x": 2, "C | x": 1, "A | y": 2, "B | y": 1, "C | y": 3}
    values = {name: made([v + 9 * levels[name] for v in LOW]) for name in names}
    inner = {"greater": ["A | {t}", "{o} | {t}"], "each": {"o": ["B", "C"]}}
    wholes = [{"all_of": [inner], "each": {"t": ["x", "y"]}}]
    found = judged("signed-rank", values, count_of=wholes, at_least=1)
    assert sides(found) == ["for", "for", "for", "against"] and found.verdict == "holds"
    assert judged("signed-rank", values, count_of=wholes, at_least=2).verdict == "does not hold"


def test_each_is_tested_for_every_value() -> None:
    values = {"A | x": made(HIGH), "B | x": made(LOW), "A | y": made(LOW), "B | y": made(HIGH)}
    statement: dict[str, Any] = {"greater": ["A | {c}", "B | {c}"], "each": {"c": ["x", "y"]}}
    found = judged("signed-rank", values, **statement)
    assert sides(found) == ["for", "against"] and found.verdict == "does not hold"
    both = values | {"A | y": made(HIGH), "B | y": made(LOW)}
    assert judged("signed-rank", both, **statement).verdict == "holds"


# The rules


def test_significant_the_other_way_is_against_whatever_the_paper_printed() -> None:
    values = {A: made(LOW), B: made(HIGH)}
    for printed in (None, {A: 9.0, B: 1.0}, {A: 1.0, B: 9.0}):
        found = judged("signed-rank", values, printed, greater=[A, B])
        assert sides(found) == ["against"]
    assert found.trials[0].theirs == -8.0


@pytest.mark.parametrize("test", ["signed-rank", "rank-sum"])
def test_one_text_far_off_does_not_turn_what_ranks_say(test: str) -> None:
    """Nineteen of twenty texts are higher, and significantly so; one is lower by far."""
    numbers = [1 + n / 100 for n in range(19)] + [-100.0]
    values = {A: made(numbers), B: made([n / 1000 for n in range(20)])}
    (trial,) = judged(test, values, greater=[A, B]).trials
    assert trial.p is not None and trial.p < 0.01
    assert trial.side != "against"


EVEN = (0.1, -0.1, 0.2, -0.2, 0.3, -0.3, 0.05, -0.05)
"""Differences to 0 that cancel out: their interval reaches some .13 to either side."""


def test_a_difference_of_the_papers_size_would_have_been_seen() -> None:
    """An interval that holds 0 but not the paper's difference is against the claim."""
    values = {A: made(EVEN), B: made([0.0] * 8)}
    seen = judged("signed-rank", values, {A: 0.9, B: 0.5}, greater=[A, B])
    (trial,) = seen.trials
    assert trial.interval is not None and trial.interval[0] < 0 < trial.interval[1] < 0.2
    assert (seen.verdict, trial.theirs) == ("does not hold", pytest.approx(0.4))
    assert trial.p is not None and trial.p > 0.9 and trial.why == ""
    # A difference that the interval holds as well may yet be there.
    small = judged("signed-rank", values, {A: 0.55, B: 0.5}, greater=[A, B])
    assert (small.verdict, small.why) == ("cannot be told", "too few to tell")
    # So may any, where the paper prints none, or one that speaks against its own claim.
    for printed in ({A: None, B: 0.5}, {A: 0.5, B: 0.9}):
        assert judged("signed-rank", values, printed, greater=[A, B]).verdict == "cannot be told"
    # In the direction of the claim: for less, the paper's difference is turned round.
    less = judged("signed-rank", values, {A: 0.5, B: 0.9}, less=[A, B])
    assert (less.verdict, less.trials[0].theirs) == ("does not hold", pytest.approx(0.4))


@pytest.mark.parametrize("others", [0, 1, 9, 99])
def test_of_many_statements_each_is_against_less_easily(others: int) -> None:
    """The end of the interval lies 1.96 errors off for one, 2.24 for two, 2.81 for ten."""
    values: dict[str, Value] = {A: made(EVEN), B: made([0.0] * 8), C: made([9.0] * 8)}
    printed = {A: 0.15, B: 0.0, C: 9.0}
    cells = printed | {f"{n} | x": 0.0 for n in range(others)}
    values |= {f"{n} | x": made([0.0] * 8) for n in range(others)}
    many = [{"greater": [C, f"{n} | x"]} for n in range(others)]
    found = judged("signed-rank", values, cells, all_of=[{"greater": [A, B]}, *many])
    trial = found.trials[0]
    assert trial.interval is not None and trial.wide is not None
    reach = {0: 1.0, 1: 2.2414 / 1.96, 9: 2.8070 / 1.96, 99: 3.4808 / 1.96}[others]
    assert trial.wide[1] == pytest.approx(reach * trial.interval[1], rel=1e-4)
    assert trial.wide[0] == pytest.approx(reach * trial.interval[0], rel=1e-4)
    assert 0.12 < trial.interval[1] < 0.15 < 2.2414 / 1.96 * trial.interval[1]
    assert trial.side == ("undecided" if others else "against")


def test_statements_that_are_not_measured_do_not_count() -> None:
    values: dict[str, Value] = {A: made(EVEN), B: made([0.0] * 8), C: Missing("no such model")}
    both = [{"greater": [A, B]}, {"greater": [A, C]}]
    found = judged("signed-rank", values, {A: 0.15, B: 0.0, C: 0.0}, all_of=both)
    assert sides(found) == ["against", "missing"]


def test_a_number_of_the_statement_is_the_papers_too() -> None:
    found = judged("signed-rank", {A: made(EVEN)}, {A: 0.9}, greater=[A, 0])
    assert found.trials[0].theirs == 0.9 and found.verdict == "does not hold"


def test_too_few_examples_cannot_be_told() -> None:
    """Five pairs cannot reach p < .05, however far apart."""
    found = judged("signed-rank", {A: made([9.0] * 5), B: made([0.0] * 5)}, greater=[A, B])
    assert (found.verdict, found.why) == ("cannot be told", "only 5 examples")
    assert found.trials[0].difference is None and found.count == "0 of 1 for it, 1 undecided"
    six = judged("signed-rank", {A: made([9.0] * 6), B: made([0.0] * 6)}, greater=[A, B])
    assert six.verdict == "holds" and six.trials[0].p == 2 / 2**6
    none = Measured(1.0, None, 1, {"z": 1.0}, (1.0,))
    assert judged("signed-rank", {A: none, B: made(LOW)}, greater=[A, B]).why == "only 0 examples"


@pytest.mark.parametrize("numbers", [(0.5,), (0.3, 0.4, 0.5, 0.6, 0.7)])
def test_too_few_examples_cannot_be_told_by_ranks_either(numbers: Sequence[float]) -> None:
    values: dict[str, Value] = {A: made(numbers), B: made(numbers)}
    found = judged("rank-sum", values, {A: 0.9, B: 0.5}, greater=[A, B])
    assert found.verdict == "cannot be told"


def test_equal_values_cannot_be_told_unless_the_paper_saw_a_difference() -> None:
    values = {A: made(LOW), B: made(LOW)}
    found = judged("signed-rank", values, greater=[A, B])
    assert (found.verdict, found.trials[0].p) == ("cannot be told", None)
    assert judged("signed-rank", values, {A: 0.9, B: 0.5}, greater=[A, B]).verdict == (
        "does not hold"
    )
    # Of right and wrong, 20 equal texts leave room for a difference in every sixth.
    right = {A: made([1.0, 0.0] * 10), B: made([1.0, 0.0] * 10)}
    for theirs, verdict in ((0.16, "cannot be told"), (0.17, "does not hold")):
        found = judged("mcnemar", right, {A: theirs, B: 0.0}, greater=[A, B])
        assert found.verdict == verdict


def test_a_missing_cell_cannot_be_told_and_says_why() -> None:
    values: dict[str, Value] = {A: made(HIGH), B: Missing("no such model"), C: made(LOW)}
    found = judged("signed-rank", values, greater=[A, B])
    (trial,) = found.trials
    assert (trial.side, trial.why, trial.difference) == ("missing", "no such model", None)
    assert (found.verdict, found.why) == ("cannot be told", "no such model")
    assert found.count == "0 of 1 for it, 1 not measured"
    # What is there is tested, and may decide.
    both = [{"greater": [A, B]}, {"greater": [A, C]}]
    assert judged("signed-rank", values, all_of=both).verdict == "cannot be told"
    assert judged("signed-rank", values, count_of=both, at_least=1).verdict == "holds"
    wrong = [{"greater": [A, B]}, {"greater": [C, A]}]
    assert judged("signed-rank", values, all_of=wrong).verdict == "does not hold"
    of = {"of": [A, B, C], "by": [1, 2, 3], "sign": "positive"}
    assert judged("tau", values, correlation=of).why == "no such model"
    absent = judge(claim("signed-rank", greater=[A, B]), unprinted(values), {A: made(HIGH)})
    assert absent.why == "not run"


def test_three_reasons_are_told_by_the_first_two() -> None:
    values: dict[str, Value] = {A: Missing("one"), B: Missing("two"), C: Missing("three")}
    four = [{"greater": [name, 0]} for name in (A, B, C, A)]
    assert judged("signed-rank", values, all_of=four).why == "one; two ..."
    assert judged("signed-rank", values, all_of=four[:2]).why == "one; two"


def test_only_what_is_open_is_a_reason() -> None:
    values: dict[str, Value] = {A: alone(2.0), B: alone(1.0), C: Missing("no such model")}
    both = [{"greater": [A, B]}, {"greater": [A, C]}]
    assert judged("t", values, all_of=both).why == "no such model"


def test_p_is_corrected_over_the_statements_of_a_claim() -> None:
    """Six pairs all one way have p = 2 / 2^6: of one statement it is small, of two it is not."""
    six: dict[str, Value] = {A: made(HIGH[:6]), B: made(LOW[:6]), C: made([v - 9 for v in LOW[:6]])}
    assert judged("signed-rank", six, greater=[A, B]).verdict == "holds"
    both = [{"greater": [A, B]}, {"greater": [B, C]}]
    found = judged("signed-rank", six, all_of=both)
    assert [trial.p for trial in found.trials] == [4 / 2**6] * 2
    assert found.verdict == "cannot be told"
    # Statements without a test do not count.
    missing = six | {"D | x": Missing("no such model")}
    third = [{"greater": [A, B]}, {"greater": [A, "D | x"]}]
    assert judged("signed-rank", missing, all_of=third).trials[0].p == 2 / 2**6
    # Different p, as Holm has them: the smallest counts for all.
    ten = {A: made(HIGH), B: made(LOW), C: made([v + 0.45 for v in LOW])}
    mixed = judged("signed-rank", ten, all_of=[{"greater": [A, B]}, {"greater": [A, C]}])
    raw = [judged("signed-rank", ten, greater=[A, other]).trials[0].p for other in (B, C)]
    assert [trial.p for trial in mixed.trials] == holm([p or 0.0 for p in raw])
