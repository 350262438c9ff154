"""A small setup, and submissions that were measured on it, as fixtures of all tests."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.submissions import measure
from faithbench.submissions.check import Checks, check_submission
from faithbench.submissions.entry import read_entry
from faithbench.submissions.measure import Setup, load_setup, score_attributions
from faithbench.submissions.replay import replay
from faithbench.submissions.rules import SEED, digests_of
from faithbench.submissions.scaffold import new_submission
from tests.support.records import forge_record

N = 4
Change = Callable[[dict[str, Any]], object]
Copy = Callable[[], Path]


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


@pytest.fixture(scope="session")
def measured_under_seeds(tmp_path_factory: Any, small_setup: Setup) -> Path:
    """A plugin that seems to draw at random, with its record: look, but do not touch."""
    folder = new_submission(tmp_path_factory.mktemp("seeds"), "my-x", "plugin")
    entry = read_entry(folder)
    scores = {
        encoding.example.id: [
            np.random.default_rng(seed).normal(size=encoding.erasable.sum()) for seed in range(3)
        ]
        for encoding in small_setup.encodings
    }
    digests = digests_of(folder, entry, "sst2")
    replayed = replay(scores, SEED, digests, seconds=1.5)
    measure._measure(folder, entry, small_setup, replayed, lambda *_: None)
    return folder


@pytest.fixture
def copy(scored: Path, tmp_path: Path) -> Copy:
    """Copy that submission, to be changed."""

    def make() -> Path:
        return Path(shutil.copytree(scored, tmp_path / "my-w"))

    return make


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    """Checks that need no model."""
    return Checks(None, tmp_path / "cache")


@pytest.fixture(scope="session")
def checks_with_model(tmp_path_factory: Any) -> Checks:
    """Checks that measure every example again."""
    return Checks(None, tmp_path_factory.mktemp("cache"), N, with_model=True)


def record_of(folder: Path) -> Path:
    """Return the one record of a submission."""
    (path,) = folder.glob("records/*/*/*.json")
    return path


def rows_of(folder: Path) -> Path:
    """Return the rows next to it."""
    (path,) = folder.glob("records/*/*/*.rows.jsonl")
    return path


def change_record(folder: Path, change: Change) -> None:
    """Change the content of the record in place, and its sha256, as a forger would."""
    path = record_of(folder)
    content = json.loads(path.read_text())
    change(content)
    forge_record(path, content)


def change_row(folder: Path, change: Change, index: int = 0) -> None:
    """Change a row, and the record's digest of the rows, as a forger would."""
    head, *rows = rows_of(folder).read_text().splitlines()
    row = json.loads(rows[index])
    change(row)
    rows[index] = json.dumps(row)
    replace_rows(folder, "".join(f"{line}\n" for line in (head, *rows)).encode())


def replace_rows(folder: Path, data: bytes) -> None:
    """Put other rows there, and their digest into the record."""
    rows_of(folder).write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    change_record(folder, lambda record: record["rows"].update(sha256=digest))


def faults_of(folder: Path, checks: Checks) -> str:
    """Check a submission, and return its faults, a line each."""
    lines = [str(fault) for fault in check_submission(folder, checks).faults]
    assert all("\n" not in line and len(line) < 600 for line in lines)
    return "\n".join(lines)
