"""Examples for looking at: scores side by side, of examples that all keep."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import msgspec

from faithbench.leaderboard.board import ShownExample
from faithbench.leaderboard.build import make_board
from faithbench.records.rows import to_header, to_line
from faithbench.records.rows_file import read_rows
from tests.support.builders import KEY
from tests.support.stores import store

NONE = Path("no-such-folder")


def put(folder: Path, stem: str, n: int = 3, **changes: dict[str, Any]) -> None:
    """Store a record, with fields of some rows changed: `e1={"scores": ...}`."""
    path = store(folder, stem, {"aopc": [0.1] * n})
    rows_file = path.with_name(f"{stem}.rows.jsonl")
    rows = [msgspec.structs.replace(r, **changes.get(r.id, {})) for r in read_rows(rows_file)]
    data = to_header(KEY) + b"".join(map(to_line, rows))
    rows_file.write_bytes(data)
    record = json.loads(path.read_text())
    record["rows"]["sha256"] = hashlib.sha256(data).hexdigest()
    path.write_text(json.dumps(record))


def shown(folder: Path, submissions: Path = NONE) -> tuple[ShownExample, ...]:
    (table,) = make_board(folder, submissions).tables
    return table.shown


def test_scores_are_scaled_and_the_rationale_is_marked(tmp_path: Path) -> None:
    put(tmp_path, "lime-11111111", n=1, e0={"scores": (0.5, -2.0), "tokens": ("a\x1b", "b")})
    put(tmp_path, "human-22222222", n=1, e0={"scores": (0.0, 1.0), "tokens": ("a\x1b", "b")})
    (one,) = shown(tmp_path)
    assert one.tokens == ("a ", "b") and one.id == "e0"
    assert one.scores == {"lime": (0.25, -1.0), "human": (0.0, 1.0)}
    assert one.rationale == (False, True)
    assert (one.said, one.truth, one.right) == ("positive", "négatif", False)
    assert one.probability == 0.333333


def test_examples_without_scores_of_all_are_left_out(tmp_path: Path) -> None:
    none = {"tokens": (), "scores": ()}
    records, entries = tmp_path / "records", tmp_path / "submissions"
    put(records, "lime-11111111", e1=none)
    put(records, "random-22222222", e2={"tokens": ("other", "e2")})
    assert [one.id for one in shown(records)] == ["e0"]
    # Who submits has no say, and is shown where the tokens are the same.
    put(entries / "mine" / "records", "deep-33333333", e0=none)
    put(entries / "yours" / "records", "deep-33333333")
    (one,) = shown(records, entries)
    assert sorted(one.scores) == ["lime", "random", "yours"]


def test_all_zero_scores_and_answers(tmp_path: Path) -> None:
    put(tmp_path, "lime-11111111", n=1, e0={"scores": (0.0, 0.0), "target": (3, 4)})
    (one,) = shown(tmp_path)
    assert one.scores == {"lime": (0.0, 0.0)} and one.said == "answer" and one.rationale == ()


def test_eight_at_most_and_fewer_of_long_texts(tmp_path: Path) -> None:
    put(tmp_path / "a", "lime-11111111", n=20)
    found = shown(tmp_path / "a")
    assert len(found) == 8 and found[0].id == "e0" and found[-1].id == "e9"
    long = {f"e{i}": {"tokens": ("x",) * 500, "scores": (1.0,) * 500} for i in range(9)}
    put(tmp_path / "b", "lime-11111111", n=9, **long)
    assert len(shown(tmp_path / "b")) == 3
