"""Excerpts of training texts: the right sentences, and none that says nothing new."""

from __future__ import annotations

import pytest

from faithbench.training.excerpts import excerpt, with_excerpts
from faithbench.types import Example

TEXT = "One came. Two went. Three was better. Four stayed. Five left."
THREE = Example("x", TEXT, 2, "a || b", rationale=((20, 36),))


@pytest.mark.parametrize(
    ("reach", "expected"),
    [
        (0, "Three was better."),
        (1, "Two went. Three was better. Four stayed."),
        (2, TEXT),
        (9, TEXT),
    ],
)
def test_sentences_around_the_rationale(reach: int, expected: str) -> None:
    assert excerpt(THREE, reach) == expected


def test_two_rationales_that_meet_are_one_excerpt() -> None:
    both = Example("x", TEXT, 2, rationale=((0, 3), (38, 42)))
    assert excerpt(both, 0) == "One came. Four stayed."
    assert excerpt(both, 1) == TEXT


def test_lessons_follow_their_document() -> None:
    found = list(with_excerpts([THREE, Example("y", "No rationale.", 0)], (0, 1, 2, 9)))
    assert [e.id for e in found] == ["x", "x#0", "x#1", "y"]
    assert [e.label for e in found] == [2, 2, 2, 0]
    assert (found[1].text, found[1].text_b, found[1].rationale) == (
        "Three was better.",
        "a || b",
        None,
    )
    assert list(with_excerpts([THREE], ())) == [THREE]


def test_excerpts_alone_leave_documents_out() -> None:
    plain = Example("y", "No rationale.", 0)
    whole = Example("z", "All of it.", 1, rationale=((0, 9),))
    found = list(with_excerpts([THREE, plain, whole], (0, 2), alone=True))
    assert [(e.id, e.text) for e in found] == [
        ("x#0", "Three was better."),
        ("x#2", TEXT),
        ("y", "No rationale."),
        ("z#0", "All of it."),
    ]
