"""Scores of whole splits are found again, and an explainer that fails is one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.run.backends.serial import Serial
from faithbench.training.explained_split import explained
from faithbench.training.fresh.random_words import RandomWords, random_words
from tests.support.builders import make_task, put
from tests.support.training import silent


def test_a_split_is_explained_once(tiny_model: Any, tmp_path: Path) -> None:
    rows = [{"id": f"e{i}", "text": f"good film w{i}", "label": i % 2} for i in range(5)]
    put(tmp_path, rows)
    data = load_dataset(make_task(), folder=tmp_path)
    attention = find_explainers("attention")
    where = (tmp_path / "scores", 2, Serial())
    first = explained(tiny_model(), data, attention, *where, silent)
    assert list(first) == ["attention"] and first["attention"].record.metrics == {}
    assert [row.id for row in first["attention"].rows] == [f"e{i}" for i in range(5)]
    steps: list[str] = []

    def tell(what: str, *_: int) -> None:
        steps.append(what)

    chosen = (*attention, random_words())
    both = explained(tiny_model(), data, chosen, *where, tell)
    assert not [step for step in steps if "explaining attention" in step]
    assert both["attention"].rows == first["attention"].rows
    random = both["random-words"]
    assert random.record.seeds == (0, 1) and len(random.rows[0].more_scores) == 1
    assert random.rows[0].scores != random.rows[0].more_scores[0]


def test_an_explainer_that_fails_is_one_line(
    tiny_model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without how much of this one split is kept: the command keeps more than that."""
    put(tmp_path, [{"id": "a", "text": "good film", "label": 1}])
    data = load_dataset(make_task(), folder=tmp_path)

    def fail(*_: object) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(RandomWords, "__call__", fail)
    with pytest.raises(FaithbenchError, match="'random-words' failed on example 'a'") as caught:
        explained(tiny_model(), data, [random_words()], tmp_path / "scores", 1, Serial(), silent)
    assert caught.value.kept is None
