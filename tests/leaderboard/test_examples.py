"""Examples to look at: scores side by side, of examples that all explainers keep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from faithbench.leaderboard.board import ShownExample
from faithbench.leaderboard.build import make_board
from tests.support.records import forge_record
from tests.support.stores import accepted, change_rows, store


def put(folder: Path, stem: str, n: int = 3, **changes: dict[str, Any]) -> None:
    """Store a record, with fields of some rows changed: `e1={"scores": ...}`."""
    change_rows(store(folder, stem, {"aopc": [0.1] * n}), changes)


def shown(folder: Path, submissions: Path | None = None) -> tuple[ShownExample, ...]:
    (table,) = make_board(folder, accepted(submissions) if submissions else ()).tables
    return table.shown


def test_scores_are_scaled_and_the_rationale_is_marked(tmp_path: Path) -> None:
    put(tmp_path, "lime-11111111", n=1, e0={"scores": (0.5, -2.0), "tokens": ("a\x1b", "b")})
    put(tmp_path, "human-22222222", n=1, e0={"scores": (0.0, 1.0), "tokens": ("a\x1b", "b")})
    (example,) = shown(tmp_path)
    assert example.tokens == ("a ", "b") and example.id == "e0"
    assert example.scores == {"lime": (0.25, -1.0), "human": (0.0, 1.0)}
    assert example.rationale == (False, True)
    assert (example.said, example.truth, example.right) == ("positive", "négatif", False)
    assert example.probability == 0.333333


def test_examples_without_scores_of_all_are_left_out(tmp_path: Path) -> None:
    none = {"tokens": (), "scores": ()}
    records, entries = tmp_path / "records", tmp_path / "submissions"
    put(records, "lime-11111111", e1=none)
    put(records, "random-22222222", e2={"tokens": ("other", "e2")})
    assert [example.id for example in shown(records)] == ["e0"]
    # Submissions have no say, and are shown where the tokens are the same.
    put(entries / "mine" / "records", "deep-33333333", e0=none)
    put(entries / "yours" / "records", "deep-33333333")
    (example,) = shown(records, entries)
    assert sorted(example.scores) == ["lime", "random", "yours"]


def test_all_zero_scores_and_a_target_without_a_name(tmp_path: Path) -> None:
    put(tmp_path, "lime-11111111", n=1, e0={"scores": (0.0, 0.0), "target": (3, 4)})
    (example,) = shown(tmp_path)
    assert (
        example.scores == {"lime": (0.0, 0.0)}
        and example.said == "(3, 4)"
        and example.rationale == ()
    )


def test_the_words_of_an_answer_are_those_of_any_row_that_has_them(tmp_path: Path) -> None:
    records, entries = tmp_path / "records", tmp_path / "submissions"
    asked: dict[str, Any] = {"target": (3, 4)}
    put(records, "lime-11111111", n=2, e0=asked, e1=asked)
    put(records, "random-22222222", n=2, e0=asked | {"answer": "Ann\x1b met"}, e1=asked)
    put(entries / "mine" / "records", "deep-33333333", n=2, e0=asked | {"answer": "a lie"},
        e1=asked | {"answer": "a lie"})  # fmt: skip
    for folder in (records, entries / "mine" / "records"):
        for path in folder.glob("*.json"):
            text = path.read_text().replace('"kind": "classification"', '"kind": "qa"')
            forge_record(path, json.loads(text))
    assert [example.said for example in shown(records, entries)] == ["Ann  met", ""]


def test_eight_at_most_and_fewer_of_long_texts(tmp_path: Path) -> None:
    put(tmp_path / "a", "lime-11111111", n=20)
    examples = shown(tmp_path / "a")
    assert len(examples) == 8 and examples[0].id == "e0" and examples[-1].id == "e9"
    long = {f"e{i}": {"tokens": ("x",) * 500, "scores": (1.0,) * 500} for i in range(9)}
    put(tmp_path / "b", "lime-11111111", n=9, **long)
    assert len(shown(tmp_path / "b")) == 3
