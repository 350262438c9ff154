"""Neighbours of a run: found once, kept, and among examples of the same predicted class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.models.files.weights import BASE_NAME
from faithbench.run import neighbours as nearest
from faithbench.run.neighbours import Nearest
from tests.support.builders import make_task, put

TEXTS = ["good film here", "good film there", "dull plot", "good plot here"]


@pytest.fixture
def near(tmp_path: Path) -> Any:
    put(tmp_path, [{"id": f"e{i}", "text": text, "label": 0} for i, text in enumerate(TEXTS)])
    data = load_dataset(make_task(), folder=tmp_path)

    def build(targets: list[Any], encoder: str | None = None) -> Nearest:
        return Nearest(data, tmp_path, targets, encoder, "cpu", lambda *_: None)

    return build


def test_lexical_by_hand(near: Any) -> None:
    """3 shares 2 of 4 words with 0, 1 of 4 with 2, and 1 of 5 with 1."""
    assert near([1, 1, 1, 1])("lexical") == ((1, 3, 2), (0, 3, 2), (3, 0, 1), (0, 2, 1))
    # Another class is no neighbour, however near.
    assert near([1, 0, 1, 1])("lexical") == ((3, 2), (), (3, 0), (0, 2))
    # Answers to questions have no classes.
    assert near([(1, 2), (3, 3), (0, 0), (1, 1)])("lexical")[0] == (1, 3, 2)


def test_found_once_and_kept(near: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def embed(texts: list[str], **_: Any) -> np.ndarray:
        calls.append(texts)
        return np.eye(4, dtype=np.float32)

    monkeypatch.setattr(nearest, "embed", embed)
    monkeypatch.setattr(nearest, "encoder_sha256", lambda name: f"sum of {name}")
    first = near([1, 1, 1, 1])
    assert first.encoder_used is None
    assert first("semantic") == first("semantic") == near([1, 1, 1, 1])("semantic")
    assert calls == [TEXTS] and first.encoder_used == BASE_NAME
    near([1, 1, 1, 1], "other/encoder")("semantic")
    near([0, 1, 1, 1])("semantic")
    assert len(calls) == 3, "another encoder, and other classes, are other neighbours"


def test_a_folder_s_name_is_not_told(near: Any, tmp_path: Path) -> None:
    folder = tmp_path / "private" / "encoder"
    folder.mkdir(parents=True)
    found = near([1, 1, 1, 1], str(folder))
    found._known["semantic"] = ()
    assert found.encoder_used == "encoder"


def test_an_unknown_likeness_is_refused(near: Any) -> None:
    with pytest.raises(FaithbenchError, match="no likeness of neighbours named 'semantics'; did"):
        near([1, 1, 1, 1])("semantics")
