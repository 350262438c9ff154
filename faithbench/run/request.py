"""From what a user asks of a run to a job with data, model, explainers and metrics in place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import check_writable
from faithbench.core.types import Progress, quiet
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.jsonl import sample_by_digest
from faithbench.data.kinds import KINDS
from faithbench.data.tasks import Task, load_task, task_names
from faithbench.explainers.protocol import is_stochastic, needs_training, taught
from faithbench.explainers.selection import Selected, find_explainers, select_explainers
from faithbench.metrics.kinds import Metric, Need, Trained
from faithbench.metrics.registry import find_metrics

if TYPE_CHECKING:
    from faithbench.core.erasure import Operator
    from faithbench.core.types import Long
    from faithbench.models.model import Model
    from faithbench.run.job import Job


_OPERATORS = ("mask", "delete", "pad")
_LONG = ("truncate", "window")


@dataclass(frozen=True)
class Request:
    """What a user asks of a run: the options of `faithbench run`, with its defaults.

    What is at hand already, as a value, may stand in the place of its name: a task, a model, a
    data set instead of its folder, explainers next to names of others. `human` lets human
    rationales take part as an explainer where there are any.
    """

    explainer: object
    task: str | Task
    model: str | Model | None = None
    data: Path | Dataset | None = None
    source: str = "auto"
    split: str = "test"
    limit: int | None = None
    metrics: str = "all"
    operator: str = "mask"
    device: str = "auto"
    dtype: str = "float32"
    compiled: bool = False
    seed: int = 0
    seeds: int = 3
    encoder: str | None = None
    human: bool = True
    batch: int = 16
    long: str = "truncate"
    results: Path = Path("results")
    allow_changed_data: bool = False
    plugins: tuple[Path, ...] = ()


def make_job(request: Request, progress: Progress = quiet) -> Job:
    """Load what a request names, in an order in which what is wrong is said early."""
    task = load_task(request.task) if isinstance(request.task, str) else request.task
    # A misspelt name is reported before anything is loaded.
    _check_metrics(find_metrics(request.metrics, files=request.plugins))
    _check_options(task, request.operator, request.long)
    check_writable(request.results)
    data = _data(request, task)
    if request.model is None or isinstance(request.model, str):
        # Said here, since explainers import torch, which takes seconds already.
        progress(f"loading the model {model_for(task, data, request.model)[0]}", 0, 0)
    chosen = _explainers(request, data)
    several = request.seeds > 1 and any(is_stochastic(one.explainer) for one in chosen)
    wanted = wanted_metrics(request.metrics, data, several_seeds=several, files=request.plugins)
    from faithbench.models.sentence_encoder import encoder_sha256
    from faithbench.run.job import Job
    from faithbench.run.measures.precision import HALVES, precision_shift

    if request.encoder is not None:
        encoder_sha256(request.encoder)  # or its absence would be told after all is explained
    model = _load(request, data, request.dtype)
    # Of a model that came as a value there is no name to load a precise twin by.
    half = request.dtype in HALVES and model is not request.model
    chosen = _taught(request, data, model, chosen, progress)
    return Job(
        data, model, chosen, wanted, request.results, cast("Operator", request.operator),
        request.seed, request.seeds, request.encoder, chunk=request.batch,
        precision=precision_shift(_load(request, data, "float32"), model, data) if half else None,
        long=cast("Long", request.long),
    )  # fmt: skip


def model_for(task: Task, data: Dataset, asked: str | None) -> tuple[str, str | None]:
    """Return the model to load: the one asked for, else the task's default for this source."""
    if asked is not None:
        return asked, None
    ref = task.models.get(data.source)
    if ref is None:
        # A task of the user's own is asked for by its file, which has its name.
        written = task.name if task.name in task_names() else f"{task.name}.toml"
        raise FaithbenchError(
            f"task {task.name} names no model for {data.source} data; give one with --model, or "
            f"train one with `faithbench train --task {written}`"
        )
    return ref.name, ref.revision


def wanted_metrics(
    metrics: str, data: Dataset, *, several_seeds: bool, files: Sequence[Path] = ()
) -> tuple[Metric, ...]:
    """Resolve the metrics; `all` leaves out what task, data or explainers lack the needs of."""
    there: dict[Need, bool] = {
        "answers": KINDS[data.task.kind].has_answers,
        "rationale": data.rationale != "none",
        "sentences": data.rationale != "none" and data.task.rationale_unit == "sentences",
        "seeds": several_seeds,
    }
    present = [need for need, is_there in there.items() if is_there]
    return find_metrics(metrics, present, files)


def _data(request: Request, task: Task) -> Dataset:
    """Read the data, or take those that are at hand, at most as many as asked for."""
    if not isinstance(request.data, Dataset):
        return load_dataset(
            task,
            source=request.source,
            split=request.split,
            folder=request.data,
            limit=request.limit,
            allow_changed=request.allow_changed_data,
        )
    if request.data.task != task:
        raise FaithbenchError(
            f"the data are of task {request.data.task.name}, not of {task.name} as it is asked "
            "for; give the data's own task"
        )
    return replace(request.data, examples=sample_by_digest(request.data.examples, request.limit))


def _load(request: Request, data: Dataset, dtype: str) -> Model:
    from faithbench.models.model import Model, load_model

    if isinstance(request.model, Model):
        if request.model.labels != data.task.labels:
            raise FaithbenchError(
                f"model {request.model.name!r} has the labels {', '.join(request.model.labels)}, "
                f"task {data.task.name} has {', '.join(data.task.labels)}; load the model for "
                "this task"
            )
        return request.model
    name, revision = model_for(data.task, data, request.model)
    return load_model(
        name,
        labels=data.task.labels,
        kind=data.task.kind,
        revision=revision,
        device=request.device,
        dtype=dtype,
        compiled=request.compiled,
    )


def _check_metrics(metrics: Sequence[Metric]) -> None:
    """Refuse metrics that take a training, which another command does."""
    for metric in metrics:
        if isinstance(metric, Trained):
            raise FaithbenchError(
                f"metric {metric.name!r} is the score of classifiers that a run does not train; "
                f"use {metric.command}"
            )


def _check_options(task: Task, operator: str, long: str) -> None:
    """Refuse what no task takes, and what questions do not."""
    if operator not in _OPERATORS:
        raise unknown("operator", operator, _OPERATORS)
    kind = KINDS[task.kind]
    if operator not in kind.operators:
        raise FaithbenchError(
            f"task {task.name} asks for answers, whose places --operator {operator} would "
            "move or blur; leave it at mask"
        )
    if long not in _LONG:
        raise unknown("way to read long texts", long, _LONG)
    if long == "window" and not kind.windows:
        raise FaithbenchError(
            f"task {task.name} is of kind {task.kind}, whose predictions --long window cannot "
            "join; leave it at truncate"
        )


def _explainers(request: Request, data: Dataset) -> tuple[Selected, ...]:
    """Find explainers; what people marked is one too, where they did: plausibility's ceiling."""
    marked = data.rationale == "human"
    chosen = select_explainers(request.explainer, request.plugins, rationale=marked)
    if not request.human or not marked or any(one.name == "human" for one in chosen):
        return chosen
    return (*chosen, *find_explainers("human"))


def _taught(
    request: Request,
    data: Dataset,
    model: Model,
    chosen: tuple[Selected, ...],
    progress: Progress,
) -> tuple[Selected, ...]:
    """Let the explainers that need it learn from the training split of the data's source."""
    learning = [one for one in chosen if needs_training(one.explainer)]
    if not learning:
        return chosen
    progress(f"reading the training split for {learning[0].label}", 0, 0)
    try:
        train = load_dataset(
            data.task,
            source=data.source,
            split="train",
            folder=None if isinstance(request.data, Dataset) else request.data,
            allow_changed=request.allow_changed_data,
        )
    except FaithbenchError as error:
        raise FaithbenchError(
            f"explainer {learning[0].label!r} learns from the training split: {error}"
        ) from error
    return tuple(
        replace(one, explainer=taught(one.explainer, train, model))
        if needs_training(one.explainer)
        else one
        for one in chosen
    )
