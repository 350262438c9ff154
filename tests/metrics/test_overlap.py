"""Overlap with neighbours: by hand, and above chance on texts that share words for many reasons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from faithbench.core.types import Example, Floats
from faithbench.metrics.explained import ExplainedTexts
from faithbench.metrics.kinds import TableMetric
from faithbench.metrics.neighbours import Likeness, Neighbours
from faithbench.metrics.overlap import (
    DRAWS,
    Marked,
    above_chance,
    iou,
    marked_text,
    mean_over_neighbours,
)
from faithbench.metrics.registry import METRICS
from faithbench.metrics.stability import label_marks, top_marks
from faithbench.metrics.word_scores import WordScores
from faithbench.stats.summaries import summarise

NONE: frozenset[str] = frozenset()
Explain = Callable[[list[str], np.random.Generator], Floats]


def words(text: str) -> frozenset[str]:
    return frozenset(text)


def marks(*strings: str) -> frozenset[tuple[str, int]]:
    return frozenset((string, 1) for string in strings)


def scored(text: str, scores: list[float] | Floats) -> WordScores:
    strings = tuple(text.split())
    spans = tuple((i, i + 1) for i in range(len(strings)))
    return WordScores(np.array(scores, dtype=float), strings, spans, None)


def test_iou() -> None:
    assert iou(words("abc"), words("bcd")) == 0.5
    assert iou(words("a"), NONE) == 0
    assert iou(NONE, NONE) is None


def test_the_mean_over_neighbours() -> None:
    sets = [words("ab"), words("ab"), words("bc"), words("xy"), NONE, NONE]
    neighbours = ((1, 2, 3), (), (0,), (4, 0), (5, 0), (5,))
    first, second, third, fourth, fifth, sixth = mean_over_neighbours(sets, neighbours, iou)
    assert first == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert third == pytest.approx(1 / 3)
    assert second is None
    assert fourth == 0
    assert fifth == 0  # the empty union is left out
    assert sixth is None


def test_chance_is_one_explanation_against_the_other_shuffled() -> None:
    """Overlap {x}: 1. a against b shuffled: 1 and 0; a shuffled against b: 1/2 (y, x) and 0."""
    a = Marked(marks("x"), (marks("x", "y"), marks("y")))
    b = Marked(marks("x"), (marks("x"), marks("z")))
    assert above_chance(a, b) == above_chance(b, a) == 1 - (1 + 0 + 1 / 2 + 0) / 4


def test_an_explanation_that_marks_nothing_is_not_compared() -> None:
    a, nothing = Marked(marks("x"), (marks("x"),)), Marked(frozenset(), (frozenset(),))
    assert above_chance(a, nothing) is above_chance(nothing, a) is None


def test_only_content_words_are_marked() -> None:
    """The top 30% of five content words are two; stop-words and marks of punctuation have none."""
    text = scored(
        "the film , is not dull but slow and warm plot", [9, 5, 8, 7, 9, 1, 9, 4, 9, 3, 2]
    )
    assert marked_text("a", text, top_marks).own == marks("film", "slow")
    assert marked_text("a", scored("it is , the", [1, 2, 3, 4]), top_marks).own == frozenset()
    signs = marked_text("a", scored("film the film dull", [3, 9, 1, -1]), label_marks)
    assert signs.own == {("film", 2), ("film", 1), ("dull", -1)}, "cut at the mean of 3 and 1"


def test_shuffled_marks_are_as_many_and_anywhere() -> None:
    text = scored(" ".join(f"w{i}" for i in range(10)), np.arange(10.0))
    found = marked_text("a", text, top_marks)
    assert len(found.shuffled) == DRAWS and {len(one) for one in found.shuffled} == {3}
    assert len(set(found.shuffled)) > DRAWS / 2
    counts = [sum((f"w{i}", 1) in one for one in found.shuffled) for i in range(10)]
    assert sum(counts) == 3 * DRAWS and min(counts) > 0
    again = marked_text("a", text, top_marks)
    assert again == found and marked_text("b", text, top_marks).shuffled != found.shuffled


DECIDING = {0: ("dull", "awful", "tedious"), 1: ("great", "warm", "moving")}
FUNCTION = ("the", "a", "of", "and", "is", ",", ".")


def texts(count: int = 200) -> tuple[list[str], list[int]]:
    """Return texts of two classes: topics that many share, words of the class, function words."""
    draw = np.random.default_rng(3)
    made, classes = [], []
    for number in range(count):
        label = number % 2
        topics = [f"topic{int(i)}" for i in np.minimum(draw.geometric(0.2, 9), 30)]
        parts = [*topics, *draw.choice(DECIDING[label], 2), *draw.choice(FUNCTION, 8)]
        made.append(" ".join(draw.permutation(parts)))
        classes.append(label)
    return made, classes


def table_of(explain: Explain, seed: int = 0) -> ExplainedTexts:
    """Explain all texts; the neighbours of each are three of its class, in wording and meaning."""
    made, classes = texts()
    draw = np.random.default_rng(seed)
    scores = [explain(text.split(), draw) for text in made]
    every = tuple(scored(text, own) for text, own in zip(made, scores, strict=True))
    pick = np.random.default_rng(4)
    others = [[j for j, of in enumerate(classes) if of == label] for label in classes]
    near = tuple(
        tuple(int(i) for i in pick.permutation(others[own]) if i != own)[:3]
        for own in range(len(made))
    )
    examples = tuple(Example(f"e{n}", text, 0) for n, text in enumerate(made))

    def neighbours(_likeness: Likeness) -> Neighbours:
        return near

    return ExplainedTexts(every, (every,), examples, neighbours)


def at_random(strings: list[str], draw: np.random.Generator) -> Floats:
    return draw.random(len(strings))


def by_position(strings: list[str], draw: np.random.Generator) -> Floats:
    return -np.arange(len(strings), dtype=float)


def function_words_first(strings: list[str], draw: np.random.Generator) -> Floats:
    return np.array([(w in FUNCTION) + draw.random() / 2 for w in strings])


def planted(strings: list[str], draw: np.random.Generator) -> Floats:
    deciding = {*DECIDING[0], *DECIDING[1]}
    return np.array([(w in deciding) + draw.random() / 2 - 0.25 for w in strings])


def values_of(name: str, table: ExplainedTexts) -> list[float | None]:
    metric = METRICS[name]
    assert isinstance(metric, TableMetric)
    return metric.values(table)


@pytest.mark.parametrize("name", ["iou_semantic", "iou_lexical", "iou_labels"])
@pytest.mark.parametrize("explain", [at_random, by_position, function_words_first])
def test_what_ignores_the_words_is_at_chance(name: str, explain: Explain) -> None:
    """Raw overlaps are far from 0: the texts share words, above all function words."""
    table = table_of(explain)
    mean, interval, n, _ = summarise(values_of(name, table))
    assert mean is not None and interval is not None and n == 200
    assert interval[0] < 0 < interval[1] and abs(mean) < 0.01
    raw, _, _, _ = summarise(values_of(f"{name}:variant=raw", table))
    assert raw is not None and raw > 0.03


@pytest.mark.parametrize(
    ("name", "least"), [("iou_semantic", 0.1), ("iou_lexical", 0.1), ("iou_labels", 0.03)]
)
def test_what_finds_the_deciding_words_is_above_chance(name: str, least: float) -> None:
    mean, interval, _, _ = summarise(values_of(name, table_of(planted)))
    assert mean is not None and interval is not None
    assert interval[0] > least


def test_values_do_not_depend_on_the_order_of_texts() -> None:
    table = table_of(planted)
    near = table.neighbours("lexical")
    count = len(near)
    turned = replace(
        table,
        words=table.words[::-1],
        examples=table.examples[::-1],
        neighbours=lambda _likeness: tuple(
            tuple(count - 1 - i for i in others) for others in near[::-1]
        ),
    )
    assert values_of("iou_lexical", turned)[::-1] == values_of("iou_lexical", table)
