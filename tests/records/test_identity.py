"""The identity of a record: the same from the job that makes it and from the file it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.data.dataset import load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.records.identity import identity_of, place_of
from faithbench.run.job import Cell, Job
from faithbench.run.loop import run
from tests.support.builders import ROWS, make_task, put


@pytest.fixture(scope="module")
def written(tmp_path_factory: Any, tiny_model: Any) -> Any:
    place = tmp_path_factory.mktemp("identity")
    put(place, ROWS)
    job = Job(
        data=load_dataset(make_task(), folder=place),
        model=tiny_model(),
        explainers=find_explainers("attention"),
        metrics=find_metrics("all", ["rationale"]),
        results=place / "results",
    )
    (outcome,) = run(job, lambda *_: None)
    return Cell(job, job.explainers[0]), outcome


def test_a_record_says_its_own_name(written: Any) -> None:
    cell, outcome = written
    digest = identity_of(outcome.record, outcome.rows).digest
    assert digest == cell.identity
    place = place_of(outcome.record, "attention", digest)
    assert cell.job.results / f"{place}.json" == outcome.path


def test_another_explainer_or_row_is_another_name(written: Any) -> None:
    _, outcome = written
    digest = identity_of(outcome.record, outcome.rows).digest
    assert identity_of(outcome.record, outcome.rows[1:]).digest != digest
    facts = outcome.record.explainer.model_copy(update={"assets": {"explainer.py": "0"}})
    other = outcome.record.model_copy(update={"explainer": facts})
    assert identity_of(other, outcome.rows).digest != digest


def test_a_place_has_no_way_out_of_its_folder(written: Any) -> None:
    _, outcome = written
    model = outcome.record.model.model_copy(update={"name": "../../etc/passwd"})
    place = place_of(outcome.record.model_copy(update={"model": model}), "../x", "0" * 64)
    assert ".." not in place.parts
    assert not Path(place).is_absolute()
    assert len(place.parts) == 3
