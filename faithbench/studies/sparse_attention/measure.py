"""Measure a network on test texts: the influence of words and of h, and attention beside it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch

import faithbench
from faithbench.core.parallel import map_in_processes
from faithbench.core.rounding import significant
from faithbench.core.types import Encoding, Progress, quiet
from faithbench.data.dataset import Dataset
from faithbench.data.jsonl import sample_by_digest
from faithbench.metrics.influence import Values, influence_values
from faithbench.models.encoding import encode
from faithbench.models.model import Model, load_model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.records.provenance import environment, source_state
from faithbench.run.measures.influence import measure_influence
from faithbench.studies.sparse_attention.networks import Trained, training_seconds
from faithbench.studies.sparse_attention.plan import Network, StudyRequest, TaskPlan
from faithbench.studies.sparse_attention.record import (
    StudyNetwork,
    StudyRecord,
    StudySettings,
    StudyTask,
    StudyTiming,
    read_record,
    write_record,
)
from faithbench.training.base import find_base, settle, start_model
from faithbench.training.recipe import Splits

TOGETHER = 16
"""Texts of similar length that are measured together."""

DIGITS = 7
"""Significant digits of a value in a record: float32 has no more."""


def measured_networks(
    request: StudyRequest, networks: Sequence[Trained], splits: Splits, progress: Progress = quiet
) -> tuple[StudyRecord, ...]:
    """Return the record of each network and of the untrained controls; what is there is kept."""
    task = splits.test.task
    texts = _chosen(splits.test, request.plan_of(task))
    work = partial(_measured, request=request, texts=texts)
    if request.jobs > 1:
        progress(f"measuring {len(networks)} networks of {task.name}", 0, 0)
        made = map_in_processes(work, networks, request.jobs)
    else:
        made = []
        for number, one in enumerate(networks):
            progress(f"measuring {one.network.label}", number, len(networks))
            made.append(work(one))
    archs = dict.fromkeys(one.network.arch for one in networks)
    controls = [_control(request, arch, splits, texts) for arch in archs]
    return (*made, *controls)


def _chosen(test: Dataset, plan: TaskPlan) -> Dataset:
    """Return the texts to measure; which they are does not depend on the file's order."""
    return replace(test, examples=sample_by_digest(test.examples, plan.texts))


def _measured(trained: Trained, request: StudyRequest, texts: Dataset) -> StudyRecord:
    network, task = trained.network, texts.task
    facts = StudyNetwork(
        name=network.name,
        arch=network.arch,
        projection=network.projection,
        strength=network.strength,
        seed=network.seed,
        vectors=request.vectors,
        weights_sha256=trained.card["weights_sha256"],
        test=trained.card["test"],
    )

    def load() -> Model:
        return load_model(
            str(trained.folder), labels=task.labels, kind=task.kind, device=request.device
        )

    return _record(request, facts, texts, load, training_seconds(trained.folder))


def _control(request: StudyRequest, arch: str, splits: Splits, texts: Dataset) -> StudyRecord:
    """Measure a network as it is before training, with softmax: what the architecture alone does.

    Its word vectors are those that training starts from.
    """
    network = Network(texts.task, arch, "softmax", 0)
    facts = StudyNetwork(
        name=network.name.replace("seed0", "untrained"),
        arch=arch,
        projection="softmax",
        strength=None,
        seed=0,
        vectors=request.vectors,
        weights_sha256="",
        trained=False,
    )

    def start() -> Model:
        recipe = network.recipe(request.plan_of(texts.task), request.vectors)
        base = find_base(None, recipe)
        model = start_model(texts.task, settle(recipe, base), base, request.device, splits)
        model.network.eval().requires_grad_(False)
        return model

    return _record(request, facts, texts, start, None)


def _record(
    request: StudyRequest,
    network: StudyNetwork,
    texts: Dataset,
    load: Callable[[], Model],
    training: float | None,
) -> StudyRecord:
    """Read the record of a network, or load and measure it with one thread, and write it."""
    plan = request.plan_of(texts.task)
    task = StudyTask(
        name=texts.task.name,
        version=texts.task.version,
        source=texts.source,
        data_sha256=texts.sha256,
        n=len(texts.examples),
    )
    settings = StudySettings(max_tokens=plan.max_tokens, positions=plan.positions)
    record = read_record(request.records / f"{network.name}.json")
    if record is not None and record.is_of(task, network, settings):
        return record
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the number of threads moves last bits
    start = time.process_time()
    try:
        model = load()
        values = _values(model, texts, plan.positions)
        spent = time.process_time() - start
        environs = environment(str(model.device), 1)
    finally:
        torch.set_num_threads(threads)
    names = list(values[0])
    record = StudyRecord(
        task=task,
        network=network,
        settings=settings,
        texts=tuple(example.id for example in texts.examples),
        values={name: tuple(text[name] for text in values) for name in names},
        timing=StudyTiming(training=training, measuring=round(spent, 2)),
        environment=environs,
        source=source_state(Path(faithbench.__file__).parents[1]),
    )
    write_record(record, request.records)
    return record


def _values(model: Model, texts: Dataset, positions: int) -> list[Values]:
    """Return the values of each text, in the data's order; texts of one length go together."""
    encodings = [encode(model, example, texts.task.evidence) for example in texts.examples]
    order = sorted(range(len(encodings)), key=lambda index: len(encodings[index].ids))
    values: dict[int, Values] = {}
    with Session(model) as session:
        for start in range(0, len(order), TOGETHER):
            part = order[start : start + TOGETHER]
            made = _together(session, [encodings[index] for index in part], positions)
            values |= dict(zip(part, made, strict=True))
    return [values[index] for index in range(len(encodings))]


def _together(session: Session, encodings: Sequence[Encoding], positions: int) -> list[Values]:
    predicted = predictions(session.engine, encodings)
    influences = measure_influence(session, encodings, predicted, positions)
    return [
        {
            name: None if value is None else significant(value, DIGITS)
            for name, value in influence_values(influence).items()
        }
        | {"right": float(bool(prediction.right))}
        for influence, prediction in zip(influences, predicted, strict=True)
    ]
