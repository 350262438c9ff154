"""Cells of the study of sparse attention, which runs if a record of it is missing."""

from __future__ import annotations

import math
from collections.abc import Sequence

from faithbench.core.errors import FaithbenchError
from faithbench.data.tasks import load_task
from faithbench.run.backends import default_jobs
from faithbench.studies.reproduction.measures.networks import Networks
from faithbench.studies.reproduction.recipe import Part, cells_of
from faithbench.studies.reproduction.request import SEEDS
from faithbench.studies.reproduction.values import Missing, RecordRef, Value, measured
from faithbench.studies.sparse_attention.claims import trends
from faithbench.studies.sparse_attention.plan import StudyRequest, networks_of, study_tasks
from faithbench.studies.sparse_attention.record import StudyRecord, read_record
from faithbench.studies.sparse_attention.study import study_sparse_attention


def study_value(networks: Networks, part: Part) -> Value:
    """Return a cell of the study: a measure of networks, or its trend as lambda grows."""
    assert part.task is not None and part.arch is not None and part.metric is not None
    records = _records(networks, part.task, part.arch)
    name, _, trend = part.metric.partition(":")
    if name == "trend":
        by_strength: dict[float, list[StudyRecord]] = {}
        for one in records:
            if one.network.strength is not None:
                by_strength.setdefault(one.network.strength, []).append(one)
        if len(by_strength) < 2:
            return Missing("fewer than two values of lambda")
        ordered = {key: by_strength[key] for key in sorted(by_strength)}
        values = trends(ordered, trend).tolist()
        found = dict(zip(records[0].texts, values, strict=True))
        kept = {key: value for key, value in found.items() if not math.isnan(value)}
        return measured([kept], part.scale or 1.0, _refs(records))
    alike = [one for one in records if one.network.projection == part.projection]
    if not alike:
        return Missing(f"the study has no {part.projection} network of {part.task}")
    if part.metric not in alike[0].values:
        raise FaithbenchError(f"the study of sparse attention measures no {part.metric!r}")
    by_seed = [dict(zip(one.texts, one.values[part.metric], strict=True)) for one in alike]
    return measured(by_seed, part.scale or 1.0, _refs(alike))


def _refs(records: Sequence[StudyRecord]) -> list[RecordRef]:
    return [
        RecordRef(f"sparse-attention/records/{one.network.name}.json", one.network.weights_sha256)
        for one in records
    ]


def _records(networks: Networks, task: str, arch: str) -> list[StudyRecord]:
    """Return the study's records of one task and architecture; the study runs if one lacks."""
    request = StudyRequest(
        tasks=_tasks(networks),
        out=networks.request.results / "sparse-attention",
        seeds=networks.request.seeds_of(SEEDS),
        quick=networks.request.quick,
        folder=networks.request.folder,
        jobs=networks.request.jobs or default_jobs(networks.request.device) or 1,
        device=networks.request.device,
    )
    wanted = [
        network
        for one in study_tasks(request.tasks)
        for network in networks_of(request, one)
        if one.name == load_task(task).name and network.arch == arch
    ]
    found = [read_record(request.records / f"{network.name}.json") for network in wanted]
    with networks.clock.piece("study sparse-attention"):
        if any(record is None for record in found):
            study_sparse_attention(request, networks.progress)
            found = [read_record(request.records / f"{network.name}.json") for network in wanted]
    return [record for record in found if record is not None]


def _tasks(networks: Networks) -> tuple[str, ...]:
    cells = (c for item in networks.request.recipe.items for c in cells_of(item).values())
    return tuple(dict.fromkeys(c.part.task for c in cells if c.part.task))
