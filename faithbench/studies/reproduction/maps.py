"""Texts side by side: what explainers, or models, find important, and how they differ."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from faithbench.core.errors import CannotServeError
from faithbench.core.types import Example, Floats
from faithbench.data.dataset import Dataset
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.word_scores import WordScores, words_of
from faithbench.models.session import Session
from faithbench.run.one_text import explain_text
from faithbench.studies.reproduction.measures.networks import Network, Networks
from faithbench.studies.reproduction.recipe import Maps
from faithbench.studies.reproduction.result import MapRow, MapText
from faithbench.studies.reproduction.values import Missing
from faithbench.training.fresh.extraction import kept_count


def map_texts(networks: Networks, maps: Maps) -> tuple[MapText, ...]:
    """Explain a few texts, one of each class first, with every explainer or model."""
    found: list[Network] = []
    for key in maps.models:
        each = networks.of(key)
        if not isinstance(each, Missing):
            found.append(each[0])
    if not found:
        return ()
    data = networks.texts(found[0])
    texts = [_text(networks, found, maps, example) for example in _chosen(data, maps)]
    return tuple(text for text in texts if text is not None)


def _chosen(data: Dataset, maps: Maps) -> list[Example]:
    """Return the first texts of each class in turn: short ones, which a page can show."""
    fitting = [e for e in data.examples if e.rationale or not maps.marked]
    short = sorted(fitting, key=lambda e: len(e.text) + len(e.text_b or ""))
    # Not the shortest of all, which often say nothing: from the shorter half.
    half = short[len(short) // 4 : max(len(short) // 4 + maps.texts * 2, len(short) // 2)]
    labels = sorted({example.label for example in half})
    by_label = {label: [e for e in half if e.label == label] for label in labels}
    chosen: list[Example] = []
    while len(chosen) < maps.texts and any(by_label.values()):
        for label in labels:
            if by_label[label] and len(chosen) < maps.texts:
                chosen.append(by_label[label].pop(0))
    return chosen


def _text(
    networks: Networks, found: Sequence[Network], maps: Maps, example: Example
) -> MapText | None:
    rows: list[MapRow] = []
    said: list[str] = []
    words: WordScores | None = None
    first: Floats | None = None
    for network in found:
        model = networks.load(network)
        evidence = network.task.evidence
        with Session(model) as session:
            for name in maps.explainers:
                (selected,) = find_explainers(name)
                try:
                    made = explain_text(session, evidence, selected, example.text, example.text_b)
                except CannotServeError:
                    continue
                words = words_of(made.attribution.encoding, np.asarray(made.attribution.scores))
                weights = _shown(words.scores, maps)
                label = network.key if len(found) > 1 else selected.label
                if len(found) == 1 and first is not None:
                    label, weights = f"difference to {selected.label}", first - weights
                elif len(found) == 1:
                    first = weights
                rows.append(MapRow(label=label, weights=tuple(np.round(weights, 2).tolist())))
                said.append(f"{label}: {made.said}" if len(found) > 1 else made.said)
    if words is None:  # no explainer serves these models
        return None
    marked = _marked(example, words)
    return MapText(
        id=example.id,
        words=words.strings,
        marked=marked,
        predicted="; ".join(dict.fromkeys(said)),
        rows=tuple(rows),
    )


def _marked(example: Example, words: WordScores) -> tuple[bool, ...]:
    spans = example.rationale or ()
    first = len(words.spans) - words.second  # rationales are of the first text
    return tuple(
        index < first and any(start < end_of and start_of < end for start_of, end_of in spans)
        for index, (start, end) in enumerate(words.spans)
    )


def _shown(scores: Floats, maps: Maps) -> Floats:
    """Return weights from -1 to 1: all, those of the top words, or the best stretch as 1."""
    if maps.contiguous is not None:
        count = kept_count(maps.contiguous, len(scores))
        sums = np.convolve(scores, np.ones(count), "valid")
        weights = np.zeros(len(scores))
        weights[int(sums.argmax()) : int(sums.argmax()) + count] = 1
        return weights
    strongest = float(np.abs(scores).max()) or 1.0
    weights = np.asarray(scores) / strongest
    if maps.top is not None:
        # The highest words alone, by how they stand to the highest: what is against counts as 0.
        order = np.argsort(-weights, kind="stable")[: maps.top]
        kept = np.zeros(len(weights))
        kept[order] = np.maximum(weights[order], 0.0) / (max(weights.max(), 0.0) or 1.0)
        return kept
    return weights
