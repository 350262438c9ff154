"""The record of a network itself: what it gets right, and its saliency level by level.

One JSON file per network and texts, closed to unknown keys, found again by the digest of both.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, Literal

from pydantic import Field, ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import digest_of, reason, replace_file, slug
from faithbench.core.rounding import significant
from faithbench.core.schema import Count, Facts, describe_error
from faithbench.core.seals import parse_sealed, seal_json
from faithbench.data.dataset import Dataset
from faithbench.data.kinds.classification import class_scores
from faithbench.metrics.plausibility import tpr_drop
from faithbench.models.evaluation import outcomes
from faithbench.models.model import Model
from faithbench.studies.reproduction.values import RecordRef
from faithbench.training.level_saliency import (
    class_figures,
    level_figures,
    level_words,
    removal_outcomes,
)

SCHEMA: Final = 1
VERSION: Final = 3
"""Raised when a figure is measured or kept in another way: older files are made again."""


class NetworkFigures(Facts):
    """Scores of a network on the texts `ids`; `right` is 1 where it finds the label.

    Precision, recall and F1 are of the last class. `saliency` is empty where it was not asked for:
    the share of marked, and of other words with a positive gradient at each level, and the share
    of labels that are found before and after the marked words are deleted. `by_text` has what each
    text contributes, for tests: the share of its own words, or whether its label is found.
    """

    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")
    version: int = VERSION
    task: str
    task_version: int
    data_sha256: str
    model: str
    weights_sha256: str
    n: Count
    ids: tuple[str, ...]
    right: tuple[int, ...]
    scores: dict[str, float]
    saliency: dict[str, float | None] = Field(default_factory=dict)
    by_text: dict[str, dict[str, float]] = Field(default_factory=dict)

    @property
    def by_id(self) -> dict[str, float]:
        """Whether each text is right, by its id."""
        return {name: float(value) for name, value in zip(self.ids, self.right, strict=True)}


def figures_of(
    model: Model, data: Dataset, folder: Path, *, saliency: bool
) -> tuple[NetworkFigures, RecordRef]:
    """Return the figures of a network, measured unless they are there."""
    ids = [example.id for example in data.examples]
    digest = digest_of([model.sha256, data.task.name, data.task.version, data.sha256, ids, VERSION])
    kind = "saliency" if saliency else "scores"
    path = folder / f"{slug(model.public_name)}-{kind}-{digest[:8]}.json"
    if not path.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        made = _measure(model, data, saliency)
        replace_file(path, seal_json(made.model_dump(by_alias=True)).encode())
    content = path.read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    return _read(path, content), RecordRef(f"{folder.name}/{path.name}", sha256)


def _measure(model: Model, data: Dataset, saliency: bool) -> NetworkFigures:
    task = data.task
    gold = [example.label for example in data.examples]
    predicted = outcomes(model, data)
    scores = class_scores(predicted, gold, len(task.labels))
    positive = class_figures(predicted, gold, len(task.labels) - 1)
    scores |= {"precision": positive.precision, "recall": positive.recall, "f1": positive.f1}
    figures, by_text = _saliency(model, data) if saliency else ({}, {})
    return NetworkFigures(
        task=task.name,
        task_version=task.version,
        data_sha256=data.sha256,
        model=model.public_name,
        weights_sha256=model.weights_sha256,
        n=len(gold),
        ids=tuple(example.id for example in data.examples),
        right=tuple(int(p == g) for p, g in zip(predicted, gold, strict=True)),
        scores={name: significant(value, 9) for name, value in scores.items()},
        saliency=figures,
        by_text=by_text,
    )


def _saliency(
    model: Model, data: Dataset
) -> tuple[dict[str, float | None], dict[str, dict[str, float]]]:
    """Return the figures of all levels and of removal, and what each text contributes to them."""
    found: dict[str, float | None] = {}
    by_text: dict[str, dict[str, float]] = {}
    for level, texts in level_words(model, data).items():
        figures = level_figures(list(texts.values()))
        found |= {level: figures.marked, f"{level}_unmarked": figures.unmarked}
        for name, words in texts.items():
            assert words.rationale is not None  # only texts with one are measured
            for kind, chosen in (("", words.rationale), ("_unmarked", ~words.rationale)):
                if chosen.any():
                    share = float((words.scores[chosen] > 0).mean())
                    by_text.setdefault(f"{level}{kind}", {})[name] = significant(share, 6)
    outcomes_of = removal_outcomes(model, data)
    before, after = ([pair[place] for pair in outcomes_of.values()] for place in (0, 1))
    found |= {
        "tpr_before": sum(before) / len(before) if before else None,
        "tpr_after": sum(after) / len(after) if after else None,
        "tpr_drop": tpr_drop(before, after),
    }
    for place, name in enumerate(("tpr_before", "tpr_after")):
        by_text[name] = {text: float(pair[place]) for text, pair in outcomes_of.items()}
    rounded = {
        name: None if value is None else significant(value, 9) for name, value in found.items()
    }
    return rounded, by_text


def _read(path: Path, content: bytes) -> NetworkFigures:
    try:
        return NetworkFigures.model_validate(parse_sealed(content))
    except ValidationError as error:
        why = describe_error(error)
    except ValueError as error:
        why = reason(error)
    raise FaithbenchError(f"figures {path}: {why}; remove the file to measure again")
