"""Cells of the study of sparse attention, read from records that are made up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import quiet
from faithbench.studies.reproduction.measures import study as module
from faithbench.studies.reproduction.measures.networks import Networks
from faithbench.studies.reproduction.measures.study import study_value
from faithbench.studies.reproduction.recipe import Part
from faithbench.studies.reproduction.values import Measured, Missing
from faithbench.studies.sparse_attention import plan
from faithbench.studies.sparse_attention.plan import StudyRequest, TaskPlan
from faithbench.studies.sparse_attention.record import StudyRecord, write_record
from tests.studies.reproduction import (
    HEAD,
    clock_of,
    put_marked_task,
    recipe_of,
    refuse,
    request_of,
)
from tests.studies.sparse_attention.made import STRENGTHS, made_record

TABLE = """\
[[items]]
id = "table-1"
title = "A study"
cells = {{ measure = "study", task = "{task}", arch = "bilstm" }}
rows = [{{ name = "A", projection = "softmax" }}]
columns = [{{ name = "x", metric = "own_share" }}]
printed = [[0.5]]
"""


@pytest.fixture
def networks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Networks:
    """A recipe that asks for a study of four projections, with two seeds each."""
    projections = tuple(STRENGTHS)
    monkeypatch.setattr(plan, "OTHERS", TaskPlan(1, 8, 12, projections=projections))
    task = put_marked_task(tmp_path)
    recipe = recipe_of(tmp_path, HEAD, TABLE.format(task=task))
    request = request_of(recipe, tmp_path, folder=tmp_path, seeds=2)
    return Networks(request, clock_of(request), quiet)


def record_of(projection: str, seed: int, **means: float) -> StudyRecord:
    """Return a made record with weights of its own."""
    record = made_record(projection, STRENGTHS[projection], seed=seed, **means)
    number = 2 * list(STRENGTHS).index(projection) + seed
    network = record.network.model_copy(update={"weights_sha256": f"{number:02}" * 32})
    return record.model_copy(update={"network": network})


@pytest.fixture
def records(networks: Networks, monkeypatch: pytest.MonkeyPatch) -> dict[str, StudyRecord]:
    """All records are there, and the study does not run."""
    monkeypatch.setattr(module, "study_sparse_attention", refuse)
    made = {}
    for projection in STRENGTHS:
        for seed in (0, 1):
            record = record_of(projection, seed)
            write_record(record, networks.request.results / "sparse-attention" / "records")
            made[f"{projection} {seed}"] = record
    return made


def value_of(networks: Networks, **changes: Any) -> Measured | Missing:
    (line,) = networks.request.recipe.items
    part = Part(measure="study", task=line.cells.task, arch="bilstm", **changes)
    return study_value(networks, part)


def test_a_measure_is_the_mean_over_the_seeds_of_a_projection(
    networks: Networks, records: dict[str, StudyRecord]
) -> None:
    value = value_of(networks, projection="sparsemax", metric="own_share")
    assert isinstance(value, Measured)
    columns = [records[f"sparsemax {seed}"].values["own_share"] for seed in (0, 1)]
    means = [(a + b) / 2 for a, b in zip(*columns, strict=True) if a is not None and b is not None]
    assert list(value.values.values()) == pytest.approx(means) and value.n == 12
    assert list(value.values) == [f"t{n}" for n in range(12)]
    assert value.by_seed == pytest.approx([sum(map(float, c)) / 12 for c in columns])  # type: ignore[arg-type]
    assert 0.18 < value.mean < 0.22, "made to be about .2"
    scaled = value_of(networks, projection="sparsemax", metric="own_share", scale=100)
    assert isinstance(scaled, Measured) and scaled.mean == pytest.approx(100 * value.mean)


def test_a_cell_has_the_digests_of_its_own_networks(
    networks: Networks, records: dict[str, StudyRecord]
) -> None:
    value = value_of(networks, projection="sparsemax", metric="own_share")
    assert isinstance(value, Measured)
    expected = [records[f"sparsemax {seed}"].network for seed in (0, 1)]
    assert [ref.sha256 for ref in value.records] == [one.weights_sha256 for one in expected]
    assert [ref.path for ref in value.records] == [
        f"sparse-attention/records/{one.name}.json" for one in expected
    ]


def test_a_trend_is_over_lambda_within_each_text(
    networks: Networks, records: dict[str, StudyRecord]
) -> None:
    """Made to fall by .2 per unit of lambda, from -1 to .9, with .02 of noise."""
    falls = value_of(networks, projection="all", metric="trend:tau_gradient_x")
    rises = value_of(networks, projection="all", metric="trend:share_gradient_x")
    assert isinstance(falls, Measured) and isinstance(rises, Measured)
    assert (falls.mean, rises.mean) == (-1.0, 1.0) and falls.n == 12
    assert len(falls.records) == 8, "softmax has no lambda; its records are named with the others"


def test_what_the_study_lacks_is_missing(
    networks: Networks, records: dict[str, StudyRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = value_of(networks, projection="entmax", metric="own_share")
    assert isinstance(missing, Missing)
    assert missing.why.startswith("the study has no entmax network of ")
    with pytest.raises(FaithbenchError, match="measures no 'own_shares'"):
        value_of(networks, projection="softmax", metric="own_shares")
    one = TaskPlan(1, 8, 12, projections=("softmax", "sparsemax"))
    monkeypatch.setattr(plan, "OTHERS", one)
    assert value_of(networks, projection="all", metric="trend:own_share") == Missing(
        "fewer than two values of lambda"
    )


def test_the_study_runs_if_a_record_is_missing(
    networks: Networks, records: dict[str, StudyRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = networks.request.results / "sparse-attention" / "records"
    (folder / "mini-bilstm-softmax-seed1.json").unlink()
    asked: list[StudyRequest] = []

    def run(request: StudyRequest, _progress: object) -> None:
        asked.append(request)
        write_record(records["softmax 1"], request.records)

    monkeypatch.setattr(module, "study_sparse_attention", run)
    value = value_of(networks, projection="softmax", metric="own_share")
    assert isinstance(value, Measured) and len(value.by_seed) == 2
    (request,) = asked
    assert (request.seeds, request.quick, request.jobs) == (2, False, 1)
    assert request.out == networks.request.results / "sparse-attention"
    assert request.folder == networks.request.folder
    assert request.tasks == (networks.request.recipe.items[0].cells.task,)
    assert "study sparse-attention" in networks.clock.seconds
    value_of(networks, projection="sparsemax", metric="own_share")
    assert len(asked) == 1


def test_a_study_that_is_there_has_the_time_that_it_took(
    networks: Networks, records: dict[str, StudyRecord]
) -> None:
    """So that a second call writes the same page."""
    networks.clock.seconds["study sparse-attention"] = 60.0
    value_of(networks, projection="sparsemax", metric="own_share")
    assert networks.clock.spent() == 60.0
