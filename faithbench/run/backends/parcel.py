"""A job as it travels to another machine: names and checksums instead of tensors."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.models.model import DTYPES, Model, load_model
from faithbench.models.session import Session
from faithbench.run.chunk import Chunk
from faithbench.run.job import Job
from faithbench.run.score import Bounds


@dataclass(frozen=True)
class ModelName:
    """What a model is loaded and recognised by."""

    name: str
    revision: str | None
    sha256: str
    device: str
    dtype: str
    compiled: bool
    max_tokens: int


@dataclass(frozen=True)
class Parcel:
    """A job without its model, what to load in its place, and the bounds that are known.

    `budget` is the token budget that the driver found for its device.
    """

    job: Job
    model: ModelName
    budget: int
    bounds: Mapping[str, Bounds]
    version: str


def pack(session: Session, job: Job, chunks: Sequence[Chunk], pickler: Any) -> bytes:
    """Return a parcel as bytes; `pickler` is cloudpickle, under whichever name it is installed."""
    model = job.model
    if not model.sha256:
        raise FaithbenchError(
            f"model {model.name!r} came as a value, and workers elsewhere load it by name; give a "
            "folder or a name on the hub"
        )
    folder = Path(model.name)
    named = ModelName(
        name=str(folder.resolve()) if folder.is_dir() else model.name,
        revision=model.revision,
        sha256=model.sha256,
        device=model.device.type,
        dtype=next(name for name, dtype in DTYPES.items() if dtype == model.dtype),
        compiled=model.compiled,
        max_tokens=int(model.tokenizer.model_max_length),
    )
    without = replace(job, model=cast(Model, None))
    parcel = Parcel(without, named, session.engine.budget, chunks[0].bounds, version("faithbench"))
    with _loose_files_by_value(pickler):
        content: bytes = pickler.dumps(parcel)
    return content


def unpack(parcel: Parcel, threads: int = 1) -> tuple[Session, Job]:
    """Load the model, check that it is the very same, and return what computes chunks."""
    if parcel.version != version("faithbench"):
        raise FaithbenchError(
            f"a worker has faithbench {version('faithbench')}, the driver {parcel.version}; "
            "install the same version everywhere"
        )
    torch.set_num_threads(threads)
    named, task = parcel.model, parcel.job.data.task
    model = load_model(
        named.name,
        labels=task.labels,
        kind=task.kind,
        revision=named.revision,
        device=named.device,
        dtype=named.dtype,
        compiled=named.compiled,
    )
    if model.sha256 != named.sha256:
        raise FaithbenchError(
            f"model {named.name!r} has other weights, settings or tokenizer on a worker (sha256 "
            f"{model.sha256[:12]}, not {named.sha256[:12]}); copy the same there"
        )
    job = replace(parcel.job, model=model.with_max_tokens(named.max_tokens))
    return Session(job.model, parcel.budget), job


@contextmanager
def _loose_files_by_value(pickler: Any) -> Iterator[None]:
    """Let the code of `--plugin` files travel too: no other machine can import them by name."""
    modules = [m for name, m in sys.modules.items() if name.startswith("faithbench_plugin_")]
    for module in modules:
        pickler.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            pickler.unregister_pickle_by_value(module)
