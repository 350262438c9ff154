"""The leaderboard's commands: what they print, how they fail, what they do not load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from faithbench.cli.leaderboard import build_leaderboard, check_leaderboard, publish_records
from faithbench.core.errors import FaithbenchError
from tests.support.commands import LIGHT, fresh
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("lime", "random", "deep"):
        store(Path("results") / "sst2-bundled" / "tiny-000000", f"{name}-11111111", {"aopc": UP})
    return tmp_path


def test_publish_build_and_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records, submissions, out = (
        Path("leaderboard/records"),
        Path("submissions"),
        Path("leaderboard"),
    )
    publish_records(results=Path("results"), records=records, attributions=2)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "3 records of results in leaderboard/records: 6 changed"
    )
    build_leaderboard(records=records, submissions=submissions, out=out)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "leaderboard/README.md"
    assert lines[-1] == "1 table from 3 records in leaderboard: 6 files changed"
    check_leaderboard(records=records, submissions=submissions, out=out)
    assert capsys.readouterr().out == "1 table from 3 records in leaderboard: up to date\n"
    (out / "index.html").unlink()
    with pytest.raises(FaithbenchError, match="1 files in leaderboard are not what the records"):
        check_leaderboard(records=records, submissions=submissions, out=out)
    assert capsys.readouterr().out == "leaderboard/index.html: missing\n"


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("leaderboard publish --attributions 2", 0),
        ("leaderboard build --records results", 0),
        ("leaderboard check --records results", 1),
        ("leaderboard build", 1),
    ],
)
def test_no_command_loads_torch(folder: Path, words: str, code: int) -> None:
    process = subprocess.run(
        [sys.executable, "-c", LIGHT, *words.split()],
        env=fresh(folder), cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    heavy = process.stdout.splitlines()[-1]
    assert heavy.endswith(f"code: {code}"), process.stderr
    for name in ("torch", "transformers", "datasets", "captum", "peft"):
        assert f"'{name}'" not in heavy
    assert ("Error: " in process.stderr) == bool(code) and "Traceback" not in process.stderr
