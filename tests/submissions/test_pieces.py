"""Pieces of other tools: their scores go to the tokens that have their letters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example, Target
from faithbench.models.encoding import encode
from faithbench.submissions.pieces import ScoredPieces, align_pieces

TEXT = "Goodly films, not dulling"  # tokens: good ##ly | film ##s | , | not | dull ##ing
OWN = ["good", "##ly", "film", "##s", ",", "not", "dull", "##ing"]


def aligned(
    model: Any,
    pieces: list[str],
    scores: Any,
    example: Example | None = None,
    evidence: Any = "text",
    target: Target = 0,
) -> list[float]:
    encoding = encode(model, example or Example("a", TEXT, 0), evidence)
    given = {"a": ScoredPieces(tuple(pieces), np.array(scores, dtype=np.float64))}
    return list(align_pieces(given, model, [encoding], [target])["a"])


def test_the_models_own_tokens_keep_their_scores(tiny_model: Any) -> None:
    model = tiny_model()
    expected = [float(number) for number in range(1, 9)]
    assert aligned(model, OWN, expected) == expected
    whole = ["[CLS]", *OWN, "[SEP]"]
    assert aligned(model, whole, [-9, *expected, -9]) == expected
    assert aligned(model, [*whole, "[PAD]", "[PAD]"], [-9, *expected, -9, 7, 7]) == expected


def test_an_unknown_word_is_taken_by_its_place(tiny_model: Any) -> None:
    model, example = tiny_model(), Example("a", "good zebra film", 0)
    pieces = ["[CLS]", "good", "[UNK]", "film", "[SEP]"]
    assert aligned(model, pieces, [0, 1, 2, 3, 0], example) == [1, 2, 3]


def test_a_word_is_shared_among_its_tokens_and_its_sum_stays(tiny_model: Any) -> None:
    pieces = ["", "Goodly ", "films", ", ", "not ", "dulling", ""]  # as shap cuts it
    scores = aligned(tiny_model(), pieces, [5, 2, 4, 1, 3, 8, 5])
    assert scores == [1, 1, 2, 2, 1, 3, 4, 4]


def test_smaller_pieces_add_up_whatever_their_marks(tiny_model: Any) -> None:
    pieces = ["\u2581goo", "d", "\u0120LY", "fi", "lms</w>", ",", "not", "dull", "##ing"]
    scores = aligned(tiny_model(), pieces, [1, 2, 4, 8, 16, 0, 0, 0, 32])
    # "lms" lies on film and ##s, so each gets half of its 16.
    assert scores == [3, 4, 16, 8, 0, 0, 0, 32]


def test_accents_and_what_stands_around_the_text_do_not_matter(tiny_model: Any) -> None:
    pieces = ["Review:", "G\u00f3odly", "films", ",", "not", "dulling", "Sentiment:"]
    assert aligned(tiny_model(), pieces, [9, 2, 4, 1, 3, 8, 9]) == [1, 1, 2, 2, 1, 3, 4, 4]


def test_pairs_and_questions_are_read_in_the_models_order(tiny_model: Any, qa_model: Any) -> None:
    pair = Example("a", "good film", 0, "a dull plot")
    pieces = ["<s>", "good", "film", "</s>", "</s>", "a", "dull", "plot", "</s>"]
    numbers = [0, 1, 2, 0, 0, 3, 4, 5, 0]
    assert aligned(tiny_model(), pieces, numbers, pair, "both") == [1, 2, 3, 4, 5]
    assert aligned(tiny_model(), pieces, numbers, pair, "text_b") == [3, 4, 5]
    asked = ["[CLS]", "a", "dull", "plot", "|", "good", "film"]  # the question first
    assert aligned(qa_model, asked, [0, 3, 4, 5, 0, 1, 2], pair, "both", (1, 2)) == [3, 4, 5, 1, 2]
    assert aligned(qa_model, asked, [0, 3, 4, 5, 0, 1, 2], pair, "text", (1, 2)) == [1, 2]


def test_of_classes_the_predicted_one_is_taken(tiny_model: Any) -> None:
    table = [[number, -number] for number in range(8)]
    assert aligned(tiny_model(), OWN, table, target=1) == [0, -1, -2, -3, -4, -5, -6, -7]
    assert aligned(tiny_model(), OWN, [[number] for number in range(8)], target=1)[7] == 7
    message = "example 'a' has scores of 2 classes, and model .* has 3"
    with pytest.raises(FaithbenchError, match=message):
        aligned(tiny_model(classes=3), OWN, table)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        (["goodly", "movies"], "piece 2, 'movies', is not what comes next in its text, 'films"),
        (["goodly", "films"], "the pieces end before the token ',' at character 12"),
        (["goodly films, not dulling", TEXT], "its text is among the pieces more than once"),
        ([], "piece 0, '', is not what comes next in its text, 'goodlyfilms,notdulli"),
    ],
)
def test_what_does_not_line_up_is_named(tiny_model: Any, pieces: list[str], message: str) -> None:
    with pytest.raises(FaithbenchError, match=f"^example 'a': {message}"):
        aligned(tiny_model(), pieces, [1.0] * len(pieces))


def test_scores_that_do_not_fit_their_pieces_are_refused() -> None:
    with pytest.raises(FaithbenchError, match=r"scores of shape \(1,\) for 2 pieces of text"):
        ScoredPieces(("a", "b"), np.ones(1))
    with pytest.raises(FaithbenchError, match=r"a score of 'a b', \.\.\. is not finite"):
        ScoredPieces(("a", "b"), np.array([1.0, np.nan]))
