"""Read a recipe from its file, and check that every name in it is known."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import read_toml, reason
from faithbench.core.schema import describe_error
from faithbench.core.spec import parse_explainers
from faithbench.data.tasks import load_task
from faithbench.metrics.registry import METRICS
from faithbench.studies.reproduction.claims import (
    ClaimSpec,
    Expression,
    atoms_of,
    expand,
    operands_of,
)
from faithbench.studies.reproduction.recipe import (
    CellSpec,
    HubSpec,
    Item,
    ModelSpec,
    PaperRecipe,
    cells_of,
)

MODEL_SCORES = ("accuracy", "macro_f1", "precision", "recall", "f1")
SALIENCY_SCORES = (
    "word", "intermediate", "decision",
    "word_unmarked", "intermediate_unmarked", "decision_unmarked",
    "tpr_before", "tpr_after", "tpr_drop",
)  # fmt: skip
PAIR_SCORES = ("both", "own_both", "own_agreement", "own_positive", "own_negative")
HEAD_SCORES = (
    "depth_syntactic", "depth_positional", "share_syntactic", "share_positional",
    "peak_nsubj", "peak_dobj", "peak_amod", "peak_advmod",
)  # fmt: skip
CURVES = tuple(f"{name}@{k}" for name in ("aopc", "lodds") for k in range(10, 100, 10))
"""AOPC and LOdds at one share of erased tokens, read from a row's curve."""
TAGS = tuple(
    f"pos:{tag}"
    for tag in (
        "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN",
        "PUNCT", "SCONJ", "SYM", "VERB", "X",
    )
)  # fmt: skip
"""Mean importance of words of one part of speech, by the universal tags."""
STUDIED = ("bilstm", "transformer")
"""The networks of the study of sparse attention."""
PROJECTED = r"all|softmax|sparsemax|entmax15|sparsegen:-?[0-9.]+"
"""Projections of their attention; a trend is over all of them."""
COSTS = ("seconds", "forward_equivalents")
"""Costs that a record has without a value per example."""


def read_recipe(path: Path) -> PaperRecipe:
    """Read a recipe and check every name in it; an error is one line that says what to fix."""
    try:
        recipe = PaperRecipe.model_validate(read_toml(path))
    except ValidationError as error:
        raise FaithbenchError(f"recipe {path}: {describe_error(error)}; fix it there") from error
    except (OSError, ValueError) as error:
        raise FaithbenchError(f"cannot read recipe {path}: {reason(error)}") from error
    try:
        _check(recipe)
    except FaithbenchError as error:
        raise FaithbenchError(f"recipe {path}: {error}; fix it there") from None
    return recipe


def _check(recipe: PaperRecipe) -> None:
    ids = [item.id for item in recipe.items]
    if twice := [name for index, name in enumerate(ids) if name in ids[:index]]:
        raise FaithbenchError(f"two items are called {twice[0]!r}")
    for spec in recipe.models.values():
        hub = spec.hub or HubSpec(name="none")
        for name, only in ((spec.task, spec.only), (hub.task or spec.task, hub.only)):
            task = load_task(name)
            if only and only not in task.labels:
                raise unknown(f"label of task {name}", only, task.labels)
    for item in recipe.items:
        if item.maps is not None:
            for name in item.maps.models:
                _model(recipe, item, name)
            for text in item.maps.explainers:
                _check_explainer(item, text)
            continue
        cells = cells_of(item)
        for cell in cells.values():
            _check_cell(recipe, item, cell)
        for claim in item.claims:
            whole = expand(claim)
            _check_counts(item, claim, whole)
            for atom in atoms_of(whole):
                _check_atom(item, cells, claim, atom)


def _model(recipe: PaperRecipe, item: Item, name: str | None) -> ModelSpec:
    if not name:
        raise FaithbenchError(f"{item.id} has a cell without a model")
    if name not in recipe.models:
        raise FaithbenchError(f"{item.id}: {unknown('model of the recipe', name, recipe.models)}")
    return recipe.models[name]


def _check_explainer(item: Item, text: str) -> None:
    from faithbench.explainers.registry import EXPLAINERS

    for name, _ in parse_explainers(text):
        if name not in EXPLAINERS:
            raise FaithbenchError(f"{item.id}: {unknown('explainer', name, EXPLAINERS)}")


def _check_cell(recipe: PaperRecipe, item: Item, cell: CellSpec) -> None:
    part = cell.part
    where = f"{item.id}, cell {cell.name!r}"
    measure = part.measure or "explanation"
    if measure == "study":
        if not (part.task and part.arch and part.projection and part.metric):
            raise FaithbenchError(f"{where} needs task, arch, projection and metric")
        try:
            load_task(part.task)
        except FaithbenchError as error:
            raise FaithbenchError(f"{where}: {error}") from None
        if part.arch not in STUDIED:
            raise FaithbenchError(f"{where}: {unknown('architecture', part.arch, STUDIED)}")
        if not re.fullmatch(PROJECTED, part.projection):
            raise FaithbenchError(f"{where}: no projection named {part.projection!r}")
        return
    spec = _model(recipe, item, part.model)
    if not part.metric:
        raise FaithbenchError(f"{where} has no metric")
    if part.label and part.label not in load_task(spec.task).labels:
        raise FaithbenchError(
            f"{where}: {unknown('label', part.label, load_task(spec.task).labels)}"
        )
    known: Mapping[str, tuple[str, ...]] = {
        "model": MODEL_SCORES,
        "saliency": SALIENCY_SCORES,
        "pair": PAIR_SCORES,
        "heads": HEAD_SCORES,
        "fresh": ("fresh_f1_topk", "fresh_f1_contiguous"),
        "explanation": (*METRICS, *COSTS, *CURVES, *TAGS),
    }
    if part.metric not in known[measure]:
        raise FaithbenchError(f"{where}: {unknown('metric', part.metric, known[measure])}")
    if measure == "pair" or part.who:
        if not (part.teacher and part.form):
            raise FaithbenchError(f"{where} needs teacher and form")
        _check_explainer(item, part.teacher)
    elif measure in ("explanation", "fresh"):
        if not part.explainer:
            raise FaithbenchError(f"{where} has no explainer")
        _check_explainer(item, part.explainer)


def _check_counts(item: Item, claim: ClaimSpec, whole: Expression) -> None:
    """Refuse a count of more statements than there are, at any depth."""
    if whole.count_of is not None and len(whole.count_of) < (whole.at_least or 0):
        raise FaithbenchError(
            f"{item.id}, claim {claim.says[:40]!r}: at_least is {whole.at_least} of "
            f"{len(whole.count_of)}"
        )
    for part in (*(whole.all_of or ()), *(whole.count_of or ())):
        _check_counts(item, claim, part)


def _check_atom(
    item: Item, cells: Mapping[str, CellSpec], claim: ClaimSpec, atom: Expression
) -> None:
    named = [operand for operand in operands_of(atom) if isinstance(operand, str)]
    for name in named:
        if name not in cells:
            raise FaithbenchError(
                f"{item.id}, claim {claim.says[:40]!r}: {unknown('cell', name, cells)}"
            )
    if atom.correlation and len(atom.correlation.of) != len(atom.correlation.by):
        raise FaithbenchError(f"{item.id}, claim {claim.says[:40]!r}: of and by differ in length")
    if (atom.correlation is not None) != (claim.test == "tau"):
        raise FaithbenchError(f"{item.id}, claim {claim.says[:40]!r}: correlation goes with tau")
    if (atom.within is not None) != (claim.test == "interval"):
        raise FaithbenchError(
            f"{item.id}, claim {claim.says[:40]!r}: same and not_above go with interval"
        )
