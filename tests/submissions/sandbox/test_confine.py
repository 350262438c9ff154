"""Confined code: what it is refused, what it may still do, and that no label is in its reach."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import faithbench
from faithbench.core.errors import FaithbenchError
from faithbench.submissions.sandbox.confine import confine, paths_without
from tests.support.sandboxed import LIMITS, failure_of, linux, run_confined

PACKAGE = Path(faithbench.__file__).parent
BUNDLED = sorted((PACKAGE / "data" / "bundled").glob("*/*.jsonl*"))


def test_memory_is_limited() -> None:
    assert "MemoryError" in failure_of("x = bytearray(3 << 30)", confined=True)


def test_files_are_limited() -> None:
    code = "Path('big').write_bytes(b'x' * (2 << 20)); send('there')"
    message = failure_of(code, confined=True)
    assert "File too large" in message or "File size limit" in message


@linux
def test_what_holds_is_told_in_words() -> None:
    code = "for promise in held.holds: send(promise + '\\n')\nassert not held.missing"
    assert run_confined(code) == [
        "20 s",
        "memory 0.585938 GB",
        "no network",
        "no other processes",
        "no reach to running processes",
        "writes only in a temporary folder",
        "reads only code, model and its own folder",
        "a temporary folder that can be removed",
    ]  # fmt: skip


@linux
def test_what_is_refused_and_what_is_not(tmp_path: Path) -> None:
    precious = tmp_path / "record.json"
    precious.write_text("precious")
    code = f"""
import socket, subprocess, threading
there = Path({str(precious)!r})
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
attempt("parent", lambda: Path(f"/proc/{{os.getppid()}}/environ").read_text())
attempt("signal", lambda: os.kill(os.getppid(), 9))
attempt("tcp", lambda: socket.socket())
attempt("unix", lambda: socket.socket(socket.AF_UNIX))
attempt("fork", lambda: os.fork())
attempt("program", lambda: subprocess.run(["/bin/true"]))
attempt("exec", lambda: os.execv("/bin/true", ["true"]))
"""
    results = dict(line.split(": ") for line in run_confined(code))
    assert (results.pop("own file"), results.pop("thread")) == ("done", "done")
    assert "done" not in results.values(), results
    assert len(results) == 15
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
    assert run_confined(code) == ["0 children"]


READ_LABELS = f"""
for path in {[str(path) for path in BUNDLED]!r}:
    attempt(path, Path(path).read_bytes)
    attempt("chdir " + path, lambda: (os.chdir(Path(path).parent), open(Path(path).name).read()))
    attempt("link " + path, lambda: (os.symlink(path, "l"), open("l").read()))
    attempt("root " + path, lambda: open("/proc/self/root" + path).read())
"""


@linux
@pytest.mark.parametrize(
    "before",
    [
        "",  # as in a checkout: the package is next to the interpreter's folder
        f"sys.prefix = {str(PACKAGE.parent)!r}",  # as installed: it is in there
        f"import sysconfig; sys.base_prefix = {str(PACKAGE)!r}",
        f"sys.prefix = {str(PACKAGE / 'data')!r}",
    ],
)
def test_no_label_and_no_rationale_can_be_read(before: str) -> None:
    assert len(BUNDLED) >= 1 and any(path.name.startswith("test.jsonl") for path in BUNDLED)
    results = [line.rsplit(": ", 1) for line in run_confined(READ_LABELS, before=before)]
    assert len(results) == 4 * len(BUNDLED)
    assert "done" not in {result for _, result in results}, results


@linux
def test_task_files_of_a_wheel_cannot_be_read(tmp_path: Path) -> None:
    """A copy of the package, as a wheel lays it out, in an environment with `lib64 -> lib`."""
    site = tmp_path / "lib" / "python3" / "site-packages"
    for path in [*PACKAGE.rglob("*.py"), *(PACKAGE / "data").glob("*.txt"), *BUNDLED[:1]]:
        copy = site / "faithbench" / path.relative_to(PACKAGE)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_bytes(path.read_bytes())
    (site / "faithbench" / "_tasks").mkdir()
    (site / "faithbench" / "_tasks" / "sst2.toml").write_text("secret")
    (site / "other.txt").write_text("any package")
    (tmp_path / "lib64").symlink_to("lib")
    label_file = "/".join(BUNDLED[0].parts[-2:])
    # What confine needs of other packages is loaded before: they are elsewhere, and stay so.
    before = f"import pydantic\nsys.prefix = {str(tmp_path)!r}\nsys.path.insert(0, {str(site)!r})"
    code = f"""
import faithbench
root, lib64 = Path({str(site)!r}), Path({str(tmp_path / "lib64" / "python3" / "site-packages")!r})
assert Path(faithbench.__file__).parents[1] == root
hidden = ["faithbench/_tasks/sst2.toml", "faithbench/data/bundled/{label_file}"]
for base in (root, lib64):
    for name in hidden:
        attempt("hidden", (base / name).read_bytes)
    attempt("shown", (base / "other.txt").read_bytes)
    attempt("shown", (base / "faithbench/data/stopwords.txt").read_bytes)
    attempt("shown", lambda: list((base / "faithbench").iterdir()))
"""
    lines = run_confined(code, before=before)
    assert (
        lines
        == ["hidden: PermissionError"] * 2
        + ["shown: done"] * 3
        + ["hidden: PermissionError"] * 2
        + ["shown: done"] * 3
    )


@linux
def test_labels_of_an_installed_copy_cannot_be_read_from_a_checkout(tmp_path: Path) -> None:
    site = tmp_path / "site-packages"
    rows = site / "faithbench" / "data" / "bundled" / "sst2" / "test.jsonl"
    rows.parent.mkdir(parents=True)
    rows.write_text("a label")
    (site / "faithbench" / "code.py").write_text("")
    before = f"sys.path.append({str(site)!r})"
    code = f"""
attempt("rows", Path({str(rows)!r}).read_bytes)
attempt("code", Path({str(site / "faithbench" / "code.py")!r}).read_bytes)
"""
    assert run_confined(code, before=before) == ["rows: PermissionError", "code: done"]


@linux
def test_what_lies_next_to_a_checkout_cannot_be_read(tmp_path: Path) -> None:
    """A checkout's folder is on sys.path, with tasks, results and published rows."""
    paths = [PACKAGE.parent / "tasks" / "sst2.toml", PACKAGE.parent / "README.md"]
    (tmp_path / "results.jsonl").write_text("a label")
    before = f"sys.path.append({str(tmp_path)!r}); sys.prefix = {str(tmp_path)!r}"
    paths.append(tmp_path / "results.jsonl")
    code = f"for path in {[str(p) for p in paths]!r}: attempt('read', Path(path).read_bytes)"
    assert run_confined(code, before=before) == ["read: PermissionError"] * 3


@linux
def test_code_next_to_the_data_can_be_imported() -> None:
    modules = sorted(
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        for path in (PACKAGE / "data").rglob("*.py")
        if path.stem != "__init__"
    )
    assert "faithbench.data.words" in modules and len(modules) >= 9
    # Other packages may be where a test may not read, so they are loaded before, and stay loaded.
    before = f"""
import importlib
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # else numpy starts threads, which cannot be confined
for name in {modules!r}:
    importlib.import_module(name)
for name in [name for name in sys.modules if name.startswith("faithbench")]:
    del sys.modules[name]
"""
    code = f"""
assert "faithbench.data.words" not in sys.modules
for name in {modules!r}:
    importlib.import_module(name)
from faithbench.data.words import is_stop_word
send(f"{{is_stop_word('The')}}\\n")
"""
    assert run_confined(code, before=before) == ["True"]


def test_nothing_starts_a_thread_before_a_worker_is_confined() -> None:
    code = """
import os, sys
import faithbench.submissions.sandbox.worker
print(sorted({"numpy", "torch", "scipy"} & set(sys.modules)))
if sys.platform == "linux":
    print(len(os.listdir("/proc/self/task")))
"""
    environment = {name: value for name, value in os.environ.items() if "THREADS" not in name}
    command = [sys.executable, "-c", code]
    output = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    ).stdout.split()
    assert output == (["[]", "1"] if sys.platform == "linux" else ["[]"])


@linux
def test_a_process_with_threads_is_not_confined() -> None:
    before = """
import threading, time
threading.Thread(target=time.sleep, args=(9,), daemon=True).start()
"""
    with pytest.raises(FaithbenchError, match="2 threads run already; confine a process before"):
        run_confined("", before=before)


def test_windows_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(OSError, match="runs on Linux and macOS only"):
        confine(LIMITS, [], Path.cwd())


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("lib/a/secret", "lib/a/code", "lib/b", "etc"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "lib" / "a" / "file").write_text("")
    return tmp_path.resolve()


def test_a_folder_with_something_hidden_is_replaced_by_its_entries(tree: Path) -> None:
    readable, listed = paths_without([tree / "lib", tree / "etc"], [tree / "lib" / "a" / "secret"])
    a = tree / "lib" / "a"
    assert readable == [tree / "etc", a / "code", a / "file", tree / "lib" / "b"]
    assert listed == [tree / "lib", a]


def test_links_lead_around_nothing(tree: Path) -> None:
    a = tree / "lib" / "a"
    (tree / "lib64").symlink_to("lib")
    (a / "self").symlink_to("..")
    (a / "loop").symlink_to("loop")
    (tree / "etc" / "way").symlink_to(a / "secret")
    (tree / "lib" / "short").symlink_to(a / "secret")
    paths = [tree / "lib64", tree / "lib", tree / "lib" / "short", tree / "gone"]
    readable, listed = paths_without(paths, [tree / "lib64" / "a" / "secret"])
    assert readable == [tree / "gone", a / "code", a / "file", a / "loop", tree / "lib" / "b"]
    assert listed == [tree / "lib", a]
