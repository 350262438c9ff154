"""Scores of whole splits: found again, and random ones that favour no word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.run.backends.serial import Serial
from faithbench.testing.conformance import check_explainer
from faithbench.training.fresh.scores import RandomWords, explained, random_words
from tests.support.builders import make_task, put
from tests.support.training import silent


def test_random_words_keep_the_rules_of_explainers() -> None:
    check_explainer(RandomWords(), architectures=("bert",))


def test_a_word_has_one_number_however_many_pieces(tiny_model: Any, batch_of: Any) -> None:
    """`goodly` is two pieces and is first as often as the other words: 200 draws of 3."""
    model = tiny_model()
    batch = batch_of(model, ["goodly film plot"] * 200)
    scores = RandomWords()(None, batch).numpy()
    assert (scores[:, [0, 2, 5]] == 0).all(), "[CLS], ##ly and [SEP]"
    words = scores[:, [1, 3, 4]]
    assert (words > 0).all() and (words < 1).all()
    firsts = np.bincount(words.argmax(axis=1))
    assert firsts.min() > 45, firsts


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
