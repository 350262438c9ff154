"""A study of a task of a few dozen made texts, small enough to be trained in a test."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from faithbench.studies.sparse_attention import plan
from faithbench.studies.sparse_attention.plan import StudyRequest, TaskPlan
from tests.support.builders import MINI

SMALL = TaskPlan(
    epochs=1, max_tokens=12, texts=5, positions=3, projections=("softmax", "sparsemax")
)

TASK = (
    MINI
    + """\
[models]
[folder]
name = "mini"
splits = { train = "train", dev = "dev", test = "test" }
"""
)

WORDS = ("film", "plot", "very", "and", "the", "is", "a", "not")


@pytest.fixture
def study_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., StudyRequest]:
    """Make requests for a study of BiLSTMs on 40 texts, in which good and bad tell the class."""
    write_task(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(plan, "OTHERS", SMALL)

    def make(**changes: object) -> StudyRequest:
        fields: dict[str, object] = {
            "tasks": ("mini.toml",),
            "out": tmp_path / "out",
            "seeds": 1,
            "archs": ("bilstm",),
            "vectors": "random",
            "folder": tmp_path,
            "device": "cpu",
        }
        return StudyRequest(**fields | changes)  # type: ignore[arg-type]

    return make


def write_task(folder: Path) -> None:
    """Write a task and its three splits, of texts of three to eight words."""
    (folder / "mini.toml").write_text(TASK)
    (folder / "mini").mkdir()
    for split, size in (("train", 24), ("dev", 6), ("test", 10)):
        lines = []
        for n in range(size):
            text = " ".join([*WORDS[n % 5 : n % 5 + 2 + n % 3], ("bad", "good")[n % 2], f"w{n}"])
            lines.append(json.dumps({"id": f"{split}{n}", "text": text, "label": n % 2}) + "\n")
        (folder / "mini" / f"{split}.jsonl").write_text("".join(lines))
