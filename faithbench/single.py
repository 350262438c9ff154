"""Explain one text outside any task's data."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from faithbench.encoding import collate, encode
from faithbench.evaluation import predict
from faithbench.forward import Engine
from faithbench.models import Model
from faithbench.scoring import attribute, seed_of
from faithbench.selection import Chosen
from faithbench.sharing import release
from faithbench.tasks import Task
from faithbench.types import Attribution, Encoding, Example, Floats
from faithbench.words import word_spans


@dataclass(frozen=True)
class Explanation:
    """A prediction and what spoke for it; `words` come strongest first."""

    target: int
    probability: float
    attribution: Attribution
    words: tuple[tuple[str, float], ...]


def explain_text(
    model: Model, task: Task, chosen: Chosen, text: str, text_b: str | None, seed: int
) -> Explanation:
    """Explain the model's prediction for one text."""
    encoding = encode(model, Example("your text", text, 0, text_b), task.evidence)
    answers = predict(Engine(model), [encoding])[0]
    target = int(np.argmax(answers))
    batch = collate(model, [encoding], [target], [seed_of(seed, encoding.example.id)])
    attribution = attribute(model, chosen, batch)[0]
    release(model)
    words = word_scores(encoding, attribution.scores)
    return Explanation(target, float(np.exp(answers[target])), attribution, words)


def word_scores(encoding: Encoding, scores: Floats) -> tuple[tuple[str, float], ...]:
    """Sum token scores per word (the protocol's rule), strongest word first."""
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
