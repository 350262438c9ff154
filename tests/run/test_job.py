"""What a job samples, and where the rows of its cells grow."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.metrics.registry import find_metrics
from faithbench.models.encoding import encode
from faithbench.run.chunk import (
    CHUNK_WORK,
    ERASED_ROWS,
    FEWEST_CHUNKS,
    LEAST_CHUNK_WORK,
    cut_chunks,
)
from faithbench.run.job import Job, partial_path, probed_ids, sample_by_length
from tests.support.jobs import make_job


@pytest.fixture
def job(tmp_path: Path, tiny_model: Any) -> Job:
    return replace(make_job(tmp_path, tiny_model()), chunk=4)


def encoded(job: Job) -> list[Any]:
    return [encode(job.model, example) for example in job.data.examples]


def test_a_sample_is_spread_over_all_lengths(job: Job) -> None:
    encodings = encoded(job)
    lengths = sorted(len(e.ids) for e in encodings)
    sample = sample_by_length(encodings, 10)
    assert len(sample) == 6, "a quarter of 13, but six at least"
    assert [len(sample[0].ids), len(sample[-1].ids)] == [lengths[0], lengths[-1]]
    assert len(sample_by_length(encodings, 3)) == 3
    assert sample_by_length(encodings[:2]) == sorted(encodings[:2], key=lambda e: len(e.ids))


def test_examples_are_probed_only_for_a_metric_that_asks(job: Job) -> None:
    encodings = encoded(job)
    assert probed_ids(job, encodings) == frozenset()
    asking = replace(job, metrics=find_metrics("aopc,max_sensitivity"))
    assert len(probed_ids(asking, encodings)) == 6


def test_unfinished_rows_have_a_name_of_their_own(job: Job) -> None:
    first, second = job.cells[:2]
    path = partial_path(first)
    assert path.parent == first.folder / ".partial"
    assert path.name.startswith(first.stem) and first.key[:8] in path.name
    assert partial_path(second) != path


def test_rows_of_a_changed_model_are_not_continued(job: Job) -> None:
    """The same weights under another configuration are another network."""
    changed = replace(job, model=replace(job.model, sha256="other"))
    assert changed.model.weights_sha256 == job.model.weights_sha256
    for was, now in zip(job.cells, changed.cells, strict=True):
        assert partial_path(was) != partial_path(now) and was.key != now.key


def test_rows_of_a_compiled_pass_are_a_record_s_but_are_not_continued(job: Job) -> None:
    compiled = replace(job, model=replace(job.model, compiled=True))
    for was, now in zip(job.cells, compiled.cells, strict=True):
        assert was.identity == now.identity and was.key != now.key


def test_cheap_jobs_are_cut_by_number_alone(job: Job) -> None:
    chunks = cut_chunks(job, encoded(job), [1.0, 3.0, 6.0], {})
    assert [len(chunk.encodings) for chunk in chunks] == [1, 4, 4, 4]
    lengths = [len(e.ids) for chunk in reversed(chunks) for e in chunk.encodings]
    assert lengths == sorted(lengths), "examples of like length come together, the longest first"


def test_rows_that_no_metric_asks_for_are_not_promised(job: Job) -> None:
    costs = [1.0, 3.0, 6.0]
    seeds = [len(cell.seeds) for cell in job.cells]
    own = 13 * sum(n * cost for n, cost in zip(seeds, costs, strict=True))
    asked, bare = (
        cut_chunks(one, encoded(job), costs, {}) for one in (job, replace(job, metrics=()))
    )
    assert [c.work for c in asked] == [c.work for c in bare], "they are cut alike"
    assert sum(c.rows for c in bare) == own
    assert sum(c.rows for c in asked) == own + 13 * sum(seeds) * ERASED_ROWS


def test_costly_jobs_are_cut_by_work(job: Job) -> None:
    encodings = encoded(job)
    network = job.model.network
    weights = sum(p.numel() for p in network.base_model.parameters())
    weights -= network.get_input_embeddings().weight.numel()
    shortest = min(len(e.ids) for e in encodings)
    # So costly that two of the shortest texts are too much for one chunk.
    cost = CHUNK_WORK / weights / shortest
    assert sum(len(e.ids) for e in encodings) * cost * weights > FEWEST_CHUNKS * CHUNK_WORK
    chunks = cut_chunks(job, encodings, [cost, 0.0, 0.0], {})
    assert [len(chunk.encodings) for chunk in chunks] == [1] * 13
    halves = cut_chunks(job, encodings, [cost / 2.5, 0.0, 0.0], {})
    assert 13 > len(halves) > 4
    again = cut_chunks(job, list(reversed(encodings)), [cost / 2.5, 0.0, 0.0], {})
    ids = [[e.example.id for e in chunk.encodings] for chunk in halves]
    assert ids == [[e.example.id for e in chunk.encodings] for chunk in again]


def test_a_job_of_some_seconds_has_chunks_for_many_workers(job: Job) -> None:
    short = [e for e in encoded(job) if len(e.ids) < 20] * 20
    network = job.model.network
    weights = sum(p.numel() for p in network.base_model.parameters())
    weights -= network.get_input_embeddings().weight.numel()
    for seconds, fewest, most in ((4, 4, 8), (32, FEWEST_CHUNKS, 32), (320, 32, 60)):
        tokens = sum(len(e.ids) for e in short)
        cost = seconds * LEAST_CHUNK_WORK / tokens / weights
        chunks = cut_chunks(replace(job, chunk=1000), short, [cost, 0.0, 0.0], {})
        assert fewest <= len(chunks) <= most, seconds
