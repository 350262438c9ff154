"""The workflows of .github, read as data, and their scripts run in a repository made for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
NAMES = ("ci", "leaderboard", "submission")


def workflow(name: str) -> dict[str, Any]:
    """Read a workflow; its triggers are under `on`, which YAML 1.1 reads as true."""
    found: dict[Any, Any] = yaml.safe_load((FOLDER / f"{name}.yml").read_text())
    return {"on" if key is True else key: value for key, value in found.items()}


def steps(name: str, job: str | None = None) -> list[dict[str, Any]]:
    """Return the steps of a workflow, of one job or of all."""
    jobs = workflow(name)["jobs"]
    return [step for key, own in jobs.items() if job in (None, key) for step in own["steps"]]


def scripts(name: str, job: str | None = None) -> list[str]:
    """Return what a workflow runs in a shell."""
    return [step["run"] for step in steps(name, job) if "run" in step]


def git(place: Path, *words: str) -> str:
    """Run git in a folder, as nobody in particular."""
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(
        ["git", *who, *words],
        cwd=place,
        env=environment(place),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def shell(place: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a script as GitHub does: bash that stops at the first error."""
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script],
        cwd=place,
        env={**environment(place), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def environment(place: Path) -> dict[str, str]:
    """Return an environment in which nobody's own settings of git count."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "PYTHONPATH": str(ROOT),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "COLUMNS": "80",
    }


def put_command(place: Path) -> None:
    """Put faithbench where `make install` would."""
    path = place / ".venv" / "bin" / "faithbench"
    path.parent.mkdir(parents=True)
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m faithbench.cli "$@"\n')
    path.chmod(0o755)
