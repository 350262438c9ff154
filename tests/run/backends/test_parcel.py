"""What travels to other machines: no tensor, and a model that is checked on arrival."""

from __future__ import annotations

import pickletools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.models.encoding import encode
from faithbench.run.backends.parcel import Parcel, pack, unpack
from faithbench.run.chunk import Chunk, compute_chunk, cut_chunks
from faithbench.run.job import Job
from faithbench.run.loop import Session
from tests.support.jobs import make_job

cloudpickle = pytest.importorskip("cloudpickle")


def chunks_of(job: Job) -> list[Chunk]:
    encodings = [encode(job.model, e, job.data.task.evidence) for e in job.data.examples]
    return cut_chunks(job, encodings, [1.0] * len(job.cells), {"known": (0.0, 1.0)})


def test_a_parcel_holds_names_and_no_tensors(stored_job: Job) -> None:
    chunks = chunks_of(stored_job)
    content = pack(stored_job, chunks, cloudpickle)
    weights = sum(p.numel() for p in stored_job.model.network.parameters())
    assert len(content) < weights, "less than a byte per weight"
    named = {arg for _, arg, _ in pickletools.genops(content) if isinstance(arg, str)}
    assert stored_job.model.weights_sha256 in named
    assert not any(name.startswith("torch") for name in named)

    parcel: Parcel = cloudpickle.loads(content)
    assert parcel.bounds == {"known": (0.0, 1.0)}
    session, job = unpack(parcel)
    assert job.model.weights_sha256 == stored_job.model.weights_sha256
    assert [cell.key for cell in job.cells] == [cell.key for cell in stored_job.cells]
    arguments: Any = (chunks[2], lambda *_: None)
    here = compute_chunk(Session(stored_job.model, stored_job.budget), stored_job, *arguments)
    there = compute_chunk(session, job, *arguments)
    assert [[row for row, _ in rows] for rows in there.rows] == [
        [row for row, _ in rows] for rows in here.rows
    ]
    assert there.bounds == here.bounds


def test_other_weights_or_versions_are_refused(stored_job: Job) -> None:
    parcel: Parcel = cloudpickle.loads(pack(stored_job, chunks_of(stored_job), cloudpickle))
    changed = replace(parcel, model=replace(parcel.model, weights_sha256="f" * 64))
    with pytest.raises(FaithbenchError, match=r"has other weights on a worker .* not ffffffffffff"):
        unpack(changed)
    with pytest.raises(FaithbenchError, match=r"the driver 0\.0\.1; install the same version"):
        unpack(replace(parcel, version="0.0.1"))


def test_a_model_without_a_name_cannot_travel(tmp_path: Path, tiny_model: Any) -> None:
    job = make_job(tmp_path, replace(tiny_model(), weights_sha256=""))
    with pytest.raises(FaithbenchError, match="came as a value, and workers elsewhere load it by"):
        pack(job, chunks_of(job), cloudpickle)
