"""One statement at a time: each test by hand, numbers without one, and intervals without width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from scipy.stats import ranksums, ttest_ind

from faithbench.studies.reproduction.claims import expand
from faithbench.studies.reproduction.trials import ALONE, describe
from faithbench.studies.reproduction.values import Measured
from tests.studies.reproduction import (
    HIGH,
    LOW,
    A,
    B,
    alone,
    claim,
    judged,
    made,
)


def test_rank_sum_takes_the_texts_of_both_sides_for_strangers() -> None:
    """It needs no text in common; p is Wilcoxon's."""
    first = Measured(0.0, None, 10, {f"a{i}": v for i, v in enumerate(HIGH)}, (0.0,))
    second = Measured(0.0, None, 10, {f"b{i}": v for i, v in enumerate(LOW)}, (0.0,))
    found = judged("rank-sum", {A: first, B: second}, greater=[A, B])
    (trial,) = found.trials
    assert trial.p == pytest.approx(ranksums(HIGH, LOW).pvalue)
    assert trial.difference == pytest.approx(0.355) and trial.p is not None and trial.p < 0.05
    # The interval is 1.96 standard errors to either side, of two means of ten.
    variances = [sum((v - sum(side) / 10) ** 2 for v in side) / 9 / 10 for side in (HIGH, LOW)]
    reach = 1.96 * sum(variances) ** 0.5
    assert trial.interval == pytest.approx((0.355 - reach, 0.355 + reach))
    assert trial.wide == pytest.approx((0.355 - reach, 0.355 + reach), rel=1e-4)
    assert found.verdict == "holds"
    assert judged("rank-sum", {A: second, B: first}, greater=[A, B]).verdict == "does not hold"


def test_t_is_over_seeds_whatever_the_examples_say() -> None:
    values = {A: alone(0.8, (0.79, 0.8, 0.81)), B: alone(0.7, (0.69, 0.7, 0.71))}
    found = judged("t", values, greater=[A, B])
    (trial,) = found.trials
    assert (found.verdict, trial.n) == ("holds", 3)
    assert trial.p == pytest.approx(ttest_ind(values[A].by_seed, values[B].by_seed).pvalue)
    # Both have a deviation of .01; t of four degrees reaches 2.776 standard errors.
    reach = 2.776445 * (2 * 0.01**2 / 3) ** 0.5
    assert trial.interval == pytest.approx((0.1 - reach, 0.1 + reach), rel=1e-5)
    assert trial.wide == trial.interval
    # Of two statements, 3.495.
    both = [{"greater": [A, B]}, {"less": [B, A]}]
    reach *= 3.495406 / 2.776445
    (wide, _) = (trial.wide for trial in judged("t", values, all_of=both).trials)
    assert wide == pytest.approx((0.1 - reach, 0.1 + reach), rel=1e-5)
    assert judged("t", {A: values[B], B: values[A]}, greater=[A, B]).verdict == "does not hold"
    examples = {A: made(HIGH), B: made(LOW)}
    assert judged("t", examples, greater=[A, B]).why == "one seed: no test"


@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_mcnemar_counts_who_alone_is_right(scale: float) -> None:
    """Of 24 texts, the first alone is right on ten and the second on one: p = 2 x 12 / 2^11."""
    first = [scale] * 10 + [0.0] + [scale] * 13
    second = [0.0] * 10 + [scale] + [scale] * 13
    found = judged("mcnemar", {A: made(first), B: made(second)}, greater=[A, B])
    (trial,) = found.trials
    assert found.verdict == "holds" and trial.p == pytest.approx(2 * 12 / 2**11)
    assert trial.difference == pytest.approx(scale * 9 / 24) and trial.n == 24
    swapped = judged("mcnemar", {A: made(second), B: made(first)}, greater=[A, B])
    assert swapped.verdict == "does not hold"


@pytest.mark.parametrize("scale", [1.0, 100.0])
@pytest.mark.parametrize("test", ["mcnemar", "signed-rank"])
def test_texts_that_never_differ_leave_room_for_some_that_do(test: str, scale: float) -> None:
    """Were 3.62% of all texts to differ, 100 texts would have none with a chance of .025."""
    equal = {A: made([scale, 0.0] * 50), B: made([scale, 0.0] * 50)}
    (trial,) = judged(test, equal, greater=[A, B]).trials
    assert (trial.difference, trial.p, trial.n) == (0.0, None, 100)
    assert trial.interval == pytest.approx((-0.03622 * scale, 0.03622 * scale), rel=1e-3)
    assert trial.wide == trial.interval
    # Nothing is known of how far values of other kinds may differ.
    same = {A: made(LOW), B: made(LOW)}
    assert judged(test, same, greater=[A, B]).trials[0].interval == (0.0, 0.0)


def test_mcnemar_of_shares_of_seeds_is_by_ranks() -> None:
    """Right under two seeds of three is neither right nor wrong."""
    first, second = [2 / 3] * 3 + [1.0] * 4, [1 / 3] * 3 + [0.0] * 4
    found = judged("mcnemar", {A: made(first), B: made(second)}, greater=[A, B])
    assert found.verdict == "holds" and found.trials[0].p == 2 / 2**7


def test_tests_need_texts_that_both_sides_have() -> None:
    more = Measured(0.0, None, 3, {f"e{i}": v for i, v in enumerate((*HIGH, 5.0, 6.0))}, (0.0,))
    found = judged("signed-rank", {A: more, B: made(LOW)}, greater=[A, B])
    assert found.trials[0].n == 10 and found.trials[0].difference == pytest.approx(0.355)


@pytest.mark.parametrize("test", ["t", "signed-rank", "mcnemar", "rank-sum"])
def test_numbers_without_examples_and_seeds_are_compared_alone(test: str) -> None:
    values = {A: alone(2.0), B: alone(1.0)}
    found = judged(test, values, greater=[A, B])
    (trial,) = found.trials
    assert (found.verdict, trial.why) == ("holds", ALONE)
    assert found.count == "1 of 1 for it, 1 without a test"
    assert (trial.difference, trial.p, trial.interval, trial.n) == (1.0, None, None, 1)
    assert judged(test, values, less=[A, B]).verdict == "does not hold"
    assert judged(test, values, greater=[A, 1.5]).verdict == "holds"
    equal = judged(test, {A: alone(1.0), B: alone(1.0)}, greater=[A, B])
    assert (equal.verdict, equal.why) == ("cannot be told", "one seed: no test")


def test_a_number_of_many_texts_is_not_compared_alone() -> None:
    """Macro-F1 of one network on 400 texts: another sample of texts would give another number."""
    values = {A: Measured(0.9, None, 400, {}, (0.9,)), B: Measured(0.8, None, 400, {}, (0.8,))}
    assert judged("t", values, greater=[A, B]).why == "one seed: no test"
    assert judged("t", values | {B: alone(0.8)}, greater=[A, B]).verdict == "cannot be told"


def test_seeds_are_not_left_out_where_the_other_side_is_a_number() -> None:
    """.5, .9 and 1.3 are not significantly above .8."""
    found = judged("t", {A: alone(0.9, (0.5, 0.9, 1.3))}, greater=[A, 0.8])
    assert found.verdict == "cannot be told"


@pytest.mark.parametrize(("first", "second"), [(5.0, 1.0), (1.0, 1.001)])
def test_equality_cannot_be_told_of_numbers_alone(first: float, second: float) -> None:
    values = {A: alone(first), B: alone(second)}
    found = judged("interval", values, same=[A, B], within=0.01)
    assert found.verdict == "cannot be told"


def test_equality_over_seeds_is_by_the_interval_of_t() -> None:
    near = {A: alone(0.8, (0.799, 0.8, 0.801)), B: alone(0.801, (0.8, 0.801, 0.802))}
    assert judged("interval", near, same=[A, B], within=0.01).verdict == "holds"
    apart = {A: near[A], B: alone(0.9, (0.899, 0.9, 0.901))}
    assert judged("interval", apart, same=[A, B], within=0.01).verdict == "does not hold"


def test_statements_in_words() -> None:
    texts: Sequence[tuple[dict[str, Any], str]] = [
        ({"greater": [A, 0.5]}, "A | x > 0.5"),
        ({"less": [2, B]}, "2 < B | x"),
        ({"same": [A, B], "within": 0.1}, "A | x = B | x (within 0.1)"),
    ]
    for statement, text in texts:
        assert describe(expand(claim("t", **statement))) == text
