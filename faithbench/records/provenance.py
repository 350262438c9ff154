"""Where a record comes from: the software, the kind of machine, the checkout."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from faithbench.records.schema import EnvironmentFacts, SourceFacts

PACKAGES = ("captum", "faithbench", "numpy", "peft", "scipy", "tokenizers", "torch", "transformers")


def environment(device: str, threads: int) -> EnvironmentFacts:
    """Describe the software and the kind of machine, without importing or naming either."""
    found = {package: _version(package) for package in PACKAGES}
    return EnvironmentFacts(
        packages={package: version for package, version in found.items() if version},
        python=platform.python_version(),
        platform=f"{platform.system()}-{platform.machine()}",
        device=device,
        threads=threads,
    )


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def source_state(root: Path) -> SourceFacts:
    """Return the commit checked out at `root` and whether files differ from it; never raises.

    Files of the leaderboard do not count: one run of its plan publishes there before the next.
    """
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    all_else = ("--", ".", ":(exclude)leaderboard")
    changes = _git(root, "status", "--porcelain", *all_else) if commit else None
    return SourceFacts(
        commit=commit.decode() if commit else None, dirty=None if changes is None else bool(changes)
    )


def _git(root: Path, *words: str) -> bytes | None:
    # A hook's GIT_DIR, or a repository further up, would answer for another tree than root.
    hidden = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"}
    try:
        if not (root / ".git").exists():
            return None
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        answer = subprocess.run(
            ["git", "--no-optional-locks", *words],
            cwd=root,
            env={**kept, "GIT_CEILING_DIRECTORIES": str(root.resolve().parent)},
            capture_output=True,
            timeout=5,
            check=True,
        )
    except (OSError, ValueError, RuntimeError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
