"""Words from the pieces of three kinds of tokenizers."""

from __future__ import annotations

import pytest

from faithbench.core.pieces import join_pieces


@pytest.mark.parametrize(
    "pieces",
    [
        ("un", "##watch", "##able", "film"),
        ("un", "watch", "able", "\u0120film"),
        ("\u2581un", "watch", "able", "\u2581film"),
    ],
)
def test_pieces_of_a_word_are_joined_and_their_scores_added(pieces: tuple[str, ...]) -> None:
    assert join_pieces(pieces, (0.5, 0.25, -1.0, 2.0)) == [("unwatchable", -0.25), ("film", 2.0)]


def test_without_marks_each_piece_is_a_word() -> None:
    assert join_pieces(("a", "b"), (1.0, 2.0)) == [("a", 1.0), ("b", 2.0)]


def test_a_piece_that_continues_nothing_is_a_word() -> None:
    assert join_pieces(("##ing", "a"), (1.0, 2.0)) == [("ing", 1.0), ("a", 2.0)]
