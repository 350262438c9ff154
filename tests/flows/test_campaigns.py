"""Small versions of the campaigns of benchmarks/campaigns, and that they see what goes wrong."""

from __future__ import annotations

import resource
import shutil
import sys
from pathlib import Path

import pytest
import torch

from faithbench.records.passed import PassedCheck, content_digest, write_passed
from faithbench.training.saving import TrainingState, save_checkpoint
from tests.support.paths import ROOT
from tests.support.stores import store

if not (ROOT / "benchmarks" / "campaigns").is_dir():
    pytest.skip("benchmarks are not part of a source distribution", allow_module_level=True)

from benchmarks.campaigns import faults, flips, fuzz, hostile, kills, readers
from benchmarks.campaigns.readers import Reader, Reading
from benchmarks.campaigns.trials import Campaign, Ending, differences, run_command

posix = pytest.mark.skipif(sys.platform == "win32", reason="forks")
PUBLISH = ["leaderboard", "publish", "--results", "results", "--records", "records"]


@pytest.fixture
def publishing(tmp_path: Path) -> kills.Target:
    """A command that is quick, and writes two files in three steps each."""
    for name in ("random-1", "attention-1"):
        store(tmp_path / "made" / "results" / "sst2", name, {"aopc": [0.1, 0.2]})

    def prepare(folder: Path) -> None:
        shutil.copytree(tmp_path / "made", folder, dirs_exist_ok=True)

    return kills.Target("publish", prepare, PUBLISH, "records")


@posix
def test_killed_at_every_few_steps(publishing: kills.Target, tmp_path: Path) -> None:
    campaign = Campaign("kills", tmp_path / "log.jsonl")
    kills.run_target(publishing, tmp_path / "trials", campaign, 1, 6)
    assert campaign.findings == [] and campaign.total == 7
    again = Campaign("kills", tmp_path / "log.jsonl")
    kills.run_target(publishing, tmp_path / "trials", again, 1, 6)
    assert again.total == 7, "a campaign that was stopped continues"


@posix
def test_what_a_kill_spoils_is_seen(publishing: kills.Target, tmp_path: Path) -> None:
    whole = kills.undisturbed(publishing, tmp_path / "trials")
    assert any(step.startswith("write records") for step in whole.steps)
    spoiled = kills.Undisturbed(whole.files | {"work/x": b""}, whole.steps, whole.seconds)
    problem = kills.kill_at_step(publishing, tmp_path / "trials", spoiled, 3)
    assert problem == "missing: work/x"


@posix
def test_a_full_disk_and_equal_runs(publishing: kills.Target, tmp_path: Path) -> None:
    campaign = Campaign("faults", tmp_path / "log.jsonl", faults.FINE)
    whole = kills.undisturbed(publishing, tmp_path / "trials")
    _, around, inside = next(faults.faults(10, "records"))
    fault = ("files of 0 bytes at most", around, inside)
    faults.try_fault(campaign, publishing, tmp_path / "trials", whole, fault)
    faults.try_at_once(campaign, publishing, tmp_path / "trials", whole, 2, 0)
    assert campaign.findings == [] and campaign.total == 2
    assert campaign.counts["files of 0 bytes at most"]["one line"] == 1


def files(folder: Path) -> list[Reader]:
    """Return kinds of files that are made at once, copied or written."""
    bundled = ROOT / "faithbench" / "data" / "bundled" / "sst2"
    for name in ("adapter_config.json", "adapter_model.safetensors", "card.json", "heads.json"):
        shutil.copy(bundled / name, folder / name)
    parameters = {"w": torch.nn.Parameter(torch.arange(6.0))}
    optimizer = torch.optim.AdamW(parameters.values())
    save_checkpoint(folder, parameters, optimizer, TrainingState((0.5,), 3))
    shutil.copy(ROOT / "tasks" / "sst2.toml", folder / "sst2.toml")
    return [
        Reader("settings", folder / "adapter_config.json", lambda: readers.read_model(folder)),
        Reader("heads", folder / "heads.json", lambda: readers.read_heads(folder / "heads.json")),
        Reader("checkpoint", folder / "checkpoint.safetensors",
               lambda: readers.read_checkpoint(folder)),
        Reader("task", folder / "sst2.toml", lambda: readers.read_task(folder / "sst2.toml"),
               by_hand=True),
    ]  # fmt: skip


def test_flipped_bits_change_no_number(tmp_path: Path) -> None:
    campaign = Campaign("flips", fine=flips.FINE)
    state = torch.get_rng_state()
    flips.run_flips(campaign, files(tmp_path), 25, 0)
    torch.set_rng_state(state)
    assert campaign.findings == [] and campaign.total == 100
    assert campaign.counts["checkpoint"]["refused"] > 20


def test_a_number_that_changes_in_silence_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "number.txt"
    path.write_bytes(b"1234567890" * 9)
    campaign = Campaign("flips", fine=flips.FINE)
    reader = Reader("number", path, lambda: Reading(path.read_bytes()))
    flips.run_flips(campaign, [reader], 5, 0)
    assert campaign.counts["number"]["another number"] == 5 == len(campaign.findings)
    assert path.read_bytes() == b"1234567890" * 9, "the file is as it was"


def test_loaders_refuse_in_one_line(tmp_path: Path) -> None:
    campaign = Campaign("fuzz", fine=fuzz.FINE)
    fuzz.run_fuzz(campaign, files(tmp_path), 30, 0)
    assert campaign.findings == [] and campaign.total == 120
    assert {reader for reader, counts in campaign.counts.items() if counts["refused"]} == {
        "settings", "heads", "checkpoint", "task",
    }  # fmt: skip


def test_a_traceback_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "number.json"
    path.write_text("[1, 2]")
    campaign = Campaign("fuzz", fine=fuzz.FINE)
    fuzz.run_fuzz(campaign, [Reader("number", path, lambda: Reading(int(path.read_text())))], 5, 0)
    assert campaign.counts["number"]["traceback"] == 5


def test_pairs_of_changes_and_bytes(scored: Path, tmp_path: Path) -> None:
    campaign = Campaign("hostile", fine=hostile.FINE)
    hostile.check_pairs(campaign, scored, tmp_path, 4)
    assert campaign.findings == [] and campaign.total == 8


def test_what_is_shown_unchecked_is_seen(scored: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(scored, tmp_path / "all" / scored.name))
    assert not hostile._is_shown(scored, folder, tmp_path), "it is the honest one"
    (folder / "README.md").write_text("other")
    assert not hostile._is_shown(scored, folder, tmp_path), "it is left out"
    check = PassedCheck(content=content_digest(folder), records=())
    write_passed(tmp_path / "passed.json", {folder.name: check})
    assert hostile._is_shown(scored, folder, tmp_path)


@posix
def test_a_command_without_memory_is_told_from_one_line(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    ending = run_command(["run", "-e", "random", "-t", "nothing"], folder)
    assert ending.one_line and ending.err.startswith("Error: no task named 'nothing'")
    assert not Ending(1, "", "Traceback (most recent call last):\nError: x").one_line
    assert differences({"a": b"1", "c": b""}, {"a": b"2", "b": b""}) == [
        "missing: b", "left over: c", "differs: a",
    ]  # fmt: skip
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY
