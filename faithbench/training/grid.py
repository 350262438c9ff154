"""Train once per value of an objective's setting, and choose the value on dev."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import replace_file
from faithbench.core.spec import parse_explainers
from faithbench.core.types import Progress
from faithbench.models.model import load_model
from faithbench.training.base import find_base, settle
from faithbench.training.card import card_facts, finished
from faithbench.training.dev_metric import find_dev_metric
from faithbench.training.fit import fit
from faithbench.training.objectives import find_objective, find_objectives
from faithbench.training.recipe import Recipe, Splits

FILE = "grid.json"


@dataclass(frozen=True)
class Grid:
    """A setting of one objective, and the values to try, as they were typed."""

    objective: str
    setting: str
    values: tuple[str, ...]


def read_grid(text: str, objectives: tuple[str, ...]) -> Grid:
    """Read `weight=0.01,0.1,1`, or `saloss.weight=...` where several objectives have a weight."""
    key, equals, listed = text.partition("=")
    owner, _, setting = key.strip().rpartition(".")
    values = tuple(value.strip() for value in listed.split(",") if value.strip())
    if not equals or not setting or not values:
        raise FaithbenchError(f"--grid {text!r} should be a setting and values: weight=0.01,0.1,1")
    found = [find_objective(one) for one in objectives]
    having = [one.name for one in found if setting in one.settings]
    if owner and owner not in having:
        raise unknown("objective with that setting", owner, having or ["(none has it)"])
    if not owner and len(having) != 1:
        names = ", ".join(having) or "none of the objectives"
        raise FaithbenchError(
            f"--grid {text!r}: {names} can be set by {setting!r}; name one with --objective, and "
            f"write name.{setting}=... if several have it"
        )
    grid = Grid(owner or having[0], setting, tuple(dict.fromkeys(values)))
    for value in grid.values:
        find_objectives(_with_value(objectives, grid, value))  # a bad value is refused at once
    return grid


def fit_grid(
    splits: Splits,
    recipe: Recipe,
    grid: Grid,
    out: Path,
    progress: Progress,
    *,
    metric: str | None = None,
    base: str | None = None,
    device: str = "auto",
) -> dict[str, Any]:
    """Train into one folder per value, choose by a dev metric, and write down the whole grid.

    Without a `metric` it is the one that chooses epochs. What is trained already stays: a killed
    grid continues where it stopped. Of equal values the first is chosen.
    """
    chooser = find_dev_metric(metric or recipe.metric, splits.train.task.kind)
    tried: list[dict[str, Any]] = []
    for value in grid.values:
        folder = out / f"{grid.setting}={value}"
        objectives = _with_value(recipe.objectives, grid, value)
        one = replace(recipe, objectives=objectives)
        card = _card_of(splits, one, folder, base) or fit(
            splits, one, folder, progress, base=base, device=device
        )
        task = splits.dev.task
        model = load_model(str(folder), labels=task.labels, kind=task.kind, device=device)
        losses = find_objectives(objectives).losses
        dev = chooser.score(model, splits.dev, losses, progress)
        if not math.isfinite(dev):
            raise FaithbenchError(f"{chooser.name} is {dev} for {folder}; choose by another metric")
        tried.append(
            {
                "value": value,
                "folder": folder.name,
                "dev": round(dev, 4),
                "dev_by_epoch": card["dev_by_epoch"],
                "test": card["test"],
            }
        )
    best = chooser.best([trial["dev"] for trial in tried])
    chosen = next(trial for trial in tried if trial["dev"] == best)
    report = {
        "objective": grid.objective,
        "setting": grid.setting,
        "metric": chooser.name,
        "tried": tried,
        "chosen": chosen["value"],
        "folder": chosen["folder"],
    }
    replace_file(out / FILE, (json.dumps(report, indent=2, sort_keys=True) + "\n").encode())
    return report


def _with_value(objectives: tuple[str, ...], grid: Grid, value: str) -> tuple[str, ...]:
    """Return the texts of all objectives, the grid's one with the value in place."""
    texts = []
    for text in objectives:
        ((name, settings),) = parse_explainers(text, noun="objective")
        if name == grid.objective:
            settings[grid.setting] = value
        written = ",".join(f"{key}={setting}" for key, setting in settings.items())
        texts.append(f"{name}:{written}" if written else name)
    return tuple(texts)


def _card_of(splits: Splits, recipe: Recipe, folder: Path, base: str | None) -> Any:
    """Return the card of a training that has ended already, if the folder holds just that."""
    start = find_base(base)
    objectives = find_objectives(recipe.objectives)
    return finished(card_facts(splits, settle(recipe, start), objectives, start), folder)
