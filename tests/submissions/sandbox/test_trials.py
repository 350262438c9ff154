"""The trials: attacks that were found are refused, and an open promise is told as one."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from faithbench.submissions.sandbox import trials
from faithbench.submissions.sandbox.messages import NEEDED, Confined, Promise
from tests.support.sandboxed import linux, run_confined


@linux
def test_no_datagram_leaves_by_path_or_abstract_name(tmp_path: Path) -> None:
    path = str(tmp_path / "server")
    by_path = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    abstract = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with by_path, abstract:
        by_path.bind(path)
        abstract.bind("\0faithbench-trial")
        code = f"""
import socket
def send_to(address):
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.sendto(b"secret", address)
def send_connected(address):
    left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    left.connect(address)
    left.send(b"secret")
for address in ({path!r}, "\\0faithbench-trial"):
    attempt("send", lambda: send_to(address))
    attempt("connect", lambda: send_connected(address))
"""
        assert run_confined(code) == [
            "send: PermissionError", "connect: PermissionError",
        ] * 2  # fmt: skip
        for server in (by_path, abstract):
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.recv(10)


@linux
def test_the_parent_keeps_its_priority_and_its_processors() -> None:
    mask, nice = os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)
    code = """
import fcntl
parent = os.getppid()
attempt("priority", lambda: os.setpriority(os.PRIO_PROCESS, parent, 19))
attempt("affinity", lambda: os.sched_setaffinity(parent, {0}))
attempt("own", lambda: fcntl.fcntl(line, fcntl.F_SETOWN, parent))
attempt("folder", lambda: os.mkdir("closed", 0o300))
attempt("usual folder", lambda: os.mkdir("open"))
attempt("pin", lambda: os.sched_setaffinity(0, os.sched_getaffinity(0)))
"""
    results = dict(line.split(": ") for line in run_confined(code))
    refused = dict.fromkeys(("priority", "affinity", "own", "folder"), "PermissionError")
    assert results == {**refused, "usual folder": "done", "pin": "done"}
    assert (os.sched_getaffinity(0), os.getpriority(os.PRIO_PROCESS, 0)) == (mask, nice)


def test_only_what_is_forbidden_counts_as_refused() -> None:
    def fail(error: Exception) -> None:
        raise error

    assert trials._refused(partial(fail, PermissionError()))
    for other in (FileNotFoundError(), OSError(22, "invalid"), AttributeError()):
        assert not trials._refused(partial(fail, other))
    assert not trials._refused(lambda: None)
    assert not trials._all_refused([partial(fail, PermissionError()), lambda: None])


@linux
def test_a_free_process_keeps_no_promise_and_comes_to_no_harm(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from faithbench.submissions.sandbox.trials import kept_promises
folder = Path(sys.argv[1])
kept = kept_promises(folder / "home", 1 << 20, [folder / "rows.jsonl"], memory_limited=False)
print(*(promise for promise, held in kept.items() if held), sep=",")
"""
    (tmp_path / "home").mkdir()
    (tmp_path / "rows.jsonl").write_text("a label")
    command = [sys.executable, "-c", code, str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["home", "rows.jsonl"]


@linux
@pytest.mark.parametrize("missing", ["allow_calls", "restrict_files"])
def test_a_promise_whose_belt_is_missing_is_not_told_as_enforced(missing: str) -> None:
    before = f"""
from faithbench.submissions.sandbox import confine as module
module.{missing} = lambda *_: False
"""
    (line,) = run_confined("send('|'.join(held.missing) + '\\n')", before=before)
    told = set(line.split("|"))
    by_filter = {Promise.NETWORK, Promise.PROCESSES, Promise.REACH, Promise.WRITES}
    if missing == "allow_calls":
        assert told == {*by_filter, Promise.REMOVAL, "memory 0.585938 GB"}
    else:
        assert told == {Promise.READS, Promise.WRITES}


def test_what_is_needed_is_files_and_network() -> None:
    assert Confined(holds=("600 s", *NEEDED), missing=(Promise.REACH,)).needed == ()
    assert Confined(holds=(Promise.READS,), missing=()).needed == (
        "no network", "writes only in a temporary folder",
    )  # fmt: skip
