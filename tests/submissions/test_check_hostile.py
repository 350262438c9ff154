"""Hundreds of hostile submissions: each is refused in words, and changes no file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.submissions.check import Checks, check_submission
from faithbench.submissions.layout import check_name
from tests.support.hostile_submissions import NAMES, Hostile, hostile_files, hostile_records
from tests.support.submissions import N

# These follow from the model and its tokens: they are checked where it is loaded.
BY_MODEL = (
    "record model.revision", "record model.truncated", "record model.name",
    "record model.weights_sha256", "record task.spans", "record task.rationale_share",
    "record protocol.erasure_token", "record protocol.encoder",
    "row tokens", "row scores", "row target", "row probability", "row curve", "row rows_asked",
    "row distinct_rows", "row right",
)  # fmt: skip


def refused(honest: Path, parent: Path, case: Hostile, checks: Checks) -> bool:
    """Check a hostile copy: each fault must fit a line, and no file may change."""
    name, change = case
    folder = parent / honest.name
    shutil.copytree(honest, folder)
    change(folder)
    before = snapshot(parent)
    faults = check_submission(folder, checks).faults
    assert snapshot(parent) == before, f"{name}: a file was changed"
    for fault in faults:
        line = str(fault)
        assert line.isprintable() and len(line) < 1200, f"{name}: {line!r}"
    shutil.rmtree(folder)
    return bool(faults)


def snapshot(parent: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in parent.rglob("*") if path.is_file()}


def test_files_and_entries(scored: Path, tmp_path: Path) -> None:
    cases = list(hostile_files())
    taken = [c[0] for c in cases if not refused(scored, tmp_path, c, Checks(None, tmp_path))]
    assert taken == []
    assert len(cases) > 80


def test_records_and_rows(scored: Path, tmp_path: Path) -> None:
    cases = list(hostile_records(scored))
    taken = [c for c in cases if not refused(scored, tmp_path, c, Checks(None, tmp_path))]
    missed = [name for name, _ in taken if not name.startswith(BY_MODEL)]
    assert missed == []
    assert len(cases) > 500
    assert len(taken) < 40
    again = tmp_path / "again"
    again.mkdir()
    checks = Checks(None, tmp_path / "cache", N, with_model=True)
    one_of_each = {name.rpartition(" ")[0]: (name, change) for name, change in taken}.values()
    assert [case[0] for case in one_of_each if not refused(scored, again, case, checks)] == []


@pytest.mark.parametrize("name", NAMES)
def test_names(name: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        check_name(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300
