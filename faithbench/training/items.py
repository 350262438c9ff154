"""From examples to training batches: what is asked of each, in which order, with what weight."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Encoding, Example, Progress, Span
from faithbench.data.dataset import Dataset
from faithbench.data.rationales import overlaps
from faithbench.data.sentences import sentence_spans
from faithbench.models.encoding import encode
from faithbench.models.model import Model
from faithbench.training.recipe import Recipe

UNBALANCED = 1.5
"""Classes are weighted once the largest has more than so many times the smallest's rows."""


@dataclass(frozen=True)
class TrainingItem:
    """One example and what its outputs should be: a class, or a start and an end position."""

    encoding: Encoding
    targets: tuple[int, ...]


@dataclass(frozen=True)
class TrainingSet:
    """The items of a split, their classes' weights, and how many questions gave no item."""

    items: tuple[TrainingItem, ...]
    weights: tuple[float, ...] | None
    left_out: dict[str, int]


def make_lesson(
    model: Model,
    data: Dataset,
    progress: Progress,
    excerpts: Sequence[int] = (),
    *,
    alone: bool = False,
) -> TrainingSet:
    """Encode a split; questions whose answer is cut off or splits a token are left out."""
    reaches = () if data.task.kind == "qa" else excerpts
    examples = list(with_excerpts(data.examples, reaches, alone=alone and bool(reaches)))
    asks = len(model.outputs) > 1
    items: list[TrainingItem] = []
    left_out = Counter({"cut_off": 0, "inside_a_token": 0} if asks else {})
    for number, example in enumerate(examples, start=1):
        encoding = encode(model, example, data.task.evidence)
        targets = answer_tokens(encoding) if asks else (example.label,)
        if isinstance(targets, str):
            left_out[targets] += 1
        else:
            items.append(TrainingItem(encoding, targets))
        if number % 1000 == 0 or number == len(examples):
            progress(f"reading {data.split}", number, len(examples))
    if not items:
        raise FaithbenchError(
            f"none of the {len(data.examples)} answers of split {data.split!r} is among the "
            "tokens the model reads; raise --max-tokens"
        )
    weights = None if asks else class_weights(items, len(data.task.labels))
    return TrainingSet(tuple(items), weights, dict(left_out))


def answer_tokens(encoding: Encoding) -> Span | str:
    """Return the first and last token of the answer given most often, or why there are none.

    Without an answer both are 0, the position that stands for none. Ties between answers
    go to the one listed first.
    """
    answers = encoding.example.answers
    if not answers:
        return 0, 0
    answer = Counter(answers).most_common(1)[0][0]
    start, end = answer.start, answer.start + len(answer.text)
    places = [int(place) for place in np.flatnonzero(encoding.erasable)]
    if end > encoding.spans[places[-1]][1]:
        return "cut_off"
    first = [place for place in places if encoding.spans[place][0] == start]
    last = [place for place in places if encoding.spans[place][1] == end]
    return (first[0], last[-1]) if first and last else "inside_a_token"


def class_weights(items: Sequence[TrainingItem], classes: int) -> tuple[float, ...] | None:
    """Return n / (classes * count) per class when the classes are unbalanced, else None."""
    counts = Counter(item.targets[0] for item in items)
    if len(counts) < classes:
        return None
    if max(counts.values()) <= UNBALANCED * min(counts.values()):
        return None
    return tuple(round(len(items) / (classes * counts[k]), 6) for k in range(classes))


def batches(
    items: Sequence[TrainingItem], recipe: Recipe, epoch: int
) -> list[Sequence[TrainingItem]]:
    """Shuffle, then sort inside pools of 50 batches, so that little is padded."""
    draw = random.Random(f"{recipe.seed}:{epoch}")
    order = draw.sample(list(items), len(items))
    size = recipe.batch_size
    found = []
    for start in range(0, len(order), 50 * size):
        pool = sorted(order[start : start + 50 * size], key=lambda item: len(item.encoding.ids))
        found += [pool[i : i + size] for i in range(0, len(pool), size)]
    draw.shuffle(found)
    return list(found)


def schedule(step: int, total: int, warmup: float) -> float:
    """Rise linearly over the warm-up share of the steps, then fall linearly to 0."""
    rising = max(1, int(warmup * total))
    return (step + 1) / rising if step < rising else (total - step) / max(1, total - rising)


def with_excerpts(
    examples: Sequence[Example], reaches: Sequence[int], *, alone: bool = False
) -> Iterator[Example]:
    """Yield each example, then its excerpts; those that are no shorter are left out.

    Where a document is long and evidence rare, a few hundred of them do not show a small
    encoder what to look for; excerpts do, and cost little. With excerpts `alone`, documents are
    left out, but for those that have none.
    """
    for example in examples:
        texts: set[str] = set()
        if not alone or not excerpt(example, min(reaches, default=0)):
            yield example
            texts.add(example.text)
        for reach in reaches:
            text = excerpt(example, reach)
            if text and text not in texts:
                texts.add(text)
                yield replace(example, id=f"{example.id}#{reach}", text=text, rationale=None)


def excerpt(example: Example, reach: int) -> str:
    """Return the sentences that hold a rationale, and `reach` sentences before and after each."""
    spans = sentence_spans(example.text)
    marked = overlaps(spans, example.rationale or ()).nonzero()[0].tolist()
    wanted = {i for place in marked for i in range(place - reach, place + reach + 1)}
    return " ".join(
        example.text[start:end].strip() for i, (start, end) in enumerate(spans) if i in wanted
    )
