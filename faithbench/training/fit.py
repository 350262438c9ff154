"""Fine-tune an encoder on a task: an adapter small enough to ship, or all weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from faithbench.core.errors import unknown
from faithbench.core.types import Progress
from faithbench.data.kinds import KINDS
from faithbench.models.encoding import inputs_of
from faithbench.models.evaluation import evaluate
from faithbench.models.model import Model
from faithbench.training.base import find_base, settle, start_model
from faithbench.training.card import card_facts, check_same_run, finish_card
from faithbench.training.items import (
    TrainingItem,
    TrainingSet,
    batches,
    collate_items,
    make_training_set,
    schedule,
)
from faithbench.training.objectives import ForwardPass, Objective, find_objective
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
    scores = KINDS[task.kind].scores
    if recipe.metric not in scores:
        raise unknown("score", recipe.metric, scores)
    objective = find_objective(recipe.objective)
    out.mkdir(parents=True, exist_ok=True)
    start = find_base(base)
    recipe = settle(recipe, start)
    facts = card_facts(splits, recipe, objective, start)
    check_same_run(facts, out)
    model = start_model(task, recipe, start, device)
    training_set = make_training_set(
        model, splits.train, progress, recipe.excerpts, alone=recipe.excerpts_alone
    )
    learner = _learner(model, objective.loss, recipe)

    def keep(state: TrainingState) -> None:
        if state.batch % every == 0:
            save_checkpoint(out, learner.parameters, learner.optimizer, state)

    state = load_checkpoint(out, learner.parameters, learner.optimizer)
    while not over(state.history, recipe):
        _train_epoch(learner, training_set, recipe, state, keep, progress)
        score = round(evaluate(model, splits.dev, progress)[recipe.metric], 4)
        state = TrainingState((*state.history, score))
        # Of epochs with equal scores the last one is kept: `over` counts from it, too.
        if score == max(state.history):
            save_best(model, recipe, start, out)
        keep(state)
    course = {
        "class_weights": training_set.weights,
        "left_out": training_set.left_out,
        "dev_by_epoch": list(state.history),
    }
    return finish_card(facts | course | weights_facts(recipe, out), splits, out, device, progress)


def over(history: Sequence[float], recipe: Recipe) -> bool:
    """Return whether all epochs are done, or the last `patience` of them were no better."""
    if len(history) >= recipe.epochs:
        return True
    best = max((epoch for epoch, score in enumerate(history) if score == max(history)), default=0)
    return len(history) - 1 - best >= recipe.patience


@dataclass(frozen=True, eq=False)
class Learner:
    """A model, its trainable weights by name, the loss they minimise, and their optimizer."""

    model: Model
    parameters: dict[str, torch.nn.Parameter]
    loss: Objective
    optimizer: torch.optim.Optimizer


def _learner(model: Model, loss: Objective, recipe: Recipe) -> Learner:
    trainable = {n: p for n, p in model.network.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(
        trainable.values(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
    )
    return Learner(model, trainable, loss, optimizer)


def _train_epoch(
    learner: Learner,
    training_set: TrainingSet,
    recipe: Recipe,
    state: TrainingState,
    keep: Callable[[TrainingState], None],
    progress: Progress,
) -> None:
    """Train on all batches of the next epoch, or on those that a killed run had left."""
    epoch = len(state.history)
    if state.batch == 0:  # else the checkpoint has restored the random numbers
        torch.manual_seed(recipe.seed * 1000 + epoch)
    todo = batches(training_set.items, recipe, epoch)
    total = recipe.epochs * len(todo)
    learner.model.network.train()
    for index in range(state.batch, len(todo)):
        rate = schedule(epoch * len(todo) + index, total, recipe.warmup)
        for group in learner.optimizer.param_groups:
            group["lr"] = recipe.learning_rate * rate
        learner.optimizer.zero_grad()
        _loss(learner, todo[index], training_set.weights).backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters.values(), 1.0)
        learner.optimizer.step()
        keep(TrainingState(state.history, index + 1))
        progress(f"epoch {epoch + 1}/{recipe.epochs}", index + 1, len(todo))
    learner.model.network.eval()


def _loss(
    learner: Learner, items: Sequence[TrainingItem], weights: tuple[float, ...] | None
) -> torch.Tensor:
    """Run the network on a batch and return what the objective makes of it."""
    model = learner.model
    batch = collate_items(model, items, weights)
    outputs = model.network(**inputs_of(model.network, batch.ids, batch.types, batch.attention))
    forward = ForwardPass(tuple(outputs[name] for name in model.outputs))
    return learner.loss(batch, forward)
