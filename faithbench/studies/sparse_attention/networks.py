"""Train the networks that a study needs and that are not there yet."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch

from faithbench.core.files import check_writable, replace_file
from faithbench.core.parallel import map_in_processes
from faithbench.core.types import Progress, quiet
from faithbench.data.tasks import Task
from faithbench.studies.sparse_attention.plan import Network, StudyRequest, networks_of
from faithbench.training.base import find_base, settle
from faithbench.training.card import card_facts, finished
from faithbench.training.fit import fit
from faithbench.training.objectives import find_objectives
from faithbench.training.recipe import Recipe, Splits, load_splits

TIMES = "times.json"
"""The file of a network's folder that says how many CPU seconds its training took."""


@dataclass(frozen=True)
class Trained:
    """A network that is there: its folder and its card."""

    network: Network
    folder: Path
    card: dict[str, Any]


def training_seconds(folder: Path) -> float | None:
    """Return the CPU seconds of a network's training; None where it was not timed as a whole."""
    times = folder / TIMES
    return float(json.loads(times.read_text())["training"]) if times.is_file() else None


def read_splits(request: StudyRequest, task: Task) -> Splits:
    """Read the data of a task; of a quick study, a part of them."""
    limit = request.plan_of(task).limit
    limits = (limit, limit, limit)
    return load_splits(task, source=request.source, folder=request.folder, limits=limits)


def trained_networks(
    request: StudyRequest, splits: Splits, progress: Progress = quiet
) -> tuple[Trained, ...]:
    """Return all networks of a task, training those that are missing; a killed call continues."""
    check_writable(request.models, "--out")
    task = splits.train.task
    networks = networks_of(request, task)
    work = partial(_train, request=request, splits=splits)
    if request.jobs > 1:
        progress(f"training {len(networks)} networks of {task.name}", 0, 0)
        cards = map_in_processes(partial(work, progress=quiet), networks, request.jobs)
    else:
        cards = [
            work(one, progress=_numbered(progress, number, networks))
            for number, one in enumerate(networks)
        ]
    return tuple(
        Trained(one, request.models / one.name, card)
        for one, card in zip(networks, cards, strict=True)
    )


def _numbered(progress: Progress, number: int, networks: Sequence[Network]) -> Progress:
    start = f"network {number + 1}/{len(networks)} ({networks[number].label})"
    return lambda what, done, total: progress(f"{start}: {what}", done, total)


def _train(
    network: Network, request: StudyRequest, splits: Splits, progress: Progress
) -> dict[str, Any]:
    recipe = network.recipe(request.plan_of(network.task), request.vectors)
    return train_once(recipe, splits, request.models / network.name, progress, request.device)


def train_once(
    recipe: Recipe, splits: Splits, folder: Path, progress: Progress, device: str = "auto"
) -> dict[str, Any]:
    """Train a network into a folder unless it is there, with one thread, and return its card.

    With one thread its weights do not depend on the machine's cores or on the number of processes.
    """
    base = find_base(None, recipe)
    facts = card_facts(splits, settle(recipe, base), find_objectives(recipe.objectives), base)
    if (card := finished(facts, folder)) is not None:
        return card
    whole = not folder.exists()  # of a continued training, only a part can be timed
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    start = time.process_time()
    try:
        card = fit(splits, recipe, folder, progress, device=device)
    finally:
        torch.set_num_threads(threads)
    if whole:
        spent = {"training": round(time.process_time() - start, 1)}
        replace_file(folder / TIMES, (json.dumps(spent) + "\n").encode())
    return card
