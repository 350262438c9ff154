"""The card of a model: of a trained one what its card.json says, of another one where it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from faithbench.cli.reference.card import Card
from faithbench.core.files import read_object


def bundled_models() -> tuple[str, ...]:
    """Return the names of the models that ship with the package."""
    from faithbench.models.files.weights import BUNDLED

    found = sorted(BUNDLED.glob("*/adapter_model.safetensors"))
    return tuple(f"bundled:{path.parent.name}" for path in found)


def model_card(name: str) -> Card:
    """Return the card of a model: `bundled:<task>`, a folder, or a name on the hub."""
    from faithbench.models.files.weights import locate

    located = locate(name, option="show model")
    folder = located.adapter or located.folder
    path = None if folder is None else folder / "card.json"
    if path is None or not path.is_file():
        where = "a model of the Hugging Face hub" if folder is None else "a folder without a card"
        return Card(name, where, facts=tuple(_place(located.base, folder)))
    card = read_object(path)
    facts = (*_trained(card), *_extras(path.parent, name))
    return Card(
        name,
        f"a {card['kind']} model of task {card['task']}",
        facts=facts,
        commands=(f"faithbench run --task {card['task']} --model {name}",),
    )


def _place(base: str, folder: Path | None) -> Iterator[tuple[str, str]]:
    yield "weights", base
    if folder is not None:
        yield "card", "none: `faithbench train` writes one"


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
    yield "test", scores_text(card["test"])
    if card.get("majority"):
        yield "majority", f"{scores_text(card['majority'])} for its largest class alone"
    for other in card.get("published", ()):
        yield "published", f"{other['metric']} {other['score']:g} by {other['model']}"


def _extras(folder: Path, name: str) -> Iterator[tuple[str, str]]:
    """Yield what lies next to the weights: head statistics, and students of explainers."""
    heads = (folder / "heads.json").is_file()
    yield "heads", "known: lrp-mask runs" if heads else f"none: `faithbench heads --model {name}`"
    students = sorted(path.name for path in (folder / "students").glob("*/"))
    yield "students", ", ".join(students) or "none: `faithbench distil` makes one for l2e"


def scores_text(scores: Mapping[str, float]) -> str:
    """Return scores in a line."""
    return ", ".join(f"{name} {value:.3f}" for name, value in scores.items())
