"""A small setup, and submissions that were measured on it, as fixtures of all tests."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.submissions.entry import read_entry
from faithbench.submissions.measure import Setup, load_setup, score_attributions
from faithbench.submissions.scaffold import new_submission

N = 4


@pytest.fixture(scope="session")
def small_setup() -> Setup:
    """Four bundled sentences and the bundled model."""
    return load_setup(load_dataset(load_task("sst2"), source="bundled", limit=N))


@pytest.fixture(scope="session")
def scored(tmp_path_factory: Any, small_setup: Setup) -> Path:
    """A submission of attributions with its record: look, but do not touch."""
    folder = new_submission(tmp_path_factory.mktemp("scored"), "my-w", "attributions")
    path = folder / "scores" / "sst2.jsonl"
    ids = {example.id for example in small_setup.data.examples}
    kept = [line for line in path.read_text().splitlines() if json.loads(line)["id"] in ids]
    path.write_text("".join(f"{line}\n" for line in kept))
    score_attributions(folder, read_entry(folder), small_setup, lambda *_: None)
    return folder


@pytest.fixture
def copy(scored: Path, tmp_path: Path) -> Callable[[], Path]:
    """Copy that submission, to be changed."""

    def make() -> Path:
        return Path(shutil.copytree(scored, tmp_path / "my-w"))

    return make
