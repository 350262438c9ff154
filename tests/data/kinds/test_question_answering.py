"""Answers by hand: which span is the best, what it says, and what SQuAD's scores give it."""

from __future__ import annotations

import numpy as np
import pytest

from faithbench.core.types import Encoding, Example, Floats, Span
from faithbench.data.kinds.question_answering import (
    LONGEST,
    QUESTION_ANSWERING,
    best_span,
    exact_match,
    normalise,
    overlap_f1,
    span_text,
)

#                 0      1      2    3    4     5      6
TOKENS = ("[CLS]", "who", "[SEP]", "Ann", "met", "Bob", "[SEP]")
TEXT = "Ann met Bob"
SPANS: tuple[Span, ...] = ((0, 0), (0, 3), (0, 0), (0, 3), (4, 7), (8, 11), (0, 0))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("The  Eiffel Tower!", "eiffel tower"),
        ("a U.S. president", "us president"),
        ("an-other", "another"),
        ("Theatre", "theatre"),
        ("the", ""),
        (" twenty\tone ", "twenty one"),
    ],
)
def test_normalise(answer: str, expected: str) -> None:
    assert normalise(answer) == expected


@pytest.mark.parametrize(
    ("found", "accepted", "exact", "f1"),
    [
        ("the Denver Broncos", ["Denver Broncos"], 1, 1),
        ("Broncos", ["Denver Broncos", "Carolina"], 0, 2 / 3),
        # Three words said, four accepted, two shared: 2 * 2 / 7.
        ("big red dog", ["small red dog house"], 0, 4 / 7),
        # A word said twice counts as often as it is accepted.
        ("very very good", ["very good"], 0, 4 / 5),
        ("Paris", ["London", "in Paris", "paris."], 1, 1),
        ("Paris", ["London"], 0, 0),
        ("", [], 1, 1),
        ("Paris", [], 0, 0),
        ("", ["Paris"], 0, 0),
        ("the", [], 1, 1),
    ],
)
def test_scores(found: str, accepted: list[str], exact: float, f1: float) -> None:
    assert exact_match(found, accepted) == exact
    assert overlap_f1(found, accepted) == pytest.approx(f1)


def test_the_best_span_adds_start_and_end() -> None:
    """Start 3 with end 5 has -1 - 1; the best end alone, 4, would come before the start 5."""
    starts, ends = logs({3: -1.0, 4: -5.0, 5: -0.5}), logs({3: -6.0, 4: -0.1, 5: -2.0})
    assert best_span(question(), starts, ends) == (3, 4)
    starts, ends = logs({3: -1.0, 4: -5.0, 5: -0.5}), logs({3: -6.0, 4: -1.0, 5: -1.0})
    assert best_span(question(), starts, ends) == (5, 5)
    # A tie goes to the earlier start, then to the shorter answer.
    level = logs({3: -1.0, 4: -1.0, 5: -1.0})
    assert best_span(question(), level, level) == (3, 3)


def test_the_question_and_special_tokens_are_no_answer() -> None:
    starts = logs({0: 0.0, 1: 0.0, 3: -9.0, 4: -8.0, 6: 0.0})
    ends = logs({0: 0.0, 1: 0.0, 5: -9.0, 6: 0.0})
    assert best_span(question(), starts, ends) == (4, 5)


def test_no_answer_must_beat_the_best_span() -> None:
    starts, ends = logs({0: -1.0, 3: -1.0}), logs({0: -1.0, 3: -1.0})
    assert best_span(question(), starts, ends, may_be_none=True) == (3, 3)
    starts[0] = -0.9
    assert best_span(question(), starts, ends, may_be_none=True) is None
    assert best_span(question(), starts, ends) == (3, 3)
    assert span_text(question(), None) == ""


def test_an_answer_has_at_most_thirty_tokens() -> None:
    size = LONGEST + 5
    text = "x" * size
    spans = tuple((i, i + 1) for i in range(size))
    ones = np.ones(size, dtype=bool)
    ids = np.zeros(size, dtype=np.int64)
    encoding = Encoding(Example("e", text, 0), ids, ids, ones, ids, spans, (), 0)
    starts, ends = np.full(size, -9.0), np.full(size, -9.0)
    starts[0], ends[LONGEST - 1], ends[LONGEST] = 0.0, -1.0, 0.0
    found = best_span(encoding, starts, ends)
    assert found == (0, LONGEST - 1)
    assert span_text(encoding, found) == "x" * 30


def test_the_text_of_a_span() -> None:
    assert span_text(question(), (3, 4)) == "Ann met"
    assert span_text(question(), (5, 5)) == "Bob"


def question() -> Encoding:
    ids = np.arange(7, dtype=np.int64)
    erasable = np.array([0, 0, 0, 1, 1, 1, 0], dtype=bool)
    return Encoding(Example("e", TEXT, 0, "who"), ids, ids, erasable, ids, SPANS, (), 0)


def logs(given: dict[int, float]) -> Floats:
    values = np.full(7, -20.0)
    for place, value in given.items():
        values[place] = value
    return values


def test_names_of_answers() -> None:
    assert QUESTION_ANSWERING.name_target(("answer",), (3, 4)) == ""
    assert QUESTION_ANSWERING.name_target(("answer", "none"), (0, 0)) == "no answer"
    encoding = question()
    assert QUESTION_ANSWERING.answer(encoding, (3, 4)) == "Ann met"
    assert QUESTION_ANSWERING.answer(encoding, (0, 0)) == ""
    assert QUESTION_ANSWERING.name_truth(("answer",), 0) == ""
    assert QUESTION_ANSWERING.neighbour_class((3, 4)) == 0
