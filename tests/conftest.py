"""Small models shared by the whole session: nothing here needs a network or a GPU."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Tiny models gain nothing from threads, and lose much on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch

from faithbench.cli import app as cli
from tests.support.commands import Call, Said

pytest_plugins = ["tests.support.submissions"]

GOLDEN = Path(__file__).parent / "reference" / "golden"


SLOW = frozenset((Path(__file__).parent / "slow.txt").read_text().split())


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that `make slow` found to be slow: `make check` leaves them out."""
    for item in items:
        if item.nodeid.split("[")[0] in SLOW:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def golden() -> dict[str, np.ndarray]:
    """Every copied reference array, by `<input>_nl<classes>/<key>`."""
    found = {}
    for name in ("bert_cls.npz", "white_box.npz"):
        with np.load(GOLDEN / name) as file:
            found |= {key: file[key] for key in file.files}
    return found


@pytest.fixture(scope="session")
def golden_masks() -> dict[str, list[list[int]]]:
    masks: dict[str, list[list[int]]] = json.loads((GOLDEN / "head_masks.json").read_text())
    return masks


@pytest.fixture(scope="session")
def tokenizer():
    """A tokenizer with word pieces: `good` is whole, `goodly` is good + ##ly."""
    from faithbench.testing.tiny import tiny_tokenizer

    return tiny_tokenizer()


@pytest.fixture(scope="session")
def tiny_model():
    """Build, once per kind, a random classifier whose biases and norms are not trivial."""
    from faithbench.testing import tiny

    @cache
    def build(architecture: str = "bert", classes: int = 2, dtype: torch.dtype = torch.float64):
        return tiny.tiny_model(architecture, classes, dtype)

    return build


@pytest.fixture(scope="session")
def qa_model():
    """Build, once, a random question answerer."""
    from faithbench.testing import tiny

    return tiny.tiny_model(qa=True)


@pytest.fixture(scope="session")
def batch_of():
    """Collate texts for a model: `batch_of(model, ["good film", ...], targets=[...])`."""
    from faithbench.core.types import Example
    from faithbench.models.encoding import collate, encode

    def build(model, texts: list[str], targets: list[int] | None = None, evidence: str = "text"):
        encodings = []
        for i, text in enumerate(texts):
            first, _, second = text.partition(" || ")
            encodings.append(encode(model, Example(f"e{i}", first, 0, second or None), evidence))
        return collate(model, encodings, targets or [0] * len(texts), list(range(len(texts))))

    return build


@pytest.fixture
def call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Call:
    """Run the command line in this process, as the installed script would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    # Set, then removed: so whatever a command sets is undone after the test.
    for name in ("FAITHBENCH_DEBUG", "FAITHBENCH_DATA", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["faithbench", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run
