"""What `list` and `doctor` print, read back as tables."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
import torch

from faithbench.cli import lists
from faithbench.cli.lists import (
    doctor,
    list_explainers,
    list_metrics,
    list_objectives,
    list_tasks,
)
from faithbench.core.errors import FaithbenchError
from faithbench.data.sources import hub
from faithbench.data.tasks import task_names
from faithbench.explainers.registry import EXPLAINERS
from faithbench.metrics.kinds import FAMILIES, Trained
from faithbench.metrics.registry import METRICS
from faithbench.models import model as models
from faithbench.models.model import Model
from faithbench.run import device_benchmark


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    # Wide enough that no cell folds: each line of output is then one row.
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.delenv("FAITHBENCH_DATA", raising=False)
    # Whatever this machine has: no accelerator, no network, nothing fetched before.
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(hub, "hub_reachable", lambda: False)
    monkeypatch.setattr(hub, "dataset_cached", lambda *_: False)


def table(text: str) -> list[list[str]]:
    rows = [line for line in text.splitlines() if line.startswith("│")]
    return [[cell.strip() for cell in line.split("│")[1:-1]] for line in rows]


def test_tasks(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    list_tasks()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.strip()}
    assert set(task_names()) < set(rows)
    assert rows["name"][-3:] == ["folder", "hub", "bundled"]
    assert rows["sst2"] == ["classification,", "2", "6920/872/1821", "proxy", "no", "no", "yes"]
    assert rows["mnli"] == ["pair,", "3", "5908/932/2975", "none", "no", "no", "-"]
    assert rows["qqp"] == ["pair,", "2", "363846/-/40430", "none", "-", "no", "-"]
    assert rows["ace"] == ["classification,", "2", "-/-/-", "proxy", "no", "-", "-"]


def test_tasks_of_a_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "cola").mkdir()
    (tmp_path / "cola" / "dev.jsonl").write_text("{}")
    list_tasks(tmp_path)
    rows = {line.split()[0]: line.split()[-3:] for line in capsys.readouterr().out.splitlines()[2:]}
    assert rows["cola"] == ["yes", "no", "-"] and rows["yelp"] == ["no", "no", "-"]
    with pytest.raises(FaithbenchError, match=r"no folder .*nowhere; check --data"):
        list_tasks(tmp_path / "nowhere")


def test_explainers(capsys: pytest.CaptureFixture[str]) -> None:
    list_explainers()
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    names = [line.split()[0] for line in lines if line.split()]
    families = list(dict.fromkeys(listed.family for listed in EXPLAINERS.values()))
    listed = [name for name in names if name in EXPLAINERS or name == "captum:<Class>"]
    # The family of attention has the name of its first member.
    assert [name for i, name in enumerate(listed) if name not in listed[:i]] == [
        *EXPLAINERS, "captum:<Class>",
    ]  # fmt: skip
    assert [line for line in lines if line in families] == families
    assert "random - Score each token with a random number." in lines
    at = lines.index("integrated-gradients steps=50 Integrate the gradient along the line from a "
                     "baseline to the input.")  # fmt: skip
    assert lines[at + 1] == "baseline=pad"


def test_explainers_fit_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    list_explainers()
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80 and not any("…" in line for line in lines)


def test_metrics(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    list_metrics()
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) <= 80
    first = {line.split()[0]: line.split()[1:3] for line in lines if line.strip()}
    assert first["aopc"] == ["up", "-1..1"]
    assert first["lodds"] == ["down", "any"]
    assert first["fi_entropy"] == ["-", "0..1"]
    text = " ".join(" ".join(lines).split())
    assert {name for name in METRICS if ":" not in name} <= set(first)
    trained = [m for m in METRICS.values() if isinstance(m, Trained)]
    requested = sum(m.opt_in for m in METRICS.values()) - len(trained)
    assert text.count("Runs if it is named.") == requested
    assert all(f"Made by `{m.command}`." in text for m in trained) and len(trained) == 2
    headings = [line.strip() for line in lines if line.strip() in FAMILIES]
    assert headings == list(FAMILIES)


def test_doctor(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    doctor(tmp_path)
    out = capsys.readouterr().out
    cells, plain = dict(table(out)), [line for line in out.splitlines() if line.strip()]
    assert cells["device"] == f"cpu, {torch.get_num_threads()} threads"
    assert cells["torch"] == version("torch") and cells["faithbench"] == version("faithbench")
    assert cells["extra bundled"] == cells["extra heads"] == "installed"
    assert any(line.split()[0] == "sst2" and line.split()[-1] == "yes" for line in plain)
    # The first task of those that have the source, and how many more.
    lost = f"no file {tmp_path / 'ace' / 'test.jsonl.gz'}; licensed by the LDC"
    assert any(line.startswith(f"no folder data for ace: {lost}") for line in plain)
    assert any("no hub data for agnews: the hub is not reachable" in line for line in plain)


def test_doctor_finds_an_accelerator(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for backend, name in ((torch.backends.mps, "mps"), (torch.cuda, "cuda")):
        monkeypatch.setattr(backend, "is_available", lambda: True)
        doctor(None)
        assert dict(table(capsys.readouterr().out))["device"].startswith(f"{name}, ")


def test_doctor_measures_the_device_in_one_line(
    capsys: pytest.CaptureFixture[str], tiny_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def load(name: str, *, labels: tuple[str, ...], device: str) -> Model:
        asked.append((name, labels, device))
        return tiny_model("bert", 2, torch.float32)

    monkeypatch.setattr(models, "load_model", load)
    monkeypatch.setattr(device_benchmark, "gemm_rate", lambda device: 5e9)
    doctor(None, benchmark=True, device="cpu")
    (line,) = capsys.readouterr().out.splitlines()
    assert "; GEMM 5 GFLOP/s; " in line and line.endswith(" operations a pass")
    assert asked == [("bundled:sst2", ("negative", "positive"), "cpu")]


def test_doctor_names_what_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = {"spacy", "peft"}
    find_spec = lists.find_spec
    monkeypatch.setattr(lists, "find_spec", lambda m: None if m in absent else find_spec(m))
    monkeypatch.setattr(lists, "_PACKAGES", ("torch", "no-such-package"))
    doctor(None)
    out = capsys.readouterr().out
    cells = dict(table(out))
    assert cells["no-such-package"] == "not installed"
    assert cells["extra heads"] == "missing: pip install 'faithbench[heads]'"
    assert cells["extra bundled"] == "missing: pip install 'faithbench[bundled]'"
    assert "no folder data for ace: no data folder, give --data or set FAITHBENCH_DATA" in out


def test_objectives_are_listed_with_their_defaults(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    list_objectives()
    text = capsys.readouterr().out
    assert max(map(len, text.splitlines())) <= 80
    words = " ".join(text.split())
    assert "saloss salience=textrank" in words and "weight=0.001" in words
    assert "cross-entropy - Minimise the mean cross-entropy" in words
    assert "neutral others=false Teach that a text without its rationale is" in words
