"""Which attention heads are syntactic or positional: stored statistics, and masks from them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from faithbench.core.errors import CannotServeError, FaithbenchError
from faithbench.core.files import cache_folder, file_sha256, replace_file
from faithbench.core.schema import Closed

if TYPE_CHECKING:
    from faithbench.models.model import Model


RELATIONS = ("nsubj", "dobj", "amod", "advmod")
Matrix = tuple[tuple[float, ...], ...]
Groups = list[list[list[int]]]
"""The weight of each head [groups][blocks][heads]; the groups are syntactic and positional."""
Thresholds = tuple[float, float] | None
"""The syntactic and the positional threshold, or None for no mask: all heads."""
Verdict = Literal["masking helps", "masking does not hurt", "masking does not help"]
"""The calibrated mask is better than none, is not worse, or there is none but all heads."""


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
    """One mask that calibration tried, and its mean AOPC; without thresholds, no mask.

    `error` is the standard error of the mean paired difference to no mask; `p_worse` and
    `p_better` are of one-sided signed-rank tests, after Holm over the masks of the grid. They are
    None where there is nothing to test, and in files of version 1.
    """

    xi_syntactic: float | None
    xi_positional: float | None
    heads: int
    aopc: float
    error: float | None = None
    p_worse: float | None = None
    p_better: float | None = None

    @property
    def thresholds(self) -> Thresholds:
        """Both thresholds, or None for no mask."""
        if self.xi_syntactic is None or self.xi_positional is None:
            return None
        return (self.xi_syntactic, self.xi_positional)


class Calibration(Closed):
    """The whole grid that calibration saw, and on what: texts cut at `max_tokens`, if known.

    Files of version 1 have no verdict: their grid lacks the trial without a mask.
    """

    split: str
    examples: int
    max_tokens: int | None = None
    data_sha256: str
    grid: tuple[Trial, ...]
    verdict: Verdict | None = None


class HeadStatistics(Closed):
    """What `faithbench heads` measures of one model on one task.

    Version 1 took the thresholds of the best AOPC; it is read as it is, and not written.
    Older files know their model by its weights alone.
    """

    schema_version: Literal[1, 2] = 2
    task: str
    model: str
    model_sha256: str | None = None
    weights_sha256: str
    parser: str
    split: str
    sentences: int
    data_sha256: str
    relations: dict[str, RelationFacts]
    positions: PositionFacts
    thresholds: dict[str, Thresholds]
    calibration: Calibration | None = None


def masks_at(facts: HeadStatistics, xi_syntactic: float, xi_positional: float) -> Groups:
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


def all_heads(facts: HeadStatistics) -> Groups:
    """Return one group of all heads, through which relevance passes as if there were no mask."""
    return [[[1] * len(row) for row in facts.positions.share]]


def named_masks(facts: HeadStatistics, thresholds: str, mask: str) -> Groups:
    """Return the head weights [groups][blocks][heads] for named thresholds and a kind of mask.

    Thresholds that are None select all heads, for `mask` both alone: no kind of head is named.
    """
    chosen = _thresholds(facts, thresholds)
    if mask not in ("both", "syntactic", "positional"):
        raise FaithbenchError(
            f"mask {mask!r} is not one of both, syntactic, positional, random, ones, "
            "corrupted-<percent>"
        )
    if chosen is None:
        if mask != "both":
            raise _no_mask(facts, thresholds, mask)
        return all_heads(facts)
    syntactic, positional = masks_at(facts, *chosen)
    groups = {"both": [syntactic, positional], "syntactic": [syntactic], "positional": [positional]}
    if count_heads(groups[mask]) == 0:
        raise _no_head(facts, thresholds, mask)
    return groups[mask]


def drawn_masks(facts: HeadStatistics, thresholds: str, seeds: Sequence[int]) -> list[Groups]:
    """Draw for each seed as many heads as the thresholds select (the paper's Random baseline)."""
    chosen = _thresholds(facts, thresholds)
    if chosen is None:
        raise _no_mask(facts, thresholds, "random")
    count = count_heads(masks_at(facts, *chosen))
    if count == 0:
        raise _no_head(facts, thresholds, "random")
    shape = facts.positions.share
    heads = [(b, h) for b, row in enumerate(shape) for h in range(len(row))]
    draws = (set(random.Random(seed).sample(heads, count)) for seed in seeds)
    return [
        [[[int((b, h) in drawn) for h in range(len(row))] for b, row in enumerate(shape)]]
        for drawn in draws
    ]


def corrupted_masks(
    facts: HeadStatistics, thresholds: str, percent: int, seeds: Sequence[int]
) -> list[Groups]:
    """Switch on a share of the heads that the mask leaves out, drawn for each seed.

    Song et al., Figure 4. They are a group of their own beside the syntactic and the positional
    one; at 100 percent every head is in a group.
    """
    groups = named_masks(facts, thresholds, "both")
    shape = facts.positions.share
    heads = [(b, h) for b, row in enumerate(shape) for h in range(len(row))]
    left_out = [(b, h) for b, h in heads if not any(group[b][h] for group in groups)]
    count = round(len(left_out) * percent / 100)
    if count == 0:
        return [groups] * len(seeds)
    draws = (set(random.Random(seed).sample(left_out, count)) for seed in seeds)
    return [
        [
            *groups,
            [[int((b, h) in drawn) for h in range(len(row))] for b, row in enumerate(shape)],
        ]
        for drawn in draws
    ]


def corruption(mask: str) -> int | None:
    """Return the percentage of `corrupted-<percent>`; None for any other kind of mask."""
    name, _, percent = mask.partition("-")
    if name != "corrupted":
        return None
    if not percent.isdecimal() or int(percent) > 100:
        raise FaithbenchError(
            f"mask {mask!r} is not corrupted-<percent>, such as corrupted-30, of at most 100"
        )
    return int(percent)


def masks_nothing(facts: HeadStatistics, thresholds: str) -> bool:
    """Return whether named thresholds stand for no mask."""
    return _thresholds(facts, thresholds) is None


def _thresholds(facts: HeadStatistics, name: str) -> Thresholds:
    if name not in facts.thresholds:
        raise FaithbenchError(
            f"thresholds {name!r} are not among {', '.join(sorted(facts.thresholds))}"
        )
    return facts.thresholds[name]


def _no_mask(facts: HeadStatistics, thresholds: str, mask: str) -> FaithbenchError:
    return FaithbenchError(
        f"lrp-mask: thresholds={thresholds} of model {facts.model!r} is no mask, because masking "
        f"does not help there; use mask={mask},thresholds=paper"
    )


def _no_head(facts: HeadStatistics, thresholds: str, mask: str) -> FaithbenchError:
    return FaithbenchError(
        f"lrp-mask: mask={mask} with thresholds={thresholds} selects no head of model "
        f"{facts.model!r}; use thresholds=calibrated or mask=ones"
    )


def count_heads(groups: Groups) -> int:
    """Return how many heads any group selects."""
    blocks = range(len(groups[0]))
    return sum(any(head) for b in blocks for head in zip(*(g[b] for g in groups), strict=True))


def find_heads(model: Model) -> HeadStatistics:
    """Load the statistics of a model: next to its weights, else from the user's cache."""
    facts = read_heads(_heads_path(model))
    if not model.is_known_by(facts.model_sha256, facts.weights_sha256):
        raise CannotServeError(
            f"head statistics {_heads_path(model).name} belong to another model than "
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
    raise CannotServeError(
        f"lrp-mask needs head statistics of model {model.name!r} and there are none; run: "
        f"faithbench heads --task <task> --model {model.name}, or use lrp-mask:mask=ones"
    )


def cached_heads(model: Model) -> Path:
    """Return where a model's statistics are kept when it has no folder of ours."""
    return cache_folder() / "heads" / f"{model.sha256[:16]}.json"


def read_heads(path: Path) -> HeadStatistics:
    """Read a statistics file, naming the field that is wrong."""
    try:
        return HeadStatistics.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise FaithbenchError(f"head statistics {path}: {where}: {first['msg']}") from None


def write_heads(facts: HeadStatistics, path: Path) -> None:
    """Write statistics as JSON, replacing the file at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (facts.model_dump_json(indent=1) + "\n").encode())
