"""Train one network of a student, from one initialisation, and keep its best epoch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from scipy.stats import spearmanr

from faithbench.core.files import replace_file
from faithbench.core.types import Progress
from faithbench.explainers.l2e import scores_of
from faithbench.explainers.students.network import Student, StudentShape
from faithbench.models.model import Model
from faithbench.training.distil.lessons import (
    Lesson,
    LessonBatch,
    Lessons,
    collate_lessons,
    cut_batches,
)
from faithbench.training.distil.losses import (
    label_losses,
    label_losses_released,
    pairs_of,
    ranking_losses,
    ranking_losses_released,
)
from faithbench.training.distil.recipe import DistilRecipe
from faithbench.training.items import schedule

_AT_ONCE = 64


@dataclass(frozen=True)
class Trained:
    """What is known of a trained network: losses per epoch, and the epoch that was kept.

    The first of the `dev_losses` is that of the untrained network. All of it follows from lessons,
    recipe and seed, and is written into the file of the weights.
    """

    train_losses: tuple[float, ...]
    dev_losses: tuple[float, ...]
    epoch: int
    correlation: float | None = None


def fit_student(
    model: Model,
    lessons: Lessons,
    recipe: DistilRecipe,
    shape: StudentShape,
    seed: int,
    path: Path,
    progress: Progress,
) -> Trained:
    """Train a network under a seed and write its best epoch, in half precision, to `path`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        student = Student(shape, recipe.dropout).to(model.device)
        best, trained = _epochs(model, lessons, recipe, student, seed, progress)
    student.load_state_dict(best)
    correlation = agreement_with_teacher(model, student, recipe, lessons.dev)
    trained = replace(trained, correlation=correlation)
    _write(best, trained, path)
    return trained


def _epochs(
    model: Model,
    lessons: Lessons,
    recipe: DistilRecipe,
    student: Student,
    seed: int,
    progress: Progress,
) -> tuple[dict[str, torch.Tensor], Trained]:
    """Train epoch after epoch; return the weights, as they are written, of the best one."""
    size = recipe.texts_per_step(len(lessons.train))
    steps = -(-len(lessons.train) // size)
    optimizer, rate = _optimizer(student, recipe, steps * recipe.epochs)
    losses: list[float] = []
    dev = [dev_loss(model, student, recipe, lessons.dev)]
    best, epoch = _halves(student), 0
    for number in range(1, recipe.epochs + 1):
        student.train()
        total = 0.0
        batches = cut_batches(lessons.train, size, seed, number)
        for step, batch in enumerate(batches, start=1):
            loss = batch_loss(model, student, recipe, collate_lessons(model, batch))
            optimizer.zero_grad()
            loss.backward()
            if recipe.clip:
                torch.nn.utils.clip_grad_norm_(student.parameters(), recipe.clip)
            optimizer.step()
            rate.step()
            total += float(loss.detach())
            if step % 10 == 0 or step == len(batches):
                done = (number - 1) * steps + step
                progress(f"training student {seed}, epoch {number}", done, steps * recipe.epochs)
        losses.append(round(total / len(batches), 6))
        dev.append(dev_loss(model, student, recipe, lessons.dev))
        if dev[-1] < dev[epoch]:
            best, epoch = _halves(student), number
        if number - epoch >= recipe.patience:
            break
    return best, Trained(tuple(losses), tuple(dev), epoch)


def _optimizer(
    student: Student, recipe: DistilRecipe, total: int
) -> tuple[torch.optim.Optimizer, torch.optim.lr_scheduler.LRScheduler]:
    parameters, lr, decay = student.parameters(), recipe.learning_rate, recipe.weight_decay
    optimizer: torch.optim.Optimizer
    if recipe.optimizer == "sgd":
        optimizer = torch.optim.SGD(parameters, lr=lr, weight_decay=decay)
    else:
        optimizer = torch.optim.AdamW(parameters, lr=lr, weight_decay=decay)

    def share(step: int) -> float:
        return schedule(step, total, recipe.warmup) if recipe.decay and step < total else 1.0

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def batch_loss(
    model: Model, student: Student, recipe: DistilRecipe, batch: LessonBatch
) -> torch.Tensor:
    """Return the loss of a batch as the recipe reduces it."""
    losses, units = _losses(model, student, recipe, batch)
    if recipe.reduction == "sum":
        return losses.sum()
    # Per pair, a text's loss does not grow with the square of its length.
    if recipe.form == "ranking" and not recipe.released:
        return (losses / units.clamp(min=1)).mean()
    return losses.sum() / units.sum()


def _losses(
    model: Model, student: Student, recipe: DistilRecipe, batch: LessonBatch
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return each text's loss, and the number of labels or pairs that it adds up."""
    outputs = student(
        model.network.get_input_embeddings(),
        batch.ids, batch.types, batch.attention, batch.predicted,
    )  # fmt: skip
    if recipe.form == "labelling":
        label_loss = label_losses_released if recipe.released else label_losses
        return label_loss(outputs, batch.labels, batch.words), batch.words.sum(dim=1)
    scores = outputs[:, :, 0]
    weights = batch.weights.abs() if recipe.target == "absolute" else batch.weights
    if recipe.released:  # it divides by the length itself
        losses = ranking_losses_released(scores, weights, batch.words)
        return losses, torch.ones_like(losses)
    return ranking_losses(scores, weights, batch.words), pairs_of(batch.words)


def dev_loss(
    model: Model, student: Student, recipe: DistilRecipe, lessons: Sequence[Lesson]
) -> float:
    """Return the mean loss per label or pair on lessons, whatever the recipe's reduction is."""
    student.eval()
    total, count = 0.0, 0.0
    with torch.no_grad():
        for batch in _by_length(model, lessons):
            losses, units = _losses(model, student, recipe, batch)
            total, count = total + float(losses.sum()), count + float(units.sum())
    return round(total / max(count, 1), 6)


def agreement_with_teacher(
    model: Model, student: Student, recipe: DistilRecipe, lessons: Sequence[Lesson]
) -> float | None:
    """Return the mean over texts of Spearman's correlation with the weights that were taught."""
    student.eval()
    found: list[float] = []
    with torch.no_grad():
        for batch in _by_length(model, lessons):
            inputs = (batch.ids, batch.types, batch.attention, batch.predicted)
            outputs = student(model.network.get_input_embeddings(), *inputs)
            weights = batch.weights.abs() if recipe.target == "absolute" else batch.weights
            table = zip(scores_of(outputs).cpu(), weights.cpu(), batch.words.cpu(), strict=True)
            for scores, taught, words in table:
                pair = scores[words].numpy(), taught[words].numpy()
                if all(len(np.unique(values)) > 1 for values in pair):
                    found.append(float(spearmanr(*pair).statistic))
    return round(float(np.mean(found)), 4) if found else None


def _by_length(model: Model, lessons: Sequence[Lesson]) -> Iterator[LessonBatch]:
    order = sorted(lessons, key=lambda lesson: len(lesson.encoding.ids))
    for start in range(0, len(order), _AT_ONCE):
        yield collate_lessons(model, order[start : start + _AT_ONCE])


def _halves(student: Student) -> dict[str, torch.Tensor]:
    return {name: value.detach().half().cpu() for name, value in student.state_dict().items()}


def _write(weights: dict[str, torch.Tensor], trained: Trained, path: Path) -> None:
    from safetensors.torch import save

    # One entry alone: safetensors writes several in any order, and the same seed in other bytes.
    replace_file(path, save(weights, {"trained": json.dumps(asdict(trained))}))


def read_trained(path: Path) -> Trained | None:
    """Return what is known of a network that a stopped command had finished, if it had."""
    if not path.is_file():
        return None
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        facts = json.loads(file.metadata()["trained"])
    curves = {name: tuple(facts[name]) for name in ("train_losses", "dev_losses")}
    return Trained(**facts | curves)
