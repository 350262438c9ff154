"""Code of others in a process of its own: each way of misbehaving is one line, and is over."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import temporary_folder
from faithbench.core.text import readable
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.landlock import landlock_version
from faithbench.submissions.sandbox.process import enforced_here, run_isolated

LIMITS = Limits(seconds=20, memory_mb=600, sent_mb=1, printed_mb=1, file_mb=1)
CONFINED = """
import os, sys, time
from pathlib import Path
from faithbench.submissions.sandbox.confine import Limits, confine
line = int(sys.argv[1])
held = confine(Limits(20, 600, file_mb=1), [], Path.cwd())
def send(text):
    os.write(line, text.encode())
def attempt(name, do):
    try:
        do()
        send(f"{name}: done\\n")
    except OSError as error:
        send(f"{name}: {type(error).__name__}\\n")
"""
linux = pytest.mark.skipif(not landlock_version(), reason="needs Landlock")


def run(code: str, limits: Limits = LIMITS, *, confined: bool = True) -> list[str]:
    lines: list[str] = []
    body = CONFINED + code if confined else f"import os, sys\nline = int(sys.argv[1])\n{code}"
    with temporary_folder() as home:
        command = [sys.executable, "-c", body]
        run_isolated(command, home, limits, lambda line: lines.append(line.decode()))
    return lines


def failure(code: str, limits: Limits = LIMITS, *, confined: bool = True) -> str:
    with pytest.raises(FaithbenchError) as caught:
        run(code, limits, confined=confined)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_lines_come_back_whole() -> None:
    code = "os.write(line, b'one\\ntw'); os.write(line, b'o\\nhalf')"
    assert run(code, confined=False) == ["one", "two"]


def test_a_hanging_process_is_stopped() -> None:
    start = time.monotonic()
    said = failure("import time\ntime.sleep(60)", Limits(seconds=1), confined=False)
    assert said.startswith("took longer than 1 s and was stopped")
    assert time.monotonic() - start < 20


def test_one_that_closes_its_pipes_and_goes_on_is_stopped() -> None:
    code = "import time\nfor fd in (1, 2, line): os.close(fd)\ntime.sleep(60)"
    assert "went on running" in failure(code, confined=False)


def test_a_crash_is_named() -> None:
    assert "Aborted" in failure("os.abort()", confined=False)
    said = failure("print('goodbye \\x1b[31m'); sys.exit(3)", confined=False)
    assert said == (
        "ended with exit code 3 before it had sent all scores; it last printed: goodbye [31m"
    )


def test_a_million_lines_are_too_many() -> None:
    assert "printed more than 1 MB" in failure("while True: print('x' * 99)", confined=False)


def test_two_gigabytes_are_not_read() -> None:
    code = "data = b'x' * 65536\nwhile True: os.write(line, data)"
    assert "sent more than 1 MB" in failure(code, confined=False)


def test_what_the_reader_refuses_ends_the_process() -> None:
    def refuse(line: bytes) -> None:
        raise FaithbenchError("no")

    command = [sys.executable, "-c", "import os, sys, time\n"
               "os.write(int(sys.argv[1]), b'x\\n'); time.sleep(60)"]  # fmt: skip
    start = time.monotonic()
    with temporary_folder() as home, pytest.raises(FaithbenchError, match="no"):
        run_isolated(command, home, LIMITS, refuse)
    assert time.monotonic() - start < 20


@linux
def test_children_in_the_group_are_ended_too() -> None:
    code = """
if child := os.fork():
    os.write(line, b"%d\\n" % child)
    os._exit(0)
import time
time.sleep(60)
"""
    (name,) = run(code, confined=False)
    state = Path(f"/proc/{name}/stat")
    for _ in range(50):  # until the kernel has seen to it
        if not state.exists() or state.read_text().split()[2] == "Z":
            return
        time.sleep(0.1)
    raise AssertionError("the child is still there")


def test_memory_is_limited() -> None:
    assert "MemoryError" in failure("x = bytearray(3 << 30)")


def test_files_are_limited() -> None:
    said = failure("Path('big').write_bytes(b'x' * (2 << 20)); send('there')")
    assert "File too large" in said or "File size limit" in said


@linux
def test_everything_is_enforced_here() -> None:
    found = enforced_here()
    assert found.missing == ()
    assert found.holds == (
        "600 s",
        "memory 4 GB",
        "no network",
        "no other processes",
        "writes only in a temporary folder",
        "reads only code, model and its own folder",
    )


@linux
def test_what_is_refused_and_what_is_not(tmp_path: Path) -> None:
    precious = tmp_path / "record.json"
    precious.write_text("precious")
    there = str(precious)
    code = f"""
import socket, subprocess, threading, ctypes
import faithbench
there = Path({there!r})
data = Path(faithbench.__file__).parent / "data" / "bundled" / "sst2" / "test.jsonl"
attempt("own file", lambda: Path("mine").write_text("x"))
attempt("thread", lambda: threading.Thread(target=lambda: None).start())
attempt("overwrite", lambda: there.write_text("x"))
attempt("truncate", lambda: os.truncate(there, 0))
attempt("remove", lambda: there.unlink())
attempt("move", lambda: there.rename(Path("mine")))
attempt("link", lambda: os.link(there, "link"))
attempt("mode", lambda: there.chmod(0))
attempt("date", lambda: os.utime(there, (0, 0)))
attempt("read", lambda: there.read_text())
attempt("rationales", lambda: data.read_text())
attempt("parent", lambda: Path(f"/proc/{{os.getppid()}}/environ").read_text())
attempt("signal", lambda: os.kill(os.getppid(), 9))
attempt("tcp", lambda: socket.socket())
attempt("unix", lambda: socket.socket(socket.AF_UNIX))
attempt("fork", lambda: os.fork())
attempt("program", lambda: subprocess.run(["/bin/true"]))
attempt("exec", lambda: os.execv("/bin/true", ["true"]))
"""
    found = dict(line.split(": ") for line in run(code))
    assert (found.pop("own file"), found.pop("thread")) == ("done", "done")
    assert "done" not in found.values(), found
    assert len(found) == 16
    assert precious.read_text() == "precious"


@linux
def test_a_fork_bomb_is_one_process() -> None:
    code = """
children = 0
for _ in range(1000):
    try:
        os.fork(); children += 1
    except PermissionError:
        pass
send(f"{children} children\\n")
"""
    assert run(code) == ["0 children"]


def test_the_environment_holds_no_secret(monkeypatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    code = "os.write(line, '\\n'.join([*os.environ.values(), os.getcwd(), '']).encode())"
    lines = run(code, confined=False)
    assert "secret" not in lines
    assert str(Path.home()) not in lines


def test_nothing_is_left_of_a_deep_workplace() -> None:
    with temporary_folder() as home:
        deep = "import os\nfor _ in range(1500): os.mkdir('d'); os.chdir('d')"
        run_isolated([sys.executable, "-c", deep], home, LIMITS, lambda line: None)
        kept = home
    assert not kept.exists()


def test_text_of_others_is_one_printable_line() -> None:
    assert readable("a\x1b[31m\n\tb\u202e c") == "a [31m b c"
    assert readable("x" * 300) == "x" * 197 + "..."
