"""Fine-tune an encoder on a task: an adapter small enough to ship, or all weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Progress
from faithbench.data.dataset import Dataset
from faithbench.data.rationales import rationale_coverage
from faithbench.models.model import Model
from faithbench.training.base import find_base, settle, start_model
from faithbench.training.card import card_facts, check_same_run, claimed, finish_card
from faithbench.training.dev_metric import find_dev_metric
from faithbench.training.forward import forward, make_readable
from faithbench.training.items import (
    TrainingItem,
    TrainingSet,
    batches,
    collate_items,
    make_training_set,
    schedule,
)
from faithbench.training.objectives import Objective, find_objectives
from faithbench.training.objectives.protocol import Capture, added_labels, needs_rationale, prepared
from faithbench.training.recipe import Recipe, Splits, with_labels
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
    metric = find_dev_metric(recipe.metric, task.kind)
    objectives = find_objectives(recipe.objectives)
    losses, added = objectives.losses, added_labels(objectives.losses)
    _check_rationales(splits.train, losses)
    start = find_base(base, recipe)
    recipe = settle(recipe, start)
    facts = card_facts(splits, recipe, objectives, start)
    check_same_run(facts, out)
    train = with_labels(splits.train, added)
    model = start_model(train.task, recipe, start, device, splits)
    make_readable(model, objectives.captures)
    training_set = make_training_set(
        model, train, progress, recipe.excerpts, alone=recipe.excerpts_alone, losses=losses
    )
    rationales = _rationales_read(train, losses, training_set)
    ready = tuple(prepared(loss, model, training_set) for loss in losses)
    learner = _learner(model, ready, objectives.captures, recipe)
    with claimed(facts, out):

        def keep(state: TrainingState) -> None:
            if state.batch % every == 0:
                save_checkpoint(out, learner.parameters, learner.optimizer, state)

        state = load_checkpoint(out, learner.parameters, learner.optimizer)
        while not over(state.history, recipe, metric.best):
            _train_epoch(learner, training_set, recipe, state, keep, progress)
            score = round(metric.score(model, splits.dev, losses, progress), 4)
            state = TrainingState((*state.history, score))
            # Of epochs with equal scores the last one is kept: `over` counts from it, too.
            if score == metric.best(state.history):
                save_best(model, recipe, start, out)
            keep(state)
        course = {
            "class_weights": training_set.weights,
            "left_out": training_set.left_out,
            "dev_by_epoch": list(state.history),
            **rationales,
        }
        facts |= course | weights_facts(recipe, out)
        return finish_card(facts, splits, out, device, progress, losses=losses)


def _check_rationales(train: Dataset, losses: Sequence[object]) -> None:
    """Refuse losses that learn from rationales where no training example has one."""
    if any(map(needs_rationale, losses)) and not any(e.rationale for e in train.examples):
        raise FaithbenchError(
            f"an objective learns from rationales, and no example of split {train.split!r} of "
            f"task {train.task.name} has one; choose a task with rationales"
        )


def _rationales_read(
    train: Dataset, losses: Sequence[object], training_set: TrainingSet
) -> dict[str, dict[str, int]]:
    """Count, for losses that learn from rationales, how many spans the model reads of them."""
    if not any(map(needs_rationale, losses)):
        return {}
    encodings = {item.encoding.example.id: item.encoding for item in training_set.items}
    coverage = rationale_coverage(encodings[e.id] for e in train.examples if e.id in encodings)
    if coverage.whole + coverage.cut == 0:
        raise FaithbenchError(
            f"an objective learns from rationales, and all {coverage.lost} spans lie beyond the "
            "tokens that the model reads; raise --max-tokens"
        )
    return {"rationale_spans": vars(coverage)}


def over(
    history: Sequence[float],
    recipe: Recipe,
    best_of: Callable[[Sequence[float]], float] = max,
) -> bool:
    """Return whether all epochs are done, or the last `patience` of them were no better."""
    if len(history) >= recipe.epochs:
        return True
    best = max((n for n, score in enumerate(history) if score == best_of(history)), default=0)
    return len(history) - 1 - best >= recipe.patience


@dataclass(frozen=True, eq=False)
class Learner:
    """A model, its trainable weights by name, the losses they minimise, and their optimizer."""

    model: Model
    parameters: dict[str, torch.nn.Parameter]
    losses: tuple[Objective, ...]
    captures: frozenset[Capture]
    optimizer: torch.optim.Optimizer


def _learner(
    model: Model, losses: tuple[Objective, ...], captures: frozenset[Capture], recipe: Recipe
) -> Learner:
    trainable = {n: p for n, p in model.network.named_parameters() if p.requires_grad}
    optimizer = torch.optim.AdamW(
        trainable.values(),
        lr=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        amsgrad=recipe.amsgrad,
    )
    return Learner(model, trainable, losses, captures, optimizer)


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
        loss = _loss(learner, todo[index], training_set.weights)
        if not torch.isfinite(loss):
            raise FaithbenchError(
                f"the loss is {loss.item()} in batch {index + 1} of epoch {epoch + 1}; "
                "choose a lower --learning-rate, or a lower weight of the objective"
            )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learner.parameters.values(), 1.0)
        learner.optimizer.step()
        keep(TrainingState(state.history, index + 1))
        progress(f"epoch {epoch + 1}/{recipe.epochs}", index + 1, len(todo))
    learner.model.network.eval()


def _loss(
    learner: Learner, items: Sequence[TrainingItem], weights: tuple[float, ...] | None
) -> torch.Tensor:
    """Run the network on a batch and add up what the objectives make of it."""
    batch = collate_items(learner.model, items, weights)
    seen = forward(learner.model, batch, learner.captures)
    first, *rest = (loss(batch, seen) for loss in learner.losses)
    return sum(rest, first)
