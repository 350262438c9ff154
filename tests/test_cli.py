"""The command line: what it loads, what it says when something is wrong, how it ends."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from faithbench import cli, run_command
from tests.builders import put
from tests.store import store

RUN = ("run", "--explainer", "random", "--limit", "2")
TASK = """\
name = "mini"
version = 1
title = "Mini"
kind = "classification"
labels = ["no", "yes"]
licence = "CC0"
citation = "none"

[folder]
name = "mini"
splits = { test = "test" }

[models.folder]
name = "bundled:sst2"
"""


class Said(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Said]


@pytest.fixture
def call(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Call:
    """Run the command line in this process, as the installed script would."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    # Set, then removed: so whatever a command sets is undone after the test.
    for name in ("FAITHBENCH_DEBUG", "FAITHBENCH_DATA", "FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)

    def run(*words: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["faithbench", *map(str, words)])
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return Said(code, captured.out, captured.err)

    return run


def complaint(said: Said) -> str:
    """Return the one line of an error, having checked that it is one and nothing else."""
    assert said.code == 1 and said.out == ""
    assert said.err.count("\n") == 1 and said.err.startswith("Error: ")
    assert "Traceback" not in said.err and "\x1b" not in said.err
    return said.err.removeprefix("Error: ").rstrip("\n")


def fresh(home: Path) -> dict[str, str]:
    """Return an environment of this checkout and nothing that a person has set."""
    checkout = str(Path(cli.__file__).parents[1])
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": checkout}


LIGHT = """
import sys
sys.argv[0] = "faithbench"
from faithbench.cli import main
try:
    main()
except SystemExit as stop:
    code = stop.code
else:
    code = 0
heavy = {"torch", "transformers", "datasets", "scipy", "scipy.stats", "sklearn", "captum", "peft"}
print("\\nheavy:", sorted(heavy & set(sys.modules)), "code:", code)
"""


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
    ],
)
def test_light_commands_load_nothing_heavy(words: str, expected: str, tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", LIGHT, *words.split()],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert expected in found.stdout and "\x1b" not in found.stdout
    assert found.stdout.splitlines()[-1] == "heavy: [] code: 0"


def test_compare_loads_no_network(tmp_path: Path) -> None:
    """Tests are scipy's; nothing else that is heavy is needed."""
    store(tmp_path / "results", "lime-11111111", {"aopc": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]})
    store(tmp_path / "results", "random-22222222", {"aopc": [0.0] * 6})
    found = subprocess.run(
        [sys.executable, "-c", LIGHT, "compare", "lime", "random", "--task", "sst2"],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "lime    random   6   0.031        0.031    +1.00" in found.stdout
    assert found.stdout.splitlines()[-1] == "heavy: ['scipy', 'scipy.stats'] code: 0"


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
    assert said.code == 2 and "Measure how faithful" in said.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*RUN, "--task", "sst3"), "no task named 'sst3'; did you mean 'sst2'?"),
        (
            (*RUN, "--task", "sst2", "--explainer", "atention"),
            "no explainer named 'atention'; did you mean 'attention'?",
        ),
        (
            (*RUN, "--task", "sst2", "--metrics", "aocp"),
            "no metric named 'aocp'; did you mean 'aopc'?",
        ),
        (
            (*RUN, "--task", "sst2", "--explainer", "lrp-mask:threshold=paper"),
            "no setting of lrp-mask named 'threshold'; did you mean 'thresholds'?",
        ),
        (
            (*RUN, "--task", "sst2", "--explainer", "lrp-mask:seed=x"),
            "lrp-mask: seed is a int, found 'x'",
        ),
        (
            (*RUN, "--task", "sst2", "--operator", "mas"),
            "no operator named 'mas'; did you mean 'mask'?",
        ),
        (
            (*RUN, "--task", "sst2", "--source", "bundle"),
            "no data source named 'bundle'; did you mean 'bundled'?",
        ),
        (
            (*RUN, "--task", "sst2", "--source", "bundled", "--device", "gpu"),
            "device 'gpu' is not one of auto, cuda, mps, cpu",
        ),
        (
            ("explain", "--text", "fine", "--explainer", "rolout"),
            "no explainer named 'rolout'; did you mean 'rollout'?",
        ),
        (("explain", "--text", "  "), "the text is empty; give --text some words"),
        (
            ("explain", "--text", "fine", "--text-b", "too"),
            "task sst2 is of kind classification; leave out --text-b",
        ),
    ],
)
def test_what_is_not_known_is_one_line_with_a_hint(
    call: Call, words: tuple[str, ...], message: str
) -> None:
    assert complaint(call(*words)) == message


def test_a_setting_where_there_is_none(call: Call) -> None:
    said = complaint(call(*RUN, "--task", "sst2", "--explainer", "random:top=3"))
    assert said.startswith("no setting of random named 'top'; ")


def task_file(tmp_path: Path, text: str = TASK) -> Path:
    path = tmp_path / "mini.toml"
    path.write_text(text)
    return path


def test_a_task_file_with_a_bad_key(call: Call, tmp_path: Path) -> None:
    path = task_file(tmp_path, TASK.replace("licence", "license").replace("title", "titel"))
    said = complaint(call(*RUN, "--task", path))
    assert said.startswith(f"task file {path}: ")
    assert "key 'license' is unknown" in said and "key 'title' is missing" in said


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"id": "b", "label": 1}, "field 'text': expected a text that is not blank, found None"),
        ({"id": "b", "text": " ", "label": 1}, "field 'text': expected a text that is not blank"),
        (
            {"id": "b", "text": "fine", "label": 2},
            "field 'label': expected 0 to 1 or one of no, yes, found 2",
        ),
        (
            {"id": "b", "text": "fine", "label": "maybe"},
            "field 'label': expected 0 to 1 or one of no, yes, found 'maybe'",
        ),
        ({"id": "a", "text": "fine", "label": 1}, "field 'id': expected an id used once"),
    ],
)
def test_a_faulty_row_is_named(
    call: Call, tmp_path: Path, row: dict[str, Any], expected: str
) -> None:
    path = put(tmp_path, [{"id": "a", "text": "good", "label": 0}, row])
    said = complaint(call(*RUN, "--task", task_file(tmp_path), "--data", tmp_path))
    assert said.startswith(f"{path}, line 2: {expected}") and said.endswith("; mend the row")


def test_changed_data_are_refused_unless_allowed(call: Call, tmp_path: Path) -> None:
    path = put(tmp_path, [{"id": "a", "text": "good", "label": 0}])
    pinned = TASK.replace("\n[models", f'sha256 = {{ test = "{"0" * 64}" }}\n\n[models')
    words = (*RUN, "--task", task_file(tmp_path, pinned), "--data", tmp_path)
    said = complaint(call(*words))
    assert said.startswith(f"{path} is not the file task mini was tested with: expected sha256 000")
    assert said.endswith("restore it, or accept it with --allow-changed-data")
    # Accepted, the run goes on to the next thing that is wrong.
    said = complaint(call(*words, "--allow-changed-data", "--model", tmp_path / "none"))
    assert said == f"model folder {tmp_path / 'none'} does not exist; check --model"


def test_a_model_folder_without_weights(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    words = (*RUN, "--task", "sst2", "--source", "bundled", "--model", folder)
    assert complaint(call(*words)) == f"model folder {folder} has no config.json; check --model"
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    said = complaint(call(*words))
    assert said.startswith(f"model folder {folder} has no weights (model.safetensors)")


def test_results_that_cannot_be_written(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    results = tmp_path / "file" / "results"
    said = complaint(call(*RUN, "--task", "sst2", "--source", "bundled", "--results", results))
    assert said.startswith(f"cannot write results to {results}: ")
    assert said.endswith("; choose another folder with --results")


def test_text_of_unknown_characters(call: Call) -> None:
    said = complaint(call("explain", "--text", "\u16a0\u16a1 \u16a2", "--explainer", "random"))
    assert "model 'bundled:sst2' finds only unknown characters in" in said
    assert said.endswith("give a text in the model's language")


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
    # Typer draws a frame, and colours it where it runs as a GitHub action.
    assert hint in " ".join(re.sub(r"\x1b\[[0-9;]*m|│", " ", said.err).split())


def test_debug_shows_the_traceback(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-m", "faithbench.cli", "--debug", *RUN, "--task", "sst3"],
        env=fresh(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1 and found.stdout == ""
    assert found.stderr.startswith("Traceback (most recent call last):")
    last = found.stderr.splitlines()[-1]
    assert last.endswith("FaithbenchError: no task named 'sst3'; did you mean 'sst2'?")


def test_ctrl_c_says_how_to_continue(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_request: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "run_command", interrupted)
    said = call(*RUN, "--task", "sst2")
    assert said == Said(130, "", "Stopped; the same command continues where it was.\n")


def test_explain_shows_label_text_and_words(call: Call) -> None:
    text = "A dull,  tiresome film."
    said = call("explain", "--text", text, "--explainer", "lrp-mask,random")
    assert said.code == 0 and "\x1b" not in said.out + said.err
    lines = said.out.splitlines()
    assert re.fullmatch(r"lrp-mask: negative \(p = 0\.9\d\d\)", lines[0])
    assert lines[1] == text
    assert len([line for line in lines if line.startswith("random: negative")]) == 1
    rows = [line.split("│")[1:3] for line in lines if line.startswith("│")]
    words, scores = zip(*((word.strip(), float(score)) for word, score in rows), strict=True)
    assert sorted(words[:6]) == sorted(words[6:]) == [",", ".", "A", "dull", "film", "tiresome"]
    assert words[0] in ("dull", "tiresome")
    assert list(scores[:6]) == sorted(scores[:6], key=abs, reverse=True)


def test_explain_writes_a_page(call: Call, tmp_path: Path) -> None:
    words = ("explain", "--text", "A <b>dull</b> film.", "--explainer", "attention,random")
    said = call(*words, "--html", "new/out.html")
    assert said.code == 0 and said.out.endswith("written: new/out.html\n")
    page = (tmp_path / "new" / "out.html").read_text()
    assert "<h3><bdi>attention</bdi></h3>" in page and "<h3><bdi>random</bdi></h3>" in page
    assert "<b>" not in page and "&lt;" in page and "<script" not in page
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out.html"]


def test_explain_refuses_a_page_before_it_loads_the_model(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("faithbench.models.load_model", lambda *_, **__: 1 / 0)
    (tmp_path / "file").write_text("")
    words = ("explain", "--text", "fine", "--html")
    assert complaint(call(*words, "file/out.html")) == (
        "cannot write results to file: File exists; choose another folder with --html"
    )
    assert complaint(call(*words, ".")) == (
        "--html should name a file, and . is a folder; give for example --html explained.html"
    )


def test_doctor(call: Call) -> None:
    said = call("doctor")
    assert said.code == 0 and said.err == "" and "\x1b" not in said.out
    for part in ("device", "threads", "torch", version("torch"), "extra bundled", "extra heads"):
        assert part in said.out
    for part in ("sst2", "folder", "hub", "bundled", "yes"):
        assert part in said.out
