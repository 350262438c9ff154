"""Badges: an explainer's place in the words and the form that shields.io reads."""

from __future__ import annotations

import json

from faithbench.leaderboard.pages.badges import badge_names, badges
from tests.support.boards import empty_board, real_board, small_board
from tests.support.hostile_board import hostile_board


def test_a_badge_tells_rank_tie_and_control() -> None:
    board = real_board()
    ranking = board.ranking
    assert ranking is not None
    rows = (ranking.rows[0], ranking.rows[1].model_copy(update={"tied": True}), *ranking.rows[2:])
    board = board.model_copy(update={"ranking": ranking.model_copy(update={"rows": rows})})
    told = {name: json.loads(text) for name, text in badges(board).items()}
    assert len(told) == 7
    assert told[f"badges/{rows[0].label}.json"] == {
        "schemaVersion": 1, "label": "faithbench", "message": "rank 1 of 5",
        "color": "brightgreen",
    }  # fmt: skip
    messages = [told[f"badges/{row.label}.json"]["message"] for row in rows[1:]]
    tied = [", tied with the first" * row.tied for row in rows[1:]]
    assert messages == [f"rank {place} of 5{tie}" for place, tie in enumerate(tied, start=2)]
    assert messages[0] == "rank 2 of 5, tied with the first"
    (below,) = ranking.below
    assert told[f"badges/{below.label}.json"]["message"] == "not better than random"
    assert told["badges/random.json"]["message"] == "control"


def test_samples_rank_nobody() -> None:
    board = small_board()
    assert board.ranking is not None
    ranking = board.ranking.model_copy(update={"tables": ("sst2",)})
    for one in (ranking, None):
        texts = badges(board.model_copy(update={"ranking": one})).values()
        assert {json.loads(text)["message"] for text in texts} == {"not ranked"}
    assert badges(empty_board()) == {}


def test_names_of_files_are_safe_and_their_own() -> None:
    assert badge_names(["lrp-mask", "lime:samples=50", "A", "a", "a:b", "a-b"]) == [
        "lrp-mask", "lime-samples=50", "A-559aead0", "a-ca978112", "a-b-6783a31e", "a-b-d44362d6",
    ]  # fmt: skip
    (name,) = badge_names(["x" * 300])
    assert len(name) == 80
    names = list(badges(hostile_board()))
    assert len(set(names)) == 7 and not set("".join(names)) & set("<>\"'$|\\ ")
