"""Each metric by hand: its plan, its value, and where it has none."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Case
from faithbench.metrics.registry import METRICS
from tests.support.cases import case_of, said

AOPC, LODDS = METRICS["aopc"], METRICS["lodds"]

# Ten tokens between two special ones, whose probabilities are given


SCORES = np.array([0.5, 0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6, 0.0])
ORDER = [3, 5, 7, 9, 1, 8, 6, 4, 2, 10]
PROBABILITIES = [0.7, 0.6, 0.6, 0.5, 0.4, 0.4, 0.3, 0.2, 0.1]
CASE = case_of(SCORES, 0.8)


def erased(name: str, case: Case = CASE) -> list[list[int]]:
    return [np.flatnonzero(~keep).tolist() for keep in METRICS[name].rows(case)]


def value(name: str, probabilities: list[float], case: Case = CASE) -> float | None:
    return METRICS[name].value(case, said(probabilities))


def test_plan_erases_one_more_token_each_time() -> None:
    plan = AOPC.rows(CASE)
    assert plan.shape == (9, 12)
    assert erased("aopc") == [sorted(ORDER[:count]) for count in range(1, 10)]
    assert plan[:, [0, 10, 11]].all()
    assert np.array_equal(LODDS.rows(CASE), plan)


def test_aopc_by_hand() -> None:
    """The falls from 0.8 are 0.1 0.2 0.2 0.3 0.4 0.4 0.5 0.6 0.7: 3.4 in all."""
    assert value("aopc", PROBABILITIES) == pytest.approx(3.4 / 9)


def test_lodds_by_hand() -> None:
    """ln(p / 0.8) averages to ln(product of all p / 0.8^9) / 9."""
    product = 0.7 * 0.6 * 0.6 * 0.5 * 0.4 * 0.4 * 0.3 * 0.2 * 0.1
    assert value("lodds", PROBABILITIES) == pytest.approx(math.log(product / 0.8**9) / 9)
    assert value("lodds", PROBABILITIES) == pytest.approx(-0.77908, abs=1e-5)


def test_a_rise_counts_against() -> None:
    """For the other class the same answers rise from 0.2, by as much."""
    case = case_of(SCORES, 0.2)
    rises = [1 - p for p in PROBABILITIES]
    assert value("aopc", rises, case) == pytest.approx(-3.4 / 9)
    assert value("comprehensiveness", rises[:5], case) == pytest.approx(-1.2 / 5)
    expected = sum(math.log(p / 0.2) for p in rises) / 9
    assert value("lodds", rises, case) == pytest.approx(expected)


def test_probabilities_too_small_for_a_float_have_a_log_ratio() -> None:
    """ln f is kept as it is: e^-1000 is 0, but 1000 below e^0."""
    case = replace(CASE, log_probability=0.0)
    answers = replace(said([0.5] * 9), log_probability=np.full(9, -1000.0))
    assert LODDS.value(case, answers) == pytest.approx(-1000.0)
    assert AOPC.value(case, answers) == 1.0


@pytest.mark.parametrize(
    ("n", "counts"),
    [
        (1, [1] * 9),
        (2, [1, 1, 1, 1, 1, 1, 1, 2, 2]),
        (3, [1, 1, 1, 1, 2, 2, 2, 2, 3]),
        (5, [1, 1, 2, 2, 3, 3, 4, 4, 5]),
        (15, [2, 3, 5, 6, 8, 9, 11, 12, 14]),
    ],
)
def test_short_texts(n: int, counts: list[int]) -> None:
    plan = AOPC.rows(case_of(np.arange(float(n))))
    assert (~plan).sum(1).tolist() == counts


# ERASER


def test_comprehensiveness_by_hand() -> None:
    """Of ten tokens 1, 5 and 10% are one; the falls are 0.1 0.1 0.1 0.3 0.6."""
    assert erased("comprehensiveness") == [[3], [3], [3], [3, 5], [1, 3, 5, 7, 9]]
    assert value("comprehensiveness", [0.7, 0.7, 0.7, 0.5, 0.2]) == pytest.approx(1.2 / 5)


def test_sufficiency_by_hand() -> None:
    """What is left is the top 1, 1, 1, 2 and 5 of ten; half of 200 tokens are 100."""
    everything = set(range(1, 11))
    kept = [sorted(everything - set(row)) for row in erased("sufficiency")]
    assert kept == [[3], [3], [3], [3, 5], [1, 3, 5, 7, 9]]
    assert value("sufficiency", [0.3, 0.3, 0.3, 0.7, 0.9]) == pytest.approx(1.5 / 5)
    sizes = [len(row) for row in erased("sufficiency", case_of(np.zeros(200)))]
    assert sizes == [198, 190, 180, 160, 100]


# Flips


def test_flip_fraction_by_hand() -> None:
    """Steps of 5% of ten tokens: 1 1 2 2 3 3 4 ... 10 10 erased; the fifth step is three."""
    counts = [len(row) for row in erased("flip_fraction")]
    assert counts == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10]
    assert erased("flip_fraction")[4] == [3, 5, 7]
    flip = METRICS["flip_fraction"]
    kept = [True] * 4 + [False, True]
    assert flip.value(CASE, said([0.5] * 6, kept)) == 3 / 10
    assert flip.value(CASE, said([0.5] * 20, [True] * 20)) == 1.0
    assert flip.value(CASE, said([0.5] * 2, [False, False])) == 1 / 10
    assert flip.enough is not None
    assert flip.enough(said([0.5] * 6, kept))
    assert not flip.enough(said([0.5] * 4, kept[:4]))


def test_a_flip_is_of_the_prediction_not_of_its_probability() -> None:
    """Of three classes one may win with less than a half."""
    flip = METRICS["flip_fraction"]
    assert flip.value(CASE, said([0.4] * 20, [True] * 20)) == 1.0


# Log-odds


def test_delta_log_odds_by_hand() -> None:
    """Without the top three, 0.8 falls to 0.2: from ln 4 to -ln 4."""
    assert erased("delta_log_odds") == [[3, 5, 7]]
    assert value("delta_log_odds", [0.2]) == pytest.approx(2 * math.log(4))


def test_log_odds_are_clipped() -> None:
    """1 - 1e-6 has odds of 999 999; both ends make the widest difference there is."""
    sure = case_of(SCORES, 1.0)
    widest = 2 * math.log(999_999)
    assert value("delta_log_odds", [1e-300], sure) == pytest.approx(widest)
    assert value("delta_log_odds", [1e-6], sure) == pytest.approx(widest)
    assert value("delta_log_odds", [1.0], sure) == 0.0
    assert value("delta_log_odds", [1.0], case_of(SCORES, 1e-9)) == pytest.approx(-widest)


def test_the_most_negative_by_hand() -> None:
    """30% of ten are three: the three lowest of four negative scores, the lowest two of two."""
    four = case_of([0.5, -0.1, -0.9, 0.2, -0.8, 0.3, -0.7, 0.0, 0.6, 0.0], 0.8)
    assert erased("delta_log_odds_neg", four) == [[3, 5, 7]]
    two = case_of([0.5, -0.1, 0.9, 0.2, -0.8, 0.3, 0.7, 0.0, 0.6, 0.0], 0.8)
    assert erased("delta_log_odds_neg", two) == [[2, 5]]
    assert value("delta_log_odds_neg", [0.9], two) == pytest.approx(math.log(4 / 9))
    ties = case_of([-1.0] * 10, 0.8)
    assert erased("delta_log_odds_neg", ties) == [[1, 2, 3]]


@pytest.mark.parametrize("scores", [[0.0, 0.0, 0.0], [1.0, 0.0, 2.0], [-0.0, 1.0, 1.0]])
def test_nothing_negative_has_no_value(scores: list[float]) -> None:
    case = case_of(scores)
    assert erased("delta_log_odds_neg", case) == []
    assert value("delta_log_odds_neg", [], case) is None


# Agreement, leave-one-out, entropy


def test_agreement_by_hand() -> None:
    assert erased("agreement") == [[1, 2, 4, 6, 8, 9, 10]]
    agreement = METRICS["agreement"]
    assert agreement.value(CASE, said([0.4], [True])) == 1.0
    assert agreement.value(CASE, said([0.6], [False])) == 0.0


def test_tau_loo_by_hand() -> None:
    """Three pairs of tokens; the drops 0.3 0.1 0.2 order two of them as the scores do."""
    case = case_of([3.0, 2.0, 1.0], 0.8)
    assert erased("tau_loo", case) == [[1], [2], [3]]
    assert value("tau_loo", [0.5, 0.7, 0.6], case) == pytest.approx(1 / 3)
    assert value("tau_loo", [0.5, 0.6, 0.7], case) == pytest.approx(1.0)
    # One tie in the scores: (2 - 0) / sqrt(2 * 3).
    tied = case_of([3.0, 1.0, 1.0], 0.8)
    assert value("tau_loo", [0.5, 0.7, 0.6], tied) == pytest.approx(2 / math.sqrt(6))


def test_a_constant_has_no_order_to_agree_with() -> None:
    assert value("tau_loo", [0.5, 0.6, 0.7], case_of([1.0, 1.0, 1.0])) is None
    assert value("tau_loo", [0.5, 0.5, 0.5], case_of([1.0, 2.0, 3.0])) is None
    assert value("tau_loo", [0.5], case_of([1.0])) is None


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([1.0, 1.0, 1.0, 1.0], 1.0),
        ([1.0, -1.0, 1.0, -1.0], 1.0),
        ([5.0, 0.0, 0.0, 0.0], 0.0),
        ([2.0, -2.0, 0.0, 0.0], 0.5),
        # Shares 1/2, 1/4, 1/8, 1/8 have 7/4 bits of 2.
        ([4.0, 2.0, -1.0, 1.0], 7 / 8),
        ([0.0, 0.0, 0.0, 0.0], None),
        ([3.0], None),
    ],
)
def test_fi_entropy_by_hand(scores: list[float], expected: float | None) -> None:
    found = value("fi_entropy", [], case_of(scores))
    assert found == (None if expected is None else pytest.approx(expected))
    assert erased("fi_entropy", case_of(scores)) == []


# Normalised AOPC


def test_naopc_by_hand() -> None:
    """An AOPC of 3.4 / 9 between 0 and 1, and between 0.2 and 0.6."""
    aopc = 3.4 / 9
    for low, high in ((0.0, 1.0), (0.2, 0.6)):
        case = case_of(SCORES, 0.8, bounds=(low, high))
        expected = (aopc - low) / (high - low)
        assert value("naopc", PROBABILITIES, case) == pytest.approx(expected)
    assert value("naopc", PROBABILITIES) is None
    assert value("naopc", PROBABILITIES, case_of(SCORES, 0.8, bounds=(0.3, 0.3))) is None
    assert erased("naopc") == erased("aopc")


# Question answering


def gold(size: int, *places: int) -> np.ndarray:
    return np.isin(np.arange(size), places)


def test_answer_recall_by_hand() -> None:
    """Of 30 tokens ranked in order, tokens 1 ... 20 are the best; special ones do not count."""
    recall = "answer_recall_at_20"
    scores = np.arange(30.0, 0.0, -1)
    assert erased(recall, case_of(scores)) == []
    for places, expected in (((20, 21), 0.5), ((21, 22), 0.0), ((1, 5, 9), 1.0)):
        case = case_of(scores, gold=(gold(32, *places),))
        assert value(recall, [], case) == expected
    # The best of several accepted answers; without any, no value.
    case = case_of(scores, gold=(gold(32, 21), gold(32, 19, 20, 21), gold(32, 20, 21)))
    assert value(recall, [], case) == pytest.approx(2 / 3)
    assert value(recall, [], case_of(scores)) is None


def test_the_answer_that_may_not_be_erased_is_ranked() -> None:
    """The predicted answer is no evidence to erase, but an explanation may point at it."""
    scores = np.arange(30.0, 0.0, -1)
    case = case_of(scores, gold=(gold(32, 1, 2),))
    held = replace(case, positions=case.positions[2:], scores=case.scores[2:])
    assert value("answer_recall_at_20", [], held) == 1.0
    nothing = replace(case, positions=case.positions[:0], scores=case.scores[:0])
    assert value("answer_recall_at_20", [], nothing) == 1.0
    assert value("aopc", [], nothing) is None


def test_an_impossible_value_is_a_fault() -> None:
    with pytest.raises(FaithbenchError, match=r"agreement is 7.0, outside its range \[0, 1\]"):
        replace(METRICS["agreement"], score=lambda *_: 7.0).value(CASE, said([0.5]))
