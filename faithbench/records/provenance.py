"""The provenance of a record: versions of the software, kind of machine, git commit."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from faithbench.records.schema import EnvironmentFacts, SourceFacts

PACKAGES = ("captum", "faithbench", "numpy", "peft", "scipy", "tokenizers", "torch", "transformers")


def environment(
    device: str, threads: int, tf32: bool | None = None, compiled: bool | None = None
) -> EnvironmentFacts:
    """Describe the software and the kind of machine, never the machine's name.

    Versions are read from the installed packages' metadata: nothing is imported for them.
    """
    versions = {package: _installed_version(package) for package in PACKAGES}
    return EnvironmentFacts(
        packages={package: version for package, version in versions.items() if version},
        python=platform.python_version(),
        platform=f"{platform.system()}-{platform.machine()}",
        device=device,
        threads=threads,
        tf32=tf32,
        compiled=compiled,
    )


def _installed_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def source_state(root: Path) -> SourceFacts:
    """Return the commit checked out at `root` and whether files differ from it; never raises."""
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    # Runs of the leaderboard's plan publish there one after the other: without this, all but
    # the first would be recorded as made by a changed checkout.
    but_published = ("--", ".", ":(exclude)leaderboard")
    changes = _git(root, "status", "--porcelain", *but_published) if commit else None
    return SourceFacts(
        commit=commit.decode() if commit else None, dirty=None if changes is None else bool(changes)
    )


def _git(root: Path, *words: str) -> bytes | None:
    """Return the output of a git command in `root`, None if it fails or takes over 5 seconds."""
    # A hook's GIT_DIR, or a repository further up, would answer for another tree than root.
    hidden = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"}
    try:
        if not (root / ".git").exists():
            return None
        kept = {name: value for name, value in os.environ.items() if name not in hidden}
        completed = subprocess.run(
            # `git status` would otherwise lock and rewrite the index of a checkout in use.
            ["git", "--no-optional-locks", *words],
            cwd=root,
            env={**kept, "GIT_CEILING_DIRECTORIES": str(root.resolve().parent)},
            capture_output=True,
            timeout=5,
            check=True,
        )
    except (OSError, ValueError, RuntimeError, subprocess.SubprocessError):
        return None
    return completed.stdout.strip()
