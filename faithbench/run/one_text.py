"""Explain one text outside any task's data."""

from __future__ import annotations

import math
from dataclasses import dataclass

from faithbench.core.types import Attribution, Encoding, Example, Floats
from faithbench.data.tasks import Task
from faithbench.data.words import word_spans
from faithbench.explainers.selection import Selected
from faithbench.models.encoding import collate, encode
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.attribute import attribute, seed_of


@dataclass(frozen=True)
class Explanation:
    """What the model said, and what spoke for it; `words` come strongest first."""

    said: str
    probability: float
    attribution: Attribution
    words: tuple[tuple[str, float], ...]


def explain_text(
    session: Session, task: Task, selected: Selected, text: str, text_b: str | None, seed: int
) -> Explanation:
    """Explain the model's prediction for one text."""
    model = session.model
    encoding = encode(model, Example("your text", text, 0, text_b), task.evidence)
    (prediction,) = predictions(session.engine, [encoding])
    batch = collate(model, [encoding], [prediction.target], [seed_of(seed, encoding.example.id)])
    attribution = attribute(session, selected, batch)[0]
    session.drop_passes()
    words = word_scores(encoding, attribution.scores)
    said = model.kind.describe(task.labels, encoding, prediction.target)
    return Explanation(said, math.exp(prediction.log_probability), attribution, words)


def word_scores(encoding: Encoding, scores: Floats) -> tuple[tuple[str, float], ...]:
    """Sum token scores per word (docs/protocol.md, Words), strongest word first."""
    example = encoding.example
    first = len(word_spans(example.text))
    sums: dict[int, float] = {}
    for word, score in zip(encoding.words[encoding.erasable], scores, strict=True):
        sums[int(word)] = sums.get(int(word), 0.0) + float(score)
    named = []
    for word, score in sums.items():
        if word < 0:
            continue
        text = example.text if word < first else example.text_b or ""
        start, end = encoding.word_spans[word]
        named.append((text[start:end], score))
    return tuple(sorted(named, key=lambda item: -abs(item[1])))
