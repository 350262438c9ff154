"""The outer belt where there is one: bubblewrap starts the worker in namespaces of its own.

In there is no network but an empty one, no process of the machine, no shared memory or queue of
others, and no file but those that are named. The worker confines itself all the same: many machines
have no bubblewrap, or forbid the namespaces that it needs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

from faithbench.submissions.sandbox.confine import code_paths, hidden_paths

# A file that the trials try to read. It must be there, for Landlock to be what refuses it.
_BAIT = Path("/etc/passwd")
_MADE = ("/proc", "/dev")  # bubblewrap makes these anew
_SECONDS = 20


def wrapped(command: Sequence[str], home: Path, readable: Iterable[Path] = ()) -> list[str]:
    """Return a command that runs another one in bubblewrap, or that one where this cannot be."""
    if not bubblewrap_works():
        return list(command)
    return [*_prefix(), *_binds("--ro-bind", readable), "--bind", str(home), str(home), *command]


@cache
def bubblewrap_works() -> bool:
    """Return whether an interpreter starts in bubblewrap here, found by starting one."""
    if sys.platform != "linux" or shutil.which("bwrap") is None:
        return False
    probe = [*_prefix(), sys.executable, "-c", "import faithbench"]
    package = str(Path(__file__).parents[3])
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": package, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            probe, env=environment, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return run.returncode == 0


@cache
def _prefix() -> tuple[str, ...]:
    """Return the start of the command: namespaces, code to read, and nothing of what is hidden."""
    code = [path for path in code_paths() if not str(path).startswith(_MADE)]
    return (
        "bwrap", "--unshare-all", "--die-with-parent", "--cap-drop", "ALL",
        "--proc", "/proc", "--dev", "/dev",
        *_binds("--ro-bind-try", [_BAIT, *_interpreter(), *code]),
        # Over what was bound before: a folder that is empty.
        *(word for path in hidden_paths() if path.is_dir() for word in ("--tmpfs", str(path))),
    )  # fmt: skip


def _binds(option: str, paths: Iterable[Path]) -> list[str]:
    return [word for path in paths for word in (option, str(path), str(path))]


def _interpreter() -> list[Path]:
    """Return the folders of the interpreter and of each link that leads to it."""
    path, folders = Path(sys.executable), [Path(sys.prefix) / "pyvenv.cfg"]
    while path.is_symlink():
        folders.append(path.parent)
        path = Path(os.path.normpath(path.parent / path.readlink()))
    return [*folders, path.parent]
