"""Can attention be another without the prediction being another?

The check of the paper's appendix: attention made to diverge under frozen weights costs accuracy
(after Jain and Wallace 2019), a network trained to diverge does not lose any (after Wiegreffe and
Pinter 2019). Frozen attention is measured at the divergence that the trained network has on the
same text, because the further it moves, the more it costs.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import Field, ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import reason, replace_file
from faithbench.core.parallel import map_in_processes
from faithbench.core.schema import Facts, describe_error
from faithbench.core.seals import seal_json
from faithbench.core.types import Encoding, Progress, quiet
from faithbench.data.dataset import Dataset
from faithbench.models.encoding import collate, encode
from faithbench.models.model import Model, load_model
from faithbench.studies.sparse_attention.networks import Trained, train_once, training_seconds
from faithbench.studies.sparse_attention.plan import StudyRequest
from faithbench.studies.sparse_attention.record import SCHEMA, StudyTiming, parse_study_file
from faithbench.training.objectives.divergence import jensen_shannon
from faithbench.training.recipe import Splits

PROJECTIONS = ("softmax", "sparsemax")
ARCH = "bilstm"
WEIGHT = 0.1
"""The factor of divergence in the loss: cross-entropy stays the larger part of it."""
MORE_WEIGHTS = (0.01, 1.0)
"""Tried from the first start as well, since the paper names no factor."""
TOGETHER = 64
HALVINGS = 30
"""Steps of the bisection towards a divergence: more than float32 can tell apart."""


class Adversary(Facts):
    """One network and its adversary of one `weight`; lists have one entry per test text.

    `base`, `far`, `near` and `trained` tell whether the class is right: of the network itself,
    with its attention on the word it attends to least, with attention on the way there at the
    trained adversary's divergence, and of that adversary. `divergence` is the adversary's from the
    network, `another_seed` that of a network which was only trained from another start; both are
    Jensen-Shannon divergences in nats, at most ln 2. `weights_sha256` are those of all three.
    """

    schema_: Literal[1, 2] = Field(default=SCHEMA, alias="schema")
    task: str
    network: str
    projection: str
    seed: int
    weight: float
    weights_sha256: tuple[str, ...]
    base: tuple[bool, ...]
    far: tuple[bool, ...]
    near: tuple[bool, ...]
    trained: tuple[bool, ...]
    divergence: tuple[float, ...]
    another_seed: tuple[float, ...]
    timing: StudyTiming

    @property
    def has_sibling(self) -> bool:
        """Whether there was a network from another start; else it was compared with itself."""
        base, _, sibling = self.weights_sha256
        return base != sibling


def adversaries(
    request: StudyRequest, networks: Sequence[Trained], splits: Splits, progress: Progress = quiet
) -> tuple[Adversary, ...]:
    """Return what adversaries do to the BiLSTMs of a task; what is there is not done again."""
    chosen = [
        one
        for one in networks
        if one.network.arch == ARCH and one.network.projection in PROJECTIONS
    ]
    pairs = [(one, WEIGHT) for one in chosen]
    if not request.quick:
        pairs += [(one, more) for one in chosen if one.network.seed == 0 for more in MORE_WEIGHTS]
    work = partial(_adversary, request=request, networks=networks, splits=splits)
    if request.jobs > 1:
        progress(f"training {len(pairs)} adversaries of {splits.train.task.name}", 0, 0)
        return tuple(map_in_processes(partial(work, progress=quiet), pairs, request.jobs))
    return tuple(
        work(pair, progress=_named(progress, f"adversary {number + 1}/{len(pairs)}"))
        for number, pair in enumerate(pairs)
    )


def _named(progress: Progress, name: str) -> Progress:
    return lambda what, done, total: progress(f"{name}: {what}", done, total)


def _adversary(
    pair: tuple[Trained, float],
    request: StudyRequest,
    networks: Sequence[Trained],
    splits: Splits,
    progress: Progress,
) -> Adversary:
    base, weight = pair
    network, task = base.network, splits.train.task
    recipe = replace(
        network.recipe(request.plan_of(task), request.vectors),
        objectives=(f"divergence:model={base.folder},weight={weight:g}",),
        seed=network.seed + 100,  # another start, or the first steps would be the same
    )
    folder = request.models / f"{network.name}-diverged-{weight:g}"
    card = train_once(recipe, splits, folder, progress, request.device)
    sibling = _sibling(base, networks)
    digests = tuple(one["weights_sha256"] for one in (base.card, card, sibling.card))
    path = request.records / "adversaries" / f"{folder.name}.json"
    if (known := _read(path)) is not None and known.weights_sha256 == digests:
        return known
    progress("diverging", 0, 0)
    start = time.process_time()
    found = _measured(base, folder, sibling.folder, splits.test, request.device)
    measuring = round(time.process_time() - start, 1)
    made = Adversary(
        task=task.name,
        network=network.name,
        projection=network.projection,
        seed=network.seed,
        weight=weight,
        weights_sha256=digests,
        timing=StudyTiming(training=training_seconds(folder), measuring=measuring),
        **found,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, seal_json(made.model_dump(by_alias=True)).encode())
    return made


def _read(path: Path) -> Adversary | None:
    if not path.is_file():
        return None
    try:
        data = parse_study_file(path.read_bytes())
        return Adversary.model_validate_json(json.dumps(data), strict=True)
    except ValidationError as error:
        problem = describe_error(error)
    except ValueError as error:
        problem = reason(error)
    raise FaithbenchError(f"study record {path}: {problem}; remove it to measure again")


def _sibling(base: Trained, networks: Sequence[Trained]) -> Trained:
    """Return the same network from another start; itself if there is no other."""
    alike = [
        one
        for one in networks
        if (one.network.arch, one.network.projection)
        == (base.network.arch, base.network.projection)
    ]
    index = alike.index(base)
    return alike[(index + 1) % len(alike)]


@torch.no_grad()
def _measured(
    base: Trained, adversary: Path, sibling: Path, test: Dataset, device: str
) -> dict[str, Any]:
    task = test.task
    load = partial(load_model, labels=task.labels, kind=task.kind, device=device)
    ours, theirs, other = (load(str(folder)) for folder in (base.folder, adversary, sibling))
    columns: dict[str, list[Any]] = {
        name: [] for name in ("base", "far", "near", "trained", "divergence", "another_seed")
    }
    encodings = [encode(ours, example, task.evidence) for example in test.examples]
    for part in _parts(encodings):
        gold = torch.tensor([encoding.example.label for encoding in part], device=ours.device)
        seen, diverged, again = (_pass(model, part) for model in (ours, theirs, other))
        network: Any = ours.network
        there = seen["there"]
        divergence = jensen_shannon(seen["attention"], diverged["attention"])
        far = _least(seen["attention"], there)
        near = _towards(seen["attention"], far, divergence)

        def right(logits: torch.Tensor, gold: torch.Tensor = gold) -> list[bool]:
            answers: list[bool] = (logits.argmax(dim=1) == gold).tolist()
            return answers

        columns["base"] += right(seen["logits"])
        columns["trained"] += right(diverged["logits"])
        for name, attention in (("far", far), ("near", near)):
            columns[name] += right(network.classify(seen["h"], attention[:, None, None]))
        columns["divergence"] += _rounded(divergence)
        columns["another_seed"] += _rounded(jensen_shannon(seen["attention"], again["attention"]))
    return {name: tuple(values) for name, values in columns.items()}


def _parts(encodings: Sequence[Encoding]) -> Iterator[Sequence[Encoding]]:
    """Cut texts into batches, in the order of the data, which is that of the results."""
    for start in range(0, len(encodings), TOGETHER):
        yield encodings[start : start + TOGETHER]


def _pass(model: Model, part: Sequence[Encoding]) -> dict[str, torch.Tensor]:
    batch = collate(model, part, [0] * len(part), [0] * len(part))
    out = model.network(
        input_ids=batch.ids,
        attention_mask=batch.attention,
        output_attentions=True,
        output_hidden_states=True,
    )
    return {
        "logits": out.logits,
        "attention": out.attentions[-1][:, 0, 0],
        "h": out.hidden_states[-1],
        "there": batch.attention.bool(),
    }


def _least(attention: torch.Tensor, there: torch.Tensor) -> torch.Tensor:
    """Put all attention on the word that has least: nothing is further away.

    The Jensen-Shannon divergence is convex, so that it is largest at a corner of the simplex. Of
    words that have equally little, the one in the middle of them is taken.
    """
    least = attention.masked_fill(~there, math.inf).amin(dim=1, keepdim=True)
    tied = there & (attention == least)
    middle = (tied.sum(dim=1, keepdim=True) + 1) // 2
    index = ((tied.cumsum(dim=1) == middle) & tied).int().argmax(dim=1)
    return torch.nn.functional.one_hot(index, attention.shape[1]).to(attention)


def _towards(start: torch.Tensor, end: torch.Tensor, divergence: torch.Tensor) -> torch.Tensor:
    """Return the point between two distributions that diverges from the first by this much.

    On the way the divergence only rises; where even the end has less, it is the end.
    """
    low = torch.zeros_like(divergence)
    high = torch.ones_like(divergence)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        mixed = start + middle[:, None] * (end - start)
        short = jensen_shannon(start, mixed) < divergence
        low, high = torch.where(short, middle, low), torch.where(short, high, middle)
    return start + high[:, None] * (end - start)


def _rounded(values: torch.Tensor) -> list[float]:
    return [round(float(value), 7) for value in values]
