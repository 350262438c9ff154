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
    tuned = Session(stored_job.model, budget=4096)
    content = pack(tuned, stored_job, chunks, cloudpickle)
    weights = sum(p.numel() for p in stored_job.model.network.parameters())
    assert len(content) < weights, "less than a byte per weight"
    named = {arg for _, arg, _ in pickletools.genops(content) if isinstance(arg, str)}
    assert stored_job.model.sha256 in named
    assert not any(name.startswith("torch") for name in named)

    parcel: Parcel = cloudpickle.loads(content)
    assert parcel.bounds == {"known": (0.0, 1.0)}
    session, job = unpack(parcel)
    assert session.engine.budget == 4096, "a worker takes what the driver found for its device"
    assert job.model.sha256 == stored_job.model.sha256
    assert [cell.key for cell in job.cells] == [cell.key for cell in stored_job.cells]
    arguments: Any = (chunks[2], lambda *_: None)
    here = compute_chunk(Session(stored_job.model, stored_job.budget), stored_job, *arguments)
    there = compute_chunk(session, job, *arguments)
    assert [[row for row, _ in rows] for rows in there.rows] == [
        [row for row, _ in rows] for rows in here.rows
    ]
    assert there.bounds == here.bounds


def test_other_files_or_versions_are_refused(stored_job: Job) -> None:
    session, chunks = Session(stored_job.model), chunks_of(stored_job)
    parcel: Parcel = cloudpickle.loads(pack(session, stored_job, chunks, cloudpickle))
    settings = Path(stored_job.model.name) / "config.json"
    known = settings.read_text()
    settings.write_text(known.replace('"hidden_act": "gelu"', '"hidden_act": "relu"'))
    with pytest.raises(
        FaithbenchError,
        match=r"other weights, settings or tokenizer on a worker .* not "
        rf"{stored_job.model.sha256[:12]}\); copy",
    ):
        unpack(parcel)
    settings.write_text(known)
    with pytest.raises(FaithbenchError, match=r"the driver 0\.0\.1; install the same version"):
        unpack(replace(parcel, version="0.0.1"))


def test_a_model_without_a_name_cannot_travel(tmp_path: Path, tiny_model: Any) -> None:
    job = make_job(tmp_path, replace(tiny_model(), sha256=""))
    with pytest.raises(FaithbenchError, match="came as a value, and workers elsewhere load it by"):
        pack(Session(job.model), job, chunks_of(job), cloudpickle)
