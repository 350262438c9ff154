"""Measuring: a submission's scores go through the run that every explainer gets."""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.selection import find_explainers
from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.run.request import wanted_metrics
from faithbench.submissions import measure
from faithbench.submissions.entry import read_entry
from faithbench.submissions.faults import close
from faithbench.submissions.measure import Setup, load_setup, run_explainer, score_attributions
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.scaffold import new_submission
from tests.support.submissions import Copy, N, record_of, rows_of


def quiet(*_: object) -> None:
    pass


def test_a_model_is_loaded_once_for_all_submissions(small_setup: Setup) -> None:
    data = load_dataset(load_task("sst2"), source="bundled", limit=2)
    by_default, by_name = load_setup(data), load_setup(data, "bundled:sst2")
    assert by_default.model is by_name.model is small_setup.model
    assert by_default.session is not by_name.session
    assert str(by_default.model.device) == "cpu"
    assert [e.example.id for e in by_default.encodings] == [e.id for e in data.examples]


def test_scores_measured_again_have_the_values_of_a_run(
    tmp_path: Path, small_setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores of a built-in explainer, as if its code were untrusted: the values stay the same."""
    data, model = small_setup.data, small_setup.model
    metrics = wanted_metrics("all", data, several_seeds=False)
    job = Job(data, model, find_explainers("occlusion"), metrics, tmp_path / "results")
    (honest,) = run(job, quiet)
    scores = {row.id: (row.scores,) for row in honest.rows}
    asked: list[Any] = []

    def ask(*arguments: object, **options: object) -> object:
        asked.append((arguments, options))
        return scores, 1.5

    monkeypatch.setattr(measure, "ask_explainer", ask)
    folder = new_submission(tmp_path, "my-x", "plugin")
    outcome = run_explainer(folder, read_entry(folder), small_setup, Limits(), quiet, quiet)
    (((_, _, setup), options),) = asked
    assert setup is small_setup
    assert options["targets"] == [row.target for row in honest.rows]
    assert list(options["seeds"]) == [0, 1, 2]

    assert outcome.path == record_of(folder) and outcome.record == read(outcome.path)
    assert outcome.record.timing.seconds_total == 1.5
    assert outcome.record.explainer.package == "submission"
    for row, own in zip(read_rows(rows_of(folder)), honest.rows, strict=True):
        assert (row.id, row.scores) == (own.id, own.scores)
        assert row.curve == pytest.approx(own.curve, abs=1e-6)
        assert (row.forwards, row.values["max_sensitivity"]) == (None, None)
        # Rows keep 7 digits of a score, and inputs fall into other batches.
        for name, value in (own.values | {"max_sensitivity": None}).items():
            assert close(row.values[name], value, 1e-5), name


def test_a_new_record_takes_the_place_of_the_old_one(copy: Copy, small_setup: Setup) -> None:
    folder = copy()
    old = record_of(folder)
    path = folder / "scores" / "sst2.jsonl"
    path.write_text(path.read_text().replace("1.0", "1.5"))
    outcome = score_attributions(folder, read_entry(folder), small_setup, quiet)
    assert outcome.path.parent == old.parent and outcome.path.name != old.name
    assert sorted(path.name for path in old.parent.iterdir()) == [
        outcome.path.name,
        outcome.record.rows.file,
    ]
    assert outcome.record.task.n == N and outcome.record.seeds == (0,)
    assert outcome.record.timing.seconds_total is None


def test_a_record_that_cannot_be_written_leaves_the_old_one(
    copy: Copy, small_setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copy()
    before = record_of(folder).read_bytes()
    path = folder / "scores" / "sst2.jsonl"
    path.write_text(path.read_text().replace("1.0", "1.5"))

    def full(_path: Path, _data: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(measure, "replace_file", full)
    with pytest.raises(FaithbenchError, match=r"cannot be written to .*: No space left on"):
        score_attributions(folder, read_entry(folder), small_setup, quiet)
    assert record_of(folder).read_bytes() == before and rows_of(folder).exists()


def test_fewer_examples_never_take_the_place_of_more(copy: Copy, small_setup: Setup) -> None:
    folder = copy()
    before = record_of(folder).read_bytes()
    fewer = load_setup(load_dataset(load_task("sst2"), source="bundled", limit=N - 1))
    message = rf"has a record of {N} examples, which one of {N - 1} would replace; measure as many"
    with pytest.raises(FaithbenchError, match=message):
        score_attributions(folder, read_entry(folder), fewer, quiet)
    with pytest.raises(FaithbenchError, match=message):
        run_explainer(folder, read_entry(folder), fewer, Limits(), quiet, quiet)
    assert record_of(folder).read_bytes() == before
    measure.refuse_fewer(folder, small_setup)
    record_of(folder).write_text("{")
    measure.refuse_fewer(folder, fewer)


def test_several_seeds_give_several_values(measured_under_seeds: Path) -> None:
    record = read(record_of(measured_under_seeds))
    assert record.seeds == (0, 1, 2) and "seed_agreement" in record.metrics
    for row in read_rows(rows_of(measured_under_seeds)):
        assert len(row.more_scores) == 2
        assert row.values["aopc"] == pytest.approx(sum(row.by_seed["aopc"]) / 3, abs=2e-9)
        assert "seed_agreement" not in row.by_seed
