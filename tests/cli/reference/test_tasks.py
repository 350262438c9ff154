"""The card of a task, as a person sees it in 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.reference.tasks import print_task
from faithbench.core.papers import paper_of
from faithbench.data.dataset import load_dataset
from faithbench.data.sources import hub
from faithbench.data.tasks import load_task, task_names
from tests.support.tasks import put_folder

SHORT = """\
name = "shop"
version = 1
title = "Shop reviews"
kind = "classification"
labels = ["negative", "positive"]
rationale = "human"
[folder]
name = "shop"
splits = { test = "test" }
[models]
folder = { name = "bundled:sst2" }
"""


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("FAITHBENCH_DATA", raising=False)
    monkeypatch.setattr(hub, "hub_reachable", lambda: False)
    monkeypatch.setattr(hub, "dataset_cached", lambda *_: False)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """Return what was printed, having checked that it fits, with folded lines joined."""
    out = capsys.readouterr().out
    assert max(len(line) for line in out.splitlines()) <= 80
    return " ".join(out.split())


@pytest.mark.parametrize("name", task_names())
def test_every_card_fits(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_task(name)
    out = said(capsys)
    task = load_task(name)
    assert out.startswith(f"{name}: {task.title} kind {task.kind}, version 1 labels ")
    assert task.papers
    for paper in map(paper_of, task.papers):
        assert paper.reference in out and f"{{{paper.key}, author = " in out


def test_three_rows_of_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put_folder(load_task("squad"), tmp_path)
    print_task("squad", tmp_path)
    out = said(capsys)
    assert "cut dev_full by article: train 66%, dev 14%, test 20%" in out
    assert "revision 7b6d24c440a36b6815f21b70d25016731768db1f columns id = id" in out
    assert "model csarron/bert-base-uncased-squad-v1 (unpinned)" in out
    rows = out.partition("three rows (folder, test, rationale none)")[2]
    assert rows.count("text_b Q? answers Row") == 3


def test_what_is_not_pinned_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    print_task("cbt-ne")
    out = said(capsys)
    assert "revision main (unpinned)" in out
    assert "no rows to show: cannot read split 'test' of task cbt-ne (folder: no data" in out
    assert "hub: the hub is not reachable" in out
    print_task("multirc")
    assert "revision refs/convert/parquet (unpinned)" in said(capsys)


def test_a_task_of_eleven_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(SHORT.splitlines()) <= 15
    (tmp_path / "shop.toml").write_text(SHORT)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "test.jsonl").write_text(
        '{"id": "1", "text": "Broke\\u0007 at once, [red]bad[/red].", "label": "negative",'
        ' "rationale": [[0, 5]]}\n'
        f'{{"id": "2", "text": "{"fine " * 100}", "label": 1}}\n'
    )
    path = str(tmp_path / "shop.toml")
    print_task(path, tmp_path)
    out = said(capsys)
    assert "licence not stated citation not stated" in out
    assert "1: negative text Broke at once, [red]bad[/red]. rationale Broke" in out
    assert "2: positive text fine fine" in out and out.endswith("fine f ...")
    found = load_dataset(load_task(path), folder=tmp_path)
    assert [example.label for example in found.examples] == [0, 1]
