"""Fine-tune an encoder on a task: an adapter small enough to ship, or all weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from faithbench.core.errors import unknown
from faithbench.core.types import Progress
from faithbench.models.encoding import inputs_of, pad_rows
from faithbench.models.evaluation import ANSWER_SCORES, CLASS_SCORES, evaluate
from faithbench.models.model import Model
from faithbench.training.base import find_base, settle, start_model
from faithbench.training.card import card_facts, check_same_run, finish_card
from faithbench.training.items import TrainingItem, TrainingSet, batches, make_lesson, schedule
from faithbench.training.recipe import Recipe, Splits
from faithbench.training.saving import (
    TrainingState,
    load_checkpoint,
    save_best,
    save_checkpoint,
    weights_facts,
)

EVERY = 200
"""Batches between two checkpoints."""


def fit(
    splits: Splits,
    recipe: Recipe,
    out: Path,
    progress: Progress,
    *,
    base: str | None = None,
    device: str = "auto",
    every: int = EVERY,
) -> dict[str, Any]:
    """Train a model into `out` and return its card; continues where a killed run stopped."""
    task = splits.train.task
    scores = ANSWER_SCORES if task.kind == "qa" else CLASS_SCORES
    if recipe.metric not in scores:
        raise unknown("score", recipe.metric, scores)
    out.mkdir(parents=True, exist_ok=True)
    start = find_base(base)
    recipe = settle(recipe, start)
    facts = card_facts(splits, recipe, start)
    check_same_run(facts, out)
    model = start_model(task, recipe, start, device)
    lesson = make_lesson(
        model, splits.train, progress, recipe.excerpts, alone=recipe.excerpts_alone
    )
    learner = _learner(model, recipe)

    def keep(place: TrainingState) -> None:
        if place.batch % every == 0:
            save_checkpoint(out, learner.parameters, learner.optimizer, place)

    place = load_checkpoint(out, learner.parameters, learner.optimizer)
    while not over(place.history, recipe):
        _train_epoch(learner, lesson, recipe, place, keep, progress)
        score = round(evaluate(model, splits.dev, progress)[recipe.metric], 4)
        place = TrainingState((*place.history, score))
        if score == max(place.history):
            save_best(model, recipe, start, out)
        keep(place)
    found = {
        "class_weights": lesson.weights,
        "left_out": lesson.left_out,
        "dev_by_epoch": list(place.history),
    }
    return finish_card(facts | found | weights_facts(recipe, out), splits, out, device, progress)


def over(history: Sequence[float], recipe: Recipe) -> bool:
    """Say whether all epochs are done, or the last `patience` of them were no better."""
    if len(history) >= recipe.epochs:
        return True
    best = max((epoch for epoch, score in enumerate(history) if score == max(history)), default=0)
    return len(history) - 1 - best >= recipe.patience


@dataclass(frozen=True, eq=False)
class Learner:
    """A model, those of its weights that learn, and their optimizer."""

    model: Model
    parameters: dict[str, torch.nn.Parameter]
    optimizer: torch.optim.Optimizer


def _learner(model: Model, recipe: Recipe) -> Learner:
    learning = {n: p for n, p in model.network.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(
        learning.values(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    return Learner(model, learning, optimizer)


def _train_epoch(
    learner: Learner,
    lesson: TrainingSet,
    recipe: Recipe,
    place: TrainingState,
    keep: Callable[[TrainingState], None],
    progress: Progress,
) -> None:
    """Go through all batches once, or through those that a killed run had left."""
    epoch = len(place.history)
    if place.batch == 0:  # else the checkpoint has restored the random numbers
        torch.manual_seed(recipe.seed * 1000 + epoch)
    todo = batches(lesson.items, recipe, epoch)
    total = recipe.epochs * len(todo)
    learner.model.network.train()
    for index in range(place.batch, len(todo)):
        rate = schedule(epoch * len(todo) + index, total, recipe.warmup)
        for group in learner.optimizer.param_groups:
            group["lr"] = recipe.learning_rate * rate
        learner.optimizer.zero_grad()
        _loss(learner.model, todo[index], lesson.weights).backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters.values(), 1.0)
        learner.optimizer.step()
        keep(TrainingState(place.history, index + 1))
        progress(f"epoch {epoch + 1}/{recipe.epochs}", index + 1, len(todo))
    learner.model.network.eval()


def _loss(
    model: Model, batch: Sequence[TrainingItem], weights: tuple[float, ...] | None
) -> torch.Tensor:
    """Return the cross-entropy, the mean of start's and end's for a question answerer."""
    rows = [(item.encoding.ids, item.encoding.types) for item in batch]
    arrays = pad_rows(rows, int(model.network.config.pad_token_id))
    ids, types, attention = (torch.tensor(a, device=model.device) for a in arrays)
    outputs = model.network(**inputs_of(model.network, ids, types, attention))
    gold = torch.tensor([item.targets for item in batch], device=model.device)
    scale = None if weights is None else torch.tensor(weights, device=model.device)
    losses = []
    for column, head in enumerate(model.outputs):
        logits = outputs[head]
        if len(model.outputs) > 1:  # padding is no answer
            logits = logits.masked_fill(attention == 0, -torch.inf)
        losses.append(F.cross_entropy(logits, gold[:, column], weight=scale))
    return torch.stack(losses).mean()
