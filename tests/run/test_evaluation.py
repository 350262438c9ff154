"""The result of an evaluation: records by label, a table, tests, and a frame."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.run.evaluation import Evaluation
from faithbench.run.loop import run
from tests.support.jobs import make_job, quiet


@pytest.fixture(scope="module")
def evaluation(tmp_path_factory: Any, tiny_model: Any) -> Evaluation:
    job = make_job(tmp_path_factory.mktemp("evaluation"), tiny_model())
    return Evaluation(job, tuple(run(job, quiet)), job.results)


def test_outcomes_are_found_by_label(evaluation: Evaluation) -> None:
    assert evaluation.labels == ("random", "attention", "lrp-mask:mask=ones")
    outcome = evaluation["attention"]
    assert outcome.record == evaluation.records["attention"]
    assert outcome.rows[0].values["aopc"] == pytest.approx(
        evaluation["attention"].rows[0].values["aopc"]
    )
    with pytest.raises((FaithbenchError, KeyError), match="atention"):
        evaluation["atention"]


def test_the_table_has_the_means_of_the_records(evaluation: Evaluation) -> None:
    mean = evaluation.records["attention"].metrics["aopc"].mean
    assert f"{mean:.3f}" in repr(evaluation.table())
    assert f"{mean:.3f}" in evaluation.table()._repr_html_()


def test_a_comparison_tests_all_pairs(evaluation: Evaluation) -> None:
    comparison = evaluation.compare("aopc")
    assert set(comparison.summaries) == set(evaluation.labels)
    mean, *_ = comparison.summaries["random"]
    assert mean == pytest.approx(evaluation.records["random"].metrics["aopc"].mean)


def test_a_frame_needs_pandas(evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = evaluation.to_frame()
    assert len(frame) >= 13
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(FaithbenchError, match="pandas"):
        evaluation.to_frame()


def test_a_job_is_behind_it(evaluation: Evaluation, tmp_path: Path) -> None:
    assert len(evaluation.data.examples) == 13
    assert evaluation.model.labels == ("class 0", "class 1")
