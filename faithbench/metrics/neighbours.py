"""The nearest examples of the same predicted class, by meaning or by shared words."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import parse_json, reason, replace_file
from faithbench.core.types import Example, Floats, Ints
from faithbench.metrics.ngrams import grams_of

Neighbours = tuple[tuple[int, ...], ...]
"""For each example the numbers of its neighbours, nearest first."""

Kind = Literal["semantic", "lexical"]

COUNT = 3
VERSION = 1
_PAIRS = 4_000_000
"""So many similarities are held at once: 32 MB."""


def document(example: Example) -> str:
    """Return the text that is compared: of a pair, both texts."""
    return example.text if example.text_b is None else f"{example.text}\n{example.text_b}"


def semantic_neighbours(
    embeddings: NDArray[np.floating[Any]], classes: Sequence[Hashable], count: int = COUNT
) -> Neighbours:
    """Find the examples of the same class with the highest cosine of embeddings of length 1.

    Cosines are compared after rounding to 6 decimals, so that devices agree.
    """
    if len(embeddings) != len(classes) or not np.isfinite(embeddings).all():
        raise FaithbenchError(
            f"asked for neighbours of {len(classes)} examples by embeddings of shape "
            f"{embeddings.shape}; give one finite vector for each"
        )

    def within(group: Ints) -> Callable[[int, int], Floats]:
        # Double precision keeps what depends on how a block is cut far below the rounding.
        own = embeddings[group].astype(np.float64)
        return lambda start, stop: (own[start:stop] @ own.T).round(6)

    return _nearest(classes, count, within)


def lexical_neighbours(
    texts: Sequence[str], classes: Sequence[Hashable], count: int = COUNT, released: bool = False
) -> Neighbours:
    """Find the examples of the same class that share most n-grams (see `ngrams.Similarity`).

    Similarities are compared after rounding to 9 decimals. Where fewer than `count` examples
    share any word, the first of the class fill up: they are all equally far.
    """
    if len(texts) != len(classes):
        raise FaithbenchError(
            f"asked for neighbours of {len(texts)} texts of {len(classes)} classes; "
            "give one class for each"
        )
    grams = grams_of(texts)

    def within(group: Ints) -> Callable[[int, int], Floats]:
        pairs = grams.among(group)
        return lambda start, stop: pairs.block(start, stop, released=released).round(9)

    return _nearest(classes, count, within)


def _nearest(
    classes: Sequence[Hashable], count: int, within: Callable[[Ints], Callable[[int, int], Floats]]
) -> Neighbours:
    """Take the `count` most similar others of each example's class, ties to the earlier one.

    `within` gives for the examples of a class a function from a block of them to their
    similarities with all of the class, which may be written to.
    """
    groups: dict[Hashable, list[int]] = {}
    for index, name in enumerate(classes):
        groups.setdefault(name, []).append(index)
    found: list[tuple[int, ...]] = [()] * len(classes)
    for members in groups.values():
        group = np.array(members, dtype=np.int64)
        size = max(1, _PAIRS // len(group))
        similar = within(group)
        for start in range(0, len(group), size):
            block = similar(start, start + size)
            rows = np.arange(len(block))
            block[rows, start + rows] = -np.inf
            best = np.zeros((len(block), min(count, len(group) - 1)), dtype=np.int64)
            for column in best.T:
                column[:] = block.argmax(axis=1)  # of equal ones the first
                block[rows, column] = -np.inf
            for row, places in enumerate(best):
                found[members[start + row]] = tuple(group[places].tolist())
    return tuple(found)


@dataclass(frozen=True)
class NeighbourKey:
    """Everything that neighbours depend on: what is computed for equal facts is equal.

    `data` is the checksum of the examples, `encoder` that of the embedding's weights (empty for
    lexical ones); a class is a number or a word.
    """

    data: str
    ids: tuple[str, ...]
    classes: tuple[int | str, ...]
    kind: Kind
    encoder: str = ""
    count: int = COUNT
    released: bool = False

    @property
    def digest(self) -> str:
        """The name that these facts go by."""
        text = json.dumps([VERSION, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def kept_neighbours(
    folder: Path, facts: NeighbourKey, compute: Callable[[], Neighbours]
) -> Neighbours:
    """Return the neighbours kept in a folder under these facts, or compute and keep them.

    A file that is damaged, or does not fit its facts, is computed again.
    """
    digest = facts.digest
    path = folder / f"neighbours-{facts.kind}-{digest[:16]}.json"
    known = _read(path, facts, digest)
    if known is not None:
        return known
    found = compute()
    data = json.dumps({"key": digest, "neighbours": found}, separators=(",", ":"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, f"{data}\n".encode())
    except OSError as error:
        raise FaithbenchError(
            f"cannot keep neighbours at {path}: {reason(error)}; "
            "free the place or choose another folder with --results"
        ) from error
    return found


def _read(path: Path, facts: NeighbourKey, digest: str) -> Neighbours | None:
    try:
        stored = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(stored, dict) or stored.get("key") != digest:
        return None
    rows, total = stored.get("neighbours"), len(facts.ids)
    if not isinstance(rows, list) or len(rows) != total:
        return None
    if not all(_fits(row, index, total, facts.count) for index, row in enumerate(rows)):
        return None
    return tuple(tuple(row) for row in rows)


def _fits(row: object, index: int, total: int, count: int) -> bool:
    """Say whether a row lists at most `count` other examples, each once."""
    if not isinstance(row, list) or len(row) > count:
        return False
    if not all(type(other) is int and 0 <= other < total for other in row):
        return False
    return len({index, *row}) == len(row) + 1
