"""Versions, kind of machine and git state, on a checkout made for the test."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import numpy as np
import pytest

from faithbench.records import provenance
from faithbench.records.provenance import environment, source_state
from faithbench.records.schema import SourceFacts


def test_environment_names_versions_not_the_machine() -> None:
    facts = environment("cpu", threads=2)
    assert facts.packages["numpy"] == np.__version__
    assert set(facts.packages) <= set(provenance.PACKAGES)
    assert facts.python == platform.python_version()
    assert facts.platform == f"{platform.system()}-{platform.machine()}"
    assert (facts.device, facts.threads) == ("cpu", 2)


def test_absent_packages_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "PACKAGES", ("numpy", "no-such-package"))
    assert environment("cpu", 1).packages == {"numpy": np.__version__}


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_source_state_follows_the_work_tree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = SourceFacts(commit=None, dirty=None)
    inner = tmp_path / "inner"
    inner.mkdir()
    assert source_state(tmp_path) == source_state(tmp_path / "none") == nothing
    git(tmp_path, "init")
    assert source_state(tmp_path) == nothing, "no commit yet"
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-m", "a")
    commit = git(tmp_path, "rev-parse", "HEAD")
    assert source_state(tmp_path) == SourceFacts(commit=commit, dirty=False)
    (tmp_path / "leaderboard").mkdir()
    (tmp_path / "leaderboard" / "record.json").write_text("{}")
    assert source_state(tmp_path) == SourceFacts(commit=commit, dirty=False), "a run's own output"
    (tmp_path / "a").write_text("2")
    assert source_state(tmp_path) == SourceFacts(commit=commit, dirty=True)
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    assert source_state(tmp_path).commit == commit
    assert source_state(inner) == nothing
    (inner / ".git").mkdir()
    assert source_state(inner) == nothing, "an empty .git must not let the outer one answer"
    monkeypatch.setenv("PATH", "")
    assert source_state(tmp_path) == nothing, "no git"


def test_a_slow_git_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: object, timeout: float, **__: object) -> None:
        raise subprocess.TimeoutExpired("git", timeout)

    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(subprocess, "run", slow)
    assert source_state(tmp_path) == SourceFacts(commit=None, dirty=None)
