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
from faithbench.core.files import digest_of, parse_json, reason, replace_file
from faithbench.core.types import Example, Floats, Ints
from faithbench.metrics.ngrams import ngrams_of

Neighbours = tuple[tuple[int, ...], ...]
"""For each example the numbers of its neighbours, nearest first."""

Likeness = Literal["semantic", "lexical", "lexical-mean"]
"""By meaning, by shared words, or by shared words as the code of Situ et al. (2021) has it."""

COUNT = 3
VERSION = 1
_PAIRS = 4_000_000
"""Similarities that are held at once, at most: 32 MB."""


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
        vectors = embeddings[group].astype(np.float64)
        return lambda start, stop: (vectors[start:stop] @ vectors.T).round(6)

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
    ngrams = ngrams_of(texts)

    def within(group: Ints) -> Callable[[int, int], Floats]:
        pairs = ngrams.among(group)
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
    neighbours: list[tuple[int, ...]] = [()] * len(classes)
    for members in groups.values():
        group = np.array(members, dtype=np.int64)
        size = max(1, _PAIRS // len(group))
        similar = within(group)
        for start in range(0, len(group), size):
            block = similar(start, start + size)
            rows = np.arange(len(block))
            # An example is not its own neighbour.
            block[rows, start + rows] = -np.inf
            nearest = np.zeros((len(block), min(count, len(group) - 1)), dtype=np.int64)
            # One pass for each neighbour: `argmax` takes the first of equal ones, which sorting
            # or partitioning by a library does not promise.
            for column in nearest.T:
                column[:] = block.argmax(axis=1)
                block[rows, column] = -np.inf
            for row, indices in enumerate(nearest):
                neighbours[members[start + row]] = tuple(group[indices].tolist())
    return tuple(neighbours)


@dataclass(frozen=True)
class NeighbourKey:
    """Everything that neighbours depend on: equal keys have equal neighbours.

    Its fields and their names are in the names of files: `digest` hashes them. `data` is the
    checksum of the examples, `encoder` that of the embedding's weights (empty for lexical ones);
    a class is a number or a word.
    """

    data: str
    ids: tuple[str, ...]
    classes: tuple[int | str, ...]
    kind: Literal["semantic", "lexical"]
    encoder: str = ""
    count: int = COUNT
    released: bool = False

    @property
    def digest(self) -> str:
        """The name of the file that keeps them, and what it says it is of."""
        text = json.dumps([VERSION, asdict(self)], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()


def kept_neighbours(
    folder: Path, key: NeighbourKey, compute: Callable[[], Neighbours]
) -> Neighbours:
    """Return the neighbours that a folder keeps under a key, or compute and keep them.

    A file that is damaged, or does not fit its key, is computed again.
    """
    path = folder / f"neighbours-{key.kind}-{key.digest[:16]}.json"
    kept = _read(path, key)
    if kept is not None:
        return kept
    neighbours = compute()
    data = json.dumps(
        {"key": key.digest, "neighbours": neighbours, "sha256": digest_of(neighbours)},
        separators=(",", ":"),
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(path, f"{data}\n".encode())
    except OSError as error:
        raise FaithbenchError(
            f"cannot keep neighbours at {path}: {reason(error)}; "
            "free the place or choose another folder with --results"
        ) from error
    return neighbours


def _read(path: Path, key: NeighbourKey) -> Neighbours | None:
    """Return what a file keeps under a key; None if there is no file, or it cannot be trusted."""
    try:
        stored = parse_json(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    # The name holds only a part of the digest.
    if not isinstance(stored, dict) or stored.get("key") != key.digest:
        return None
    rows, total = stored.get("neighbours"), len(key.ids)
    if stored.get("sha256") != digest_of(rows):
        return None
    if not isinstance(rows, list) or len(rows) != total:
        return None
    if not all(_fits(row, index, total, key.count) for index, row in enumerate(rows)):
        return None
    return tuple(tuple(row) for row in rows)


def _fits(row: object, index: int, total: int, count: int) -> bool:
    """Return whether a row lists at most `count` other examples, each once."""
    if not isinstance(row, list) or len(row) > count:
        return False
    # Not `isinstance`: true and false are whole numbers in Python, but not in a list of indices.
    if not all(type(other) is int and 0 <= other < total for other in row):
        return False
    return len({index, *row}) == len(row) + 1
