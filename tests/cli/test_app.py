"""The command line: what it loads, and how it ends."""

from __future__ import annotations

import errno
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from faithbench.cli import app as app_module
from faithbench.cli.app import app
from tests.support.commands import LIGHT, RUN, Call, Said, complaint, fresh
from tests.support.stores import store


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--help", "Measure how faithful"),
        ("run --help", "--allow-changed-data"),
        ("compare --help", "--metric"),
        ("submission check --help", "--no-model"),
        ("submission new my-x --root .", "written: my-x"),
        ("list tasks", "sst2"),
        ("list explainers", "input-x-gradient"),
        ("list metrics", "faithfulness"),
        ("show metric aopc", "erased inputs"),
        ("cite --explainer lime --task sst2 --metrics aopc", "@inproceedings{ribeiro2016should,"),
    ],
)
def test_light_commands_load_nothing_heavy(words: str, expected: str, tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-c", LIGHT, *words.split()],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert expected in process.stdout and "\x1b" not in process.stdout
    assert process.stdout.splitlines()[-1] == "heavy: [] code: 0"


@pytest.mark.parametrize("words", ["--help", "run --help", "leaderboard build --help"])
def test_help_waits_for_no_library_but_its_own(words: str, tmp_path: Path) -> None:
    absent = "numpy", "pydantic", "msgspec", "faithbench.records"
    code = f"{LIGHT}print(sorted(set({absent}) & set(sys.modules)))"
    process = subprocess.run(
        [sys.executable, "-c", code, *words.split()],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Usage: faithbench" in process.stdout
    assert process.stdout.splitlines()[-2:] == ["heavy: [] code: 0", "[]"]


def test_a_run_begins_without_what_it_does_not_need(tmp_path: Path) -> None:
    """Held by names, as a clock would depend on the machine: these took seconds once."""
    begin = """
import sys
import faithbench.run.loop
def stop(*_, **__):
    late = {"captum", "datasets", "pandas", "peft", "pyarrow", "scipy.stats", "sklearn", "spacy"}
    print("begun", sorted(late & set(sys.modules)))
    sys.exit(0)
faithbench.run.loop.run = stop
from faithbench.cli.app import main
sys.argv = ["faithbench", "run", "--explainer", "lrp-mask", "--task", "sst2"]
main()
"""
    process = subprocess.run(
        [sys.executable, "-c", begin],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.splitlines()[-1] == "begun []"


def test_a_command_ends_without_collecting_what_it_loaded(tmp_path: Path) -> None:
    """What is registered first to be called at exit is called last."""
    code = (
        "import atexit, gc, sys; from faithbench.cli.app import main; "
        "atexit.register(lambda: print('frozen:', gc.get_freeze_count() > 1000)); "
        "sys.argv[1:] = ['--version']; main()"
    )
    process = subprocess.run(
        [sys.executable, "-c", code],
        env=fresh(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.splitlines()[-1] == "frozen: True"


def test_compare_loads_no_network(tmp_path: Path) -> None:
    """Tests are scipy's; nothing else that is heavy is needed."""
    store(tmp_path / "results", "lime-11111111", {"aopc": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    store(tmp_path / "results", "random-22222222", {"aopc": [0.0] * 6})
    process = subprocess.run(
        [sys.executable, "-c", LIGHT, "compare", "lime", "random", "--task", "sst2"],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "lime    random   6   0.031        0.031    +1.00" in process.stdout
    assert process.stdout.splitlines()[-1] == "heavy: ['scipy', 'scipy.stats'] code: 0"


def test_compare_says_what_is_missing(call: Call, tmp_path: Path) -> None:
    words = ("compare", "lime", "random", "--task", "sst2")
    assert complaint(call(*words)) == (
        "results folder results does not exist; point --results at the folder that "
        "`faithbench run` wrote to"
    )
    store(tmp_path / "results", "lime-11111111", {"aopc": [0.1] * 6})
    said = complaint(call(*words))
    assert said.startswith("no recorded explainer named 'random'; known: lime (looked in results)")
    assert complaint(call(*words[:2], "--task", "sst2")).startswith("compare needs two explainers")


def test_version_and_no_words(call: Call) -> None:
    assert call("--version") == Said(0, f"faithbench {version('faithbench')}\n", "")
    said = call()
    assert (said.code, said.out) == (2, "") and "Measure how faithful" in said.err


def all_commands() -> Iterator[tuple[str, Any]]:
    """Yield each command and group with the words that name it."""
    waiting = [("", get_command(app))]
    while waiting:
        words, command = waiting.pop()
        yield words, command
        nested = getattr(command, "commands", {})
        waiting += [(f"{words} {name}".strip(), each) for name, each in nested.items()]


@pytest.mark.parametrize(("words", "command"), list(all_commands()))
def test_every_help_fits_80_columns_and_explains_each_option(
    call: Call, words: str, command: Any
) -> None:
    said = call(*words.split(), "--help")
    assert said.code == 0 and max(len(line) for line in said.out.splitlines()) <= 80
    # Short texts of a group's commands are cut with dots where they are too long.
    assert "...\n" not in said.out.partition("Commands:")[2]
    # Neither types of Python nor dots twice, as of an argument that says itself that it repeats.
    assert not re.search(r"<(str|int|bool|list)|\.{3}\S*\.{3}", said.out)
    assert (command.help or "").strip().endswith(".")
    for parameter in command.params:
        assert parameter.help and parameter.help.endswith((".", ").")), parameter.name


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("run", "--task", "sst2"), "Missing option '--explainer' / '-e'"),
        (("run", "--explainer", "random"), "Missing option '--task' / '-t'"),
        ((*RUN[:3], "--task", "sst2", "--limit", "0"), "Invalid value for '--limit'"),
        ((*RUN, "--task", "sst2", "--batch", "none"), "Invalid value for '--batch'"),
        (("explain",), "Missing option '--text'"),
        (("rum",), "No such command 'rum'"),
    ],
)
def test_usage_errors_end_with_2(call: Call, words: tuple[str, ...], hint: str) -> None:
    said = call(*words)
    assert said.code == 2 and said.out == ""
    assert "Usage: " in said.err and "Traceback" not in said.err
    assert said.err.splitlines()[-1].startswith("Error: ") and hint in said.err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError("Cannot allocate"),
        RuntimeError("could not create a primitive"),
        SystemError("error return without exception set"),
    ],
)
def test_no_memory_is_one_line(
    error: Exception, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> None:
        raise error

    monkeypatch.setattr(app_module, "app", fails)
    monkeypatch.setattr(app_module, "_show_notes_plainly", lambda: None)
    with pytest.raises(SystemExit) as stopped:
        app_module.main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == (
        "Error: there is not enough memory; end other programs, or give a smaller --batch\n"
    )
    error = RuntimeError("something else")
    with pytest.raises(RuntimeError, match="something else"):
        app_module.main()


def test_a_full_disk_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = OSError(errno.ENOSPC, "No space left on device", "card\n.json")

    def fails() -> None:
        raise error

    monkeypatch.setattr(app_module, "app", fails)
    monkeypatch.setattr(app_module, "_show_notes_plainly", lambda: None)
    with pytest.raises(SystemExit) as stopped:
        app_module.main()
    assert stopped.value.code == 1
    assert capsys.readouterr().err == (
        "Error: cannot write to card .json: No space left on device; make room, or choose another "
        "folder, and run it again\n"
    )
    error = OSError(errno.ENOENT, "No such file")
    with pytest.raises(OSError, match="No such file"):
        app_module.main()


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "faithbench.cli", "--debug", *RUN, "--task", "sst3"],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 1 and process.stdout == ""
    assert process.stderr.startswith("Traceback (most recent call last):")
    last = process.stderr.splitlines()[-1]
    assert last.endswith("FaithbenchError: no task named 'sst3'; did you mean 'sst2'?")


def test_doctor(call: Call) -> None:
    said = call("doctor")
    assert said.code == 0 and said.err == "" and "\x1b" not in said.out
    for part in ("device", "threads", "torch", version("torch"), "extra bundled", "extra heads"):
        assert part in said.out
    for part in ("sst2", "folder", "hub", "bundled", "yes"):
        assert part in said.out
