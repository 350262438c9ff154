"""The outer belt: what code in bubblewrap can see at all, before it confines itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from faithbench.core.files import temporary_folder
from faithbench.submissions.sandbox import bubblewrap
from faithbench.submissions.sandbox.bubblewrap import bubblewrap_works, wrapped
from faithbench.submissions.sandbox.confine import hidden_paths
from faithbench.submissions.sandbox.process import run_isolated
from tests.support.sandboxed import LIMITS

needs_bubblewrap = pytest.mark.skipif(not bubblewrap_works(), reason="needs bubblewrap")


@needs_bubblewrap
def test_no_process_no_network_and_no_label_is_in_sight(tmp_path: Path) -> None:
    (tmp_path / "model.bin").write_text("weights")
    (tmp_path / "rows.jsonl").write_text("a label")
    bundled = next(path for path in hidden_paths() if path.is_dir())
    code = f"""
import json, os, sys
from pathlib import Path
folder = Path({str(tmp_path)!r})
Path("mine").write_text("x")
seen = {{
    "processes": len([name for name in os.listdir("/proc") if name.isdigit()]),
    "network": [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]],
    "folder": sorted(path.name for path in folder.iterdir()),
    "model": (folder / "model.bin").read_text(),
    "bundled": os.listdir({str(bundled)!r}),
    "home": os.path.exists({str(Path.home())!r} + "/.ssh"),
}}
try:
    (folder / "model.bin").write_text("x")
except OSError as error:
    seen["overwrite"] = type(error).__name__
os.write(int(sys.argv[1]), json.dumps(seen).encode() + b"\\n")
"""
    lines: list[bytes] = []
    with temporary_folder() as home:
        command = wrapped([sys.executable, "-c", code], home, [tmp_path / "model.bin"])
        assert command[0] == "bwrap"
        run_isolated(command, home, LIMITS, lines.append)
        assert (home / "mine").read_text() == "x"
    seen = json.loads(lines[0])
    assert seen.pop("processes") <= 2  # bubblewrap's own, and this one
    assert seen == {
        "network": ["lo"], "folder": ["model.bin"], "model": "weights", "bundled": [],
        "home": False, "overwrite": "OSError",
    }  # fmt: skip


@needs_bubblewrap
def test_a_signal_is_told_as_one() -> None:
    from faithbench.core.errors import FaithbenchError

    with (
        temporary_folder() as home,
        pytest.raises(FaithbenchError, match=r"by a signal \(Aborted\)"),
    ):
        command = wrapped([sys.executable, "-c", "import os; os.abort()"], home)
        run_isolated(command, home, LIMITS, lambda line: None)


def test_where_there_is_none_the_command_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "bubblewrap_works", lambda: False)
    assert wrapped(["python", "x"], Path("/home")) == ["python", "x"]


@pytest.mark.parametrize("outcome", [1, OSError(), subprocess.TimeoutExpired("bwrap", 1)])
def test_one_that_cannot_start_is_not_used(
    monkeypatch: pytest.MonkeyPatch, outcome: int | Exception
) -> None:
    def run(*_: object, **__: object) -> subprocess.CompletedProcess[bytes]:
        if isinstance(outcome, Exception):
            raise outcome
        return subprocess.CompletedProcess([], outcome)

    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/bwrap")
    monkeypatch.setattr(subprocess, "run", run)
    assert not bubblewrap_works.__wrapped__()
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert not bubblewrap_works.__wrapped__()


def test_every_link_to_the_interpreter_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    (tmp_path / "c" / "python").write_text("")
    (tmp_path / "b" / "python").symlink_to("../c/python")
    (tmp_path / "a" / "python").symlink_to(tmp_path / "b" / "python")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "a" / "python"))
    assert bubblewrap._interpreter()[1:] == [tmp_path / "a", tmp_path / "b", tmp_path / "c"]
