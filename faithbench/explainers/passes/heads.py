"""Which attention heads are syntactic or positional: stored statistics, and masks from them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import cache_folder, file_sha256
from faithbench.core.schema import Closed

if TYPE_CHECKING:
    from faithbench.models.model import Model


RELATIONS = ("nsubj", "dobj", "amod", "advmod")
Matrix = tuple[tuple[float, ...], ...]


class RelationFacts(Closed):
    """One relation: how often each head points along it, either way, and the best fixed offset.

    `best_offset_share` is max(lambda_k): how often always answering the commonest distance
    between the two words would be right. A head must beat it.
    """

    pairs: int
    best_offset: int
    best_offset_share: float
    to_head: Matrix
    to_dependent: Matrix


class PositionFacts(Closed):
    """Each head's commonest relative position (0 left out) and how often it attends there."""

    rows: int
    best_offset: tuple[tuple[int, ...], ...]
    share: Matrix


class Trial(Closed):
    """One pair of thresholds that calibration saw, and what it gave."""

    xi_syntactic: float
    xi_positional: float
    heads: int
    aopc: float


class Calibration(Closed):
    """The whole grid that calibration saw, and on what: texts cut at `max_tokens`, if known."""

    split: str
    examples: int
    max_tokens: int | None = None
    data_sha256: str
    grid: tuple[Trial, ...]


class HeadStatistics(Closed):
    """What `faithbench heads` measures of one model on one task."""

    schema_version: int = 1
    task: str
    model: str
    weights_sha256: str
    parser: str
    split: str
    sentences: int
    data_sha256: str
    relations: dict[str, RelationFacts]
    positions: PositionFacts
    thresholds: dict[str, tuple[float, float]]
    calibration: Calibration | None = None


def masks_at(
    facts: HeadStatistics, xi_syntactic: float, xi_positional: float
) -> list[list[list[int]]]:
    """Return the masks [syntactic, positional] of [blocks][heads] (Song et al., Eq. 6-8).

    The syntactic mask counts the relations that a head follows, in either direction, more
    often than the best fixed offset plus xi; the positional mask is 1 where a head's
    commonest offset exceeds its threshold.
    """
    shape = facts.positions.share
    syntactic = [[0] * len(row) for row in shape]
    for relation in facts.relations.values():
        bar = relation.best_offset_share + xi_syntactic
        for b, row in enumerate(shape):
            for h in range(len(row)):
                syntactic[b][h] += max(relation.to_head[b][h], relation.to_dependent[b][h]) > bar
    positional = [[int(share > xi_positional) for share in row] for row in shape]
    return [syntactic, positional]


def named_masks(
    facts: HeadStatistics, thresholds: str, mask: str, seed: int = 0
) -> list[list[list[int]]]:
    """Return the head weights [groups][blocks][heads] for named thresholds and a kind of mask."""
    if thresholds not in facts.thresholds:
        raise FaithbenchError(
            f"thresholds {thresholds!r} are not among {', '.join(sorted(facts.thresholds))}"
        )
    syntactic, positional = masks_at(facts, *facts.thresholds[thresholds])
    kinds = {
        "both": [syntactic, positional],
        "syntactic": [syntactic],
        "positional": [positional],
        "random": [_shuffled(syntactic, positional, seed)],
    }
    if mask not in kinds:
        raise FaithbenchError(f"mask {mask!r} is not one of {', '.join(kinds)}, ones")
    groups = kinds[mask]
    if count_heads(groups) == 0:
        raise FaithbenchError(
            f"lrp-mask: mask={mask} with thresholds={thresholds} selects no head of model "
            f"{facts.model!r}; use thresholds=calibrated or mask=ones"
        )
    return groups


def count_heads(groups: list[list[list[int]]]) -> int:
    """Return how many heads any group selects."""
    blocks = range(len(groups[0]))
    return sum(any(head) for b in blocks for head in zip(*(g[b] for g in groups), strict=True))


def _shuffled(first: list[list[int]], second: list[list[int]], seed: int) -> list[list[int]]:
    """Draw as many heads as both masks select together (the paper's Random baseline)."""
    heads = [(b, h) for b, row in enumerate(first) for h in range(len(row))]
    drawn = set(random.Random(seed).sample(heads, count_heads([first, second])))
    return [[int((b, h) in drawn) for h in range(len(row))] for b, row in enumerate(first)]


def find_heads(model: Model) -> HeadStatistics:
    """Load the statistics of a model: next to its weights, else from the user's cache."""
    facts = read_heads(_heads_path(model))
    if facts.weights_sha256 != model.weights_sha256:
        raise FaithbenchError(
            f"head statistics {_heads_path(model).name} belong to other weights than model "
            f"{model.name!r}; run: faithbench heads --task <task> --model {model.name}"
        )
    return facts


def heads_sha256(model: Model) -> str:
    """Digest the statistics file that a model's masks come from."""
    return file_sha256(_heads_path(model))


def _heads_path(model: Model) -> Path:
    next_to_weights = [model.folder / "heads.json"] if model.folder is not None else []
    for path in (*next_to_weights, cached_heads(model)):
        if path.is_file():
            return path
    raise FaithbenchError(
        f"lrp-mask needs head statistics of model {model.name!r} and there are none; run: "
        f"faithbench heads --task <task> --model {model.name}, or use lrp-mask:mask=ones"
    )


def cached_heads(model: Model) -> Path:
    """Return where a model's statistics are kept when it has no folder of ours."""
    return cache_folder() / "heads" / f"{model.weights_sha256[:16]}.json"


def read_heads(path: Path) -> HeadStatistics:
    """Read a statistics file, naming the field that is wrong."""
    try:
        return HeadStatistics.model_validate_json(path.read_text())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FaithbenchError(f"head statistics {path}: {where}: {first['msg']}") from None


def write_heads(facts: HeadStatistics, path: Path) -> None:
    """Write statistics as JSON, replacing the file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    temporary.write_text(facts.model_dump_json(indent=1) + "\n")
    temporary.replace(path)
