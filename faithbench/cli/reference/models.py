"""The card of a model: of a trained one what its card.json says, of another one where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from faithbench.cli.reference.card import Card
from faithbench.core.errors import FaithbenchError
from faithbench.data.hub import hub_reachable
from faithbench.data.hub_faults import telling_faults
from faithbench.data.tasks import load_task, task_names


def bundled_models() -> tuple[str, ...]:
    """Return the names of the models that ship with the package."""
    from faithbench.models.files.weights import BUNDLED

    found = sorted(BUNDLED.glob("*/adapter_model.safetensors"))
    return tuple(f"bundled:{path.parent.name}" for path in found)


def model_card(name: str) -> Card:
    """Return the card of a model: `bundled:<task>`, a folder, or a name on the hub."""
    from faithbench.models.files.weights import locate, read_card

    located = locate(name, option="the name")
    folder = located.adapter or located.folder
    if folder is None:
        return Card(name, "a model of the Hugging Face hub", facts=tuple(_published(name)))
    path = folder / "card.json"
    if not path.is_file():
        place = (("weights", located.base), ("card", "none: `faithbench train` writes one"))
        return Card(name, "a folder without a card", facts=place)
    card = read_card(path.parent)
    try:
        task, kind = card["task"], card["kind"]
        facts = (*_trained(card), *_extras(path.parent, f"-t {task} --model {name}"))
    except KeyError as error:
        raise FaithbenchError(
            f"{path} does not tell {error}, as cards of `faithbench train` do; train it again"
        ) from error
    return Card(
        name,
        f"a {kind} model of task {task}",
        facts=facts,
        commands=(f"faithbench run -e attention,random -t {task} --model {name}",),
    )


def _published(name: str) -> Iterator[tuple[str, str]]:
    """Yield which tasks name a model of the hub, how its weights are stored, and what may stand in.

    The revision is the one that the tasks name.
    """
    with_models = [task for task in map(load_task, task_names()) if "hub" in task.models]
    tasks = [task for task in with_models if task.models["hub"].name == name]
    if tasks:
        yield "model of", f"{', '.join(task.name for task in tasks)}, for the hub's data"
    revision = tasks[0].models["hub"].revision if tasks else None
    yield "revision", revision or "main, which may change"
    yield "weights", _stored_as(name, revision)
    others = {model.name for task in tasks for model in task.models.values()} - {name}
    if others:
        yield "or take", f"{', '.join(sorted(others))}, which has safetensors"


def _stored_as(name: str, revision: str | None) -> str:
    """Ask the hub whether a model has safetensors, or only a pickle."""
    from huggingface_hub import list_repo_files

    if not hub_reachable():
        return "not known: the hub does not answer"
    with telling_faults(f"model {name!r}", revision, "choose another"):
        files = list_repo_files(name, revision=revision)
    if not {"model.safetensors", "model.safetensors.index.json"}.isdisjoint(files):
        return "safetensors"
    return "no safetensors: its pickle is read as tensors alone, and no code in it runs"


def _trained(card: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    recipe, data = card["recipe"], card["data"]
    yield "labels", ", ".join(card["labels"])
    yield "base", card["base"]
    how = [recipe.get("method", "all weights")]
    for key in ("epochs", "learning_rate", "seed"):
        if key in recipe:
            how.append(f"{key.replace('_', ' ')} {recipe[key]}")
    yield "trained", ", ".join(how)
    objectives = [one["name"] for one in recipe.get("objectives", ())]
    yield "objectives", ", ".join(objectives) or "cross-entropy"
    for split in ("train", "test"):
        if split in data:
            yield split, f"{data[split]['n']} examples of the {data[split]['source']} source"
    yield "scores", scores_text(card["test"])
    if card.get("majority"):
        yield "majority", f"{scores_text(card['majority'])} for its largest class alone"
    for other in card.get("published", ()):
        yield "published", f"{other['metric']} {other['score']:g} by {other['model']}"


def _extras(folder: Path, options: str) -> Iterator[tuple[str, str]]:
    """Yield what lies next to the weights: head statistics, and students of explainers.

    `options` name task and model to the commands that make them.
    """
    heads = (folder / "heads.json").is_file()
    yield "heads", "known: lrp-mask runs" if heads else f"none: `faithbench heads {options}`"
    students = sorted(path.name for path in (folder / "students").glob("*/"))
    yield "students", ", ".join(students) or f"none for l2e: `faithbench distil {options}`"


def scores_text(scores: Mapping[str, float]) -> str:
    """Return scores in a line."""
    return ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
