"""The card of a trained model: data, base and recipe, and the scores it reaches."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import locked, replace_file
from faithbench.core.seals import seal_json
from faithbench.core.types import Progress
from faithbench.data.dataset import Dataset
from faithbench.data.kinds import KINDS
from faithbench.models.evaluation import evaluate
from faithbench.models.files.weights import read_card
from faithbench.models.model import load_model
from faithbench.training.base import Base
from faithbench.training.dev_metric import score_added
from faithbench.training.objectives import Objectives
from faithbench.training.objectives.protocol import added_labels
from faithbench.training.recipe import Recipe, Splits
from faithbench.training.saving import forget_checkpoint

_NOTE = "run.json"


def card_facts(
    splits: Splits, recipe: Recipe, objectives: Objectives, base: Base
) -> dict[str, Any]:
    """Return the part of a card that is known before the first step.

    Two trainings with equal facts end with equal weights, so this is also what a killed run must
    share with the one that continues it.
    """
    task = splits.train.task
    added = added_labels(objectives.losses)
    return {
        "task": task.name,
        "task_version": task.version,
        "kind": task.kind,
        "labels": [*task.labels, *added],
        **({"added_labels": list(added)} if added else {}),
        "base": base.name,
        "base_sha256": base.sha256,
        "recipe": _recipe_facts(recipe, objectives),
        "data": {
            name: {"source": d.source, "split": d.split, "n": len(d.examples), "sha256": d.sha256}
            for name, d in vars(splits).items()
        },
    }


def _recipe_facts(recipe: Recipe, objectives: Objectives) -> dict[str, Any]:
    """Return the settings of a training as JSON has them."""
    facts: dict[str, Any] = json.loads(json.dumps(asdict(recipe)))
    # Cards of models trained before there was a choice do not name cross-entropy: stay like them.
    del facts["objectives"]
    unused = () if recipe.arch else ("arch", "vectors", "width")
    for name in (*unused, *(() if recipe.projection else ("projection", "amsgrad"))):
        del facts[name]
    if not objectives.is_default:
        facts["objectives"] = [one.facts() for one in objectives.selected]
    return facts


def check_same_run(facts: dict[str, Any], out: Path, noun: str = "a trained model") -> None:
    """Refuse a folder that holds something finished, or a training with other facts."""
    note = out / _NOTE
    if is_finished(out):
        raise FaithbenchError(f"{out} already holds {noun}; choose another --out")
    if note.exists() and note.read_text() != _note_text(facts):
        raise FaithbenchError(
            f"{out} holds a training with other data or settings; choose another --out"
        )


@contextmanager
def claimed(facts: dict[str, Any], out: Path, noun: str = "a trained model") -> Iterator[None]:
    """Claim a folder for a training, which nothing refuses any more, as long as it runs."""
    out.mkdir(parents=True, exist_ok=True)
    with locked(out) as is_ours:
        if not is_ours:
            raise FaithbenchError(
                f"another process trains into {out}; wait for it, or choose another --out"
            )
        check_same_run(facts, out, noun)  # another may have ended in the meantime
        # In one step: half a note would be taken for that of another training.
        replace_file(out / _NOTE, _note_text(facts).encode())
        yield


def end_run(out: Path) -> None:
    """Mark what a folder holds as finished."""
    (out / _NOTE).unlink()


def _note_text(facts: dict[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True)


def is_finished(out: Path) -> bool:
    """Return whether a folder holds a trained model with its card."""
    # `finish_card` removes the note last: while it is there, a card has not been measured yet.
    return (out / "card.json").exists() and not (out / _NOTE).exists()


def finished(facts: dict[str, Any], out: Path) -> dict[str, Any] | None:
    """Return the card of a folder whose training has ended, if it had these facts."""
    if not is_finished(out):
        return None
    card = read_card(out)
    same = all(card.get(key) == value for key, value in json.loads(json.dumps(facts)).items())
    return card if same else None


def finish_card(
    facts: dict[str, Any],
    splits: Splits,
    out: Path,
    device: str,
    progress: Progress,
    *,
    losses: Sequence[object] = (),
) -> dict[str, Any]:
    """Score the written files, not the weights in memory, and write the card.

    Where `losses` have added a class, the share of test items of that class that are found as
    such is told as well, by the name of the class.
    """
    write_card(facts, out)  # an adapter does not load without its card
    card = facts | measured(out, splits.train, splits.test, device, progress)
    if added := added_labels(losses):
        model = load_model(str(out), labels=splits.test.task.labels, device=device)
        found = score_added(model, splits.test, losses, progress)
        card["test_added"] = dict.fromkeys(added, None if found is None else round(found, 4))
    write_card(card, out)
    end_run(out)
    forget_checkpoint(out)
    return card


def measured(
    folder: Path, train: Dataset, test: Dataset, device: str, progress: Progress
) -> dict[str, Any]:
    """Score a saved model on test, next to train's majority class and the published scores."""
    task = test.task
    model = load_model(str(folder), labels=task.labels, kind=task.kind, device=device)
    return {
        "test": _rounded(evaluate(model, test, progress)),
        "majority": majority_scores(train, test),
        "published": [score.model_dump() for score in task.published],
    }


def majority_scores(train: Dataset, test: Dataset) -> dict[str, float] | None:
    """Score the constant prediction of train's largest class, or of no answer to any question.

    None for a task whose questions all have an answer. Ties go to the first class.
    """
    task = test.task
    scores = KINDS[task.kind].majority(train.examples, test.examples, task.labels)
    return None if scores is None else _rounded(scores)


def write_card(card: dict[str, Any], folder: Path) -> None:
    """Write a card as sorted JSON, with its own sha256."""
    replace_file(folder / "card.json", seal_json(card).encode())


def _rounded(scores: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in scores.items()}
