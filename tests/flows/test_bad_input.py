"""Bad input is one clear line, said before any model is loaded."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from faithbench.cli import app as cli
from faithbench.data.sources import hub
from faithbench.data.tasks import load_task
from faithbench.models import model as models
from tests.support.tasks import put_hub, use_hub_cache

TASK = """\
name = "mini"
version = 1
title = "Mini"
kind = "classification"
labels = ["no", "yes"]
[folder]
name = "mini"
splits = { test = "test" }
[hub]
dataset = "owner/mini"
splits = { test = "test" }
columns = { text = "sentence", label = "label" }
"""
GOOD: dict[str, Any] = {"id": "a", "text": "good film", "label": 1}
Call = Callable[..., str]


@pytest.fixture
def call(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Call:
    """Run a task with some words added, and return the one line of its error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("FAITHBENCH_DATA", raising=False)
    (tmp_path / "mini.toml").write_text(TASK)

    def never(*_: object, **__: object) -> None:
        raise AssertionError("the model was loaded before the data were checked")

    monkeypatch.setattr(models, "load_model", never)

    def run(*words: object, task: str = "mini.toml") -> str:
        argv = ["faithbench", "run", "-e", "random", "-t", task, "-m", "bundled:sst2"]
        monkeypatch.setattr(sys, "argv", [*argv, *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        out, err = capsys.readouterr()
        assert (stop.value.code, out) == (1, "")
        assert err.startswith("Error: ") and err.count("\n") == 1
        return err.removeprefix("Error: ").strip()

    return run


def put(root: Path, *rows: dict[str, Any]) -> Path:
    path = root / "mini" / "test.jsonl"
    path.parent.mkdir()
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (
            {"id": "b", "sentence": "good film", "label": 1},
            "field 'text': expected a text that is not blank, found None "
            "(the row has sentence, not read)",
        ),
        (
            {"id": "b", "text": "good", "label": "maybe"},
            "field 'label': expected 0 to 1 or one of no, yes, found 'maybe'",
        ),
        (
            {"id": "b", "text": "good", "label": 1, "rationale": [[2, 9]]},
            "field 'rationale': expected spans [start, end) within 0 to 4, found [2, 9]",
        ),
        (GOOD, "field 'id': expected an id used once, found 'a'"),
    ],
    ids=["column", "label", "span", "id"],
)
def test_a_faulty_row(call: Call, tmp_path: Path, row: dict[str, Any], said: str) -> None:
    path = put(tmp_path, GOOD, row)
    assert call("--data", tmp_path) == f"{path}, line 2: {said}; fix the row"


def test_a_split_that_does_not_exist(call: Call, tmp_path: Path) -> None:
    put(tmp_path, GOOD)
    assert call("--data", tmp_path, "--split", "secret") == (
        "cannot read split 'secret' of task mini (folder: no split 'secret', it has test); "
        "choose one of test with --split"
    )


def test_a_gzip_cut_in_half(call: Call, tmp_path: Path) -> None:
    path = put(tmp_path, *({**GOOD, "id": str(n)} for n in range(500)))
    packed = gzip.compress(path.read_bytes())
    path.unlink()
    half = path.with_suffix(".jsonl.gz")
    half.write_bytes(packed[: len(packed) // 2])
    assert call("--data", tmp_path) == (
        f"cannot read {half} as JSON lines in UTF-8: Compressed file ended before the "
        "end-of-stream marker was reached; fetch it again"
    )


def test_a_column_the_hub_lacks(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = use_hub_cache(tmp_path, monkeypatch)
    put_hub(load_task("mini.toml"), cache)
    (tmp_path / "mini.toml").write_text(TASK.replace('"sentence"', '"body"'))
    assert call("--source", "hub") == (
        "owner/mini has no column 'body', it has sentence, label; fix hub.columns of task mini"
    )


def test_a_hub_that_hangs(call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It takes the connection; that it never answers is tried in data/sources/test_hub.py."""
    use_hub_cache(tmp_path, monkeypatch)
    answers = iter([True, False])
    monkeypatch.setattr(hub, "hub_reachable", lambda: next(answers))
    assert call("--source", "hub") == (
        "cannot load owner/mini at main from the hub (ConnectionError: the hub does not answer, "
        "and no copy is in the local cache); try again, or use another source: folder"
    )


@pytest.mark.parametrize("name", ["ace", "ere"])
def test_a_licensed_task_without_its_folder(call: Call, tmp_path: Path, name: str) -> None:
    get = f"licensed by the LDC: put your own {name}/train.jsonl, dev.jsonl and test.jsonl under"
    assert call(task=name) == (
        f"cannot read split 'test' of task {name} (folder: no data folder, give --data or set "
        f"FAITHBENCH_DATA; {get} --data); give --data"
    )
    assert call("--data", tmp_path, task=name) == (
        f"cannot read split 'test' of task {name} (folder: no file "
        f"{tmp_path / name / 'test.jsonl.gz'}; {get} --data); give --data"
    )
