"""What a student learns from: texts, what the model predicts of them, and teachers' weights."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from scipy.stats import rankdata

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Encoding, Floats, Ints
from faithbench.data.dataset import Dataset
from faithbench.metrics.stability import five_labels
from faithbench.models.encoding import encode, pad_rows
from faithbench.models.model import Model
from faithbench.records.store import StoredRecord
from faithbench.training.items import cut_by_length

FEWEST = 100
"""Number of texts below which there is nothing to learn."""
HELD_OUT = 10
"""Percent of the texts that choose the epoch."""


@dataclass(frozen=True)
class Lesson:
    """One text as the model reads it, the class it predicts, and a weight per erasable token."""

    encoding: Encoding
    predicted: int
    weights: Floats

    @cached_property
    def labels(self) -> Ints:
        """The five labels of the weights, worked out once for all epochs."""
        return five_labels(self.weights)


@dataclass(frozen=True)
class Lessons:
    """The texts to learn from, and those held out to choose the epoch by."""

    train: tuple[Lesson, ...]
    dev: tuple[Lesson, ...]


@dataclass(frozen=True, eq=False)
class LessonBatch:
    """Lessons padded on the right; `words`, `weights` and `labels` have a column more at each end.

    That is where the tags are. `words` marks the tokens that have a weight.
    """

    ids: torch.Tensor
    types: torch.Tensor
    attention: torch.Tensor
    predicted: torch.Tensor
    words: torch.Tensor
    weights: torch.Tensor
    labels: torch.Tensor


def make_lessons(model: Model, data: Dataset, teachers: Sequence[StoredRecord]) -> Lessons:
    """Join the texts of a split with the weights that teachers gave their tokens.

    Of several teachers it is the mean of their weights as signed ranks. Texts are held out by the
    digest of their ids, so that all students of a split learn from the same ones.
    """
    check_enough(data)
    for teacher in teachers:
        check_teacher(teacher, model, data)
    train: list[Lesson] = []
    dev: list[Lesson] = []
    for example in data.examples:
        encoding = encode(model, example, data.task.evidence)
        rows = [teacher.by_id[example.id] for teacher in teachers]
        weights = [np.array(row.scores, dtype=np.float64) for row in rows]
        lesson = Lesson(encoding, int(rows[0].target), joined(weights))  # type: ignore[arg-type]  # a class, as was checked
        (dev if _is_held_out(example.id) else train).append(lesson)
    return Lessons(tuple(train), tuple(dev))


def check_enough(data: Dataset) -> None:
    """Refuse a split of too few texts."""
    if len(data.examples) < FEWEST:
        raise FaithbenchError(
            f"{len(data.examples)} texts are too few to learn from; distil from {FEWEST} or more"
        )


def check_teacher(teacher: StoredRecord, model: Model, data: Dataset) -> None:
    """Refuse explanations of another model, of another task, or of other texts.

    Explanations of more texts than are asked for serve as well.
    """
    record, task = teacher.record, data.task
    name = teacher.path.name
    if record.task.name != task.name or record.task.version != task.version:
        raise FaithbenchError(
            f"{name} explains task {record.task.name} (version {record.task.version}), not "
            f"{task.name} (version {task.version}); give explanations of this task"
        )
    if record.model.digest != model.sha256:
        raise FaithbenchError(
            f"{name} explains model {record.model.name!r} (sha256 "
            f"{record.model.digest[:12]}), not {model.name!r} "
            f"({model.sha256[:12]}); a student explains the model of its teacher"
        )
    missing = sum(example.id not in teacher.by_id for example in data.examples)
    if record.task.data_sha256 != data.sha256 or missing:
        raise FaithbenchError(
            f"{name} explains {record.task.n} texts of split {record.task.split!r}, and not all "
            f"of the {len(data.examples)} of {data.split!r} that are asked for; give the --data "
            "and --source that it was made with, and a --limit that is not above its own"
        )


def joined(weights: Sequence[Floats]) -> Floats:
    """Return the weights of one teacher, or the mean of several as signed ranks.

    A weight's signed rank is the rank of its magnitude in the text, as a share of its tokens,
    with the sign of the weight: teachers' units do not compare, and signs must not be lost.
    """
    if len(weights) == 1:
        return weights[0]
    ranks = [np.sign(w) * rankdata(np.abs(w)) / len(w) for w in weights]
    mean: Floats = np.mean(ranks, axis=0)
    return mean


def cut_batches(
    lessons: Sequence[Lesson], size: int, seed: int, epoch: int
) -> list[Sequence[Lesson]]:
    """Shuffle lessons and cut them into batches of similar length."""
    draw = f"distil:{seed}:{epoch}"
    return cut_by_length(lessons, lambda lesson: len(lesson.encoding.ids), size, draw)


def collate_lessons(model: Model, lessons: Sequence[Lesson]) -> LessonBatch:
    """Pad lessons into one batch on the model's device."""
    rows = [(lesson.encoding.ids, lesson.encoding.types) for lesson in lessons]
    ids, types, attention = pad_rows(rows, int(model.network.config.pad_token_id))
    shape = (len(lessons), ids.shape[1] + 2)
    words = np.zeros(shape, dtype=bool)
    weights = np.zeros(shape, dtype=np.float32)
    labels = np.zeros(shape, dtype=np.int64)
    for row, lesson in enumerate(lessons):
        positions = np.flatnonzero(lesson.encoding.erasable) + 1
        words[row, positions] = True
        weights[row, positions] = lesson.weights
        labels[row, positions] = lesson.labels
    device = model.device
    return LessonBatch(
        ids=torch.tensor(ids, device=device),
        types=torch.tensor(types, device=device),
        attention=torch.tensor(attention, device=device),
        predicted=torch.tensor([lesson.predicted for lesson in lessons], device=device),
        words=torch.tensor(words, device=device),
        weights=torch.tensor(weights, device=device),
        labels=torch.tensor(labels, device=device),
    )


def _is_held_out(name: str) -> bool:
    # The prefix keeps this draw independent of others by digest, such as those of `--limit`.
    digest = hashlib.sha256(f"distil:{name}".encode()).digest()
    return int.from_bytes(digest[:8], "big") % 100 < HELD_OUT
