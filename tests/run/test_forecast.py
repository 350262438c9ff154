"""What a dry run tells is what the run then takes, as far as it can be counted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.types import quiet
from faithbench.run import forecast as module
from faithbench.run.backends import WORTH_FORKING
from faithbench.run.backends.processes import Processes
from faithbench.run.backends.serial import Serial
from faithbench.run.forecast import Forecast, forecast
from faithbench.run.job import Job
from faithbench.run.loop import run
from tests.support.commands import Call
from tests.support.jobs import make_job, watched_sessions


@pytest.fixture
def job(tmp_path: Path, tiny_model: Any) -> Job:
    return make_job(tmp_path, tiny_model())


def test_rows_and_passes_are_those_of_the_run(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CALIBRATION", 1e6)  # so that every example is counted
    told = forecast(job, Serial(threads=1), quiet)
    assert not list(job.results.rglob("*")), "nothing is written"
    with watched_sessions() as sessions:
        outcomes = run(job, quiet, Serial(threads=1))
    assert (told.examples, told.explainers, told.workers) == (13, 3, 1)
    # The run counts its warm-up too, and finds a few rows that two examples share.
    assert told.rows == pytest.approx(sessions[0].engine.distinct, rel=0.05)
    explaining = sum(row.forwards + 2 * row.backwards for o in outcomes for row in o.rows)
    assert told.passes > explaining
    assert told.seconds > 0 and told.peak_bytes is not None and told.peak_bytes > 2**27


def test_a_short_trial_stands_for_all_examples(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    sparing = Processes(2, least_work=WORTH_FORKING)
    monkeypatch.setattr(module, "CALIBRATION", 0.0)
    told = forecast(job, sparing, quiet)
    monkeypatch.setattr(module, "CALIBRATION", 1e6)
    whole = forecast(job, sparing, quiet)
    assert told.workers == 1, "so little work stays in one process"
    assert 0.3 * whole.rows < told.rows < 3 * whole.rows
    assert forecast(job, Processes(2), quiet).workers == 2


def test_long_texts_are_expected_to_take_more_memory(job: Job) -> None:
    from faithbench.models.encoding import encode
    from faithbench.run.chunk import cut_chunks

    encodings = [encode(job.model, example) for example in job.data.examples]
    chunks = cut_chunks(replace(job, chunk=1), encodings, [1.0] * 3, {})
    by_length = sorted(encodings, key=lambda e: len(e.ids))
    growth = [module._growth(job, chunks, [sample]) for sample in (by_length[0], by_length[-1])]
    assert growth[1] == 1.0
    assert growth[0] > len(by_length[-1].ids) / len(by_length[0].ids)


def test_it_is_told_in_one_line() -> None:
    told = Forecast(200, 4, 12345.6, 67890.1, 125.0, 2, 1.5 * 2**30)
    assert str(told) == (
        "200 examples x 4 explainers: 12,346 erased rows, 67,890 forward equivalents, about 2 min "
        "with 2 processes, peak memory 1.5 GB"
    )


@pytest.mark.slow
def test_the_commands_tell_and_stop(call: Call, tmp_path: Path) -> None:
    words = ("--explainer", "random,attention", "--task", "sst2", "--limit", "3")
    said = call("run", *words, "--metrics", "aopc", "--dry-run")
    assert said.code == 0
    assert said.out.splitlines()[-1].startswith("3 examples x 3 explainers: ")
    assert not list((tmp_path / "results").rglob("*.jsonl"))
    (tmp_path / "plan.toml").write_text(
        '[[runs]]\nname = "first"\ntask = "sst2"\nlimit = 3\nexplainers = ["random"]\n'
        'metrics = "aopc"\n'
    )
    said = call("leaderboard", "run", "--plan", "plan.toml", "--dry-run")
    assert said.code == 0
    last = said.out.splitlines()[-1]
    assert last.startswith("all runs: ") and "forward equivalents" in " ".join(said.out.split())
    assert not list(tmp_path.rglob("*.rows.jsonl"))
