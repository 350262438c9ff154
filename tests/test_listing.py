"""What `list` and `doctor` print, read back as tables."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from faithbench import data, listing
from faithbench.catalog import EXPLAINERS
from faithbench.listing import show_doctor, show_explainers, show_metrics, show_tasks
from faithbench.metrics import METRICS


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    # Wide enough that no cell folds: each line of output is then one row.
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.delenv("FAITHBENCH_DATA", raising=False)
    # Whatever this machine has: no accelerator, no network, nothing fetched before.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(data, "hub_reachable", lambda: False)
    monkeypatch.setattr(data, "dataset_cached", lambda *_: False)


def table(text: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in rows]


def test_tasks(capsys: pytest.CaptureFixture[str]) -> None:
    show_tasks()
    assert [
        "sst2",
        "SST-2: sentiment of film-review sentences",
        "classification",
        "2",
        "proxy",
        "folder, hub, bundled",
    ] in table(capsys.readouterr().out)


def test_explainers(capsys: pytest.CaptureFixture[str]) -> None:
    show_explainers()
    rows = table(capsys.readouterr().out)
    assert [row[0] for row in rows] == [*EXPLAINERS, "captum:<Class>"]
    assert ["random", "control", "Score each token with a random number."] in rows
    assert ["lrp-mask", "relevance"] in [row[:2] for row in rows]


def test_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    show_metrics()
    rows = table(capsys.readouterr().out)
    assert [row[0] for row in rows] == list(METRICS)
    facts = {row[0]: row[1:5] for row in rows}
    assert facts["aopc"] == ["faithfulness", "up", "-1..1", "1"]
    assert facts["lodds"] == ["faithfulness", "down", "-inf..inf", "1"]


def test_doctor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    show_doctor(tmp_path)
    said = dict(table(capsys.readouterr().out))
    assert said["device"] == f"cpu, {torch.get_num_threads()} threads"
    assert said["torch"] == version("torch") and said["faithbench"] == version("faithbench")
    assert said["extra bundled"] == said["extra heads"] == "installed"
    assert said["bundled"] == "yes"
    assert said["folder"] == f"no file {tmp_path / 'sst2' / 'test.jsonl.gz'}"
    assert "stanfordnlp/sst2 is not in the local cache" in said["hub"]


def test_doctor_finds_an_accelerator(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, name in ((torch.backends.mps, "mps"), (torch.cuda, "cuda")):
        monkeypatch.setattr(place, "is_available", lambda: True)
        show_doctor(None)
        assert dict(table(capsys.readouterr().out))["device"].startswith(f"{name}, ")


def test_doctor_names_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = {"spacy", "peft"}
    find_spec = listing.find_spec
    monkeypatch.setattr(listing, "find_spec", lambda m: None if m in absent else find_spec(m))
    monkeypatch.setattr(listing, "_PACKAGES", ("torch", "no-such-package"))
    show_doctor(None)
    said = dict(table(capsys.readouterr().out))
    assert said["no-such-package"] == "not installed"
    assert said["extra heads"] == "missing: pip install 'faithbench[heads]'"
    assert said["extra bundled"] == "missing: pip install 'faithbench[bundled]'"
    assert said["folder"] == "no data folder, give --data or set FAITHBENCH_DATA"
