"""Words of a whole run: read back from rows, and every table metric by hand."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from faithbench.core.types import Example
from faithbench.metrics.explained import ExplainedTexts
from faithbench.metrics.kinds import TextMetric
from faithbench.metrics.registry import METRICS, text_metrics
from faithbench.models.encoding import encode
from faithbench.run.finish import explained_texts, text_values
from tests.support.builders import row

EXAMPLES = [
    Example("a", "good film . dull plot", 0, rationale=((0, 4),)),
    Example("b", "good plot . not bad", 0, rationale=((12, 19),)),
    Example("c", "very dull", 0),
]
NEAR = ((1,), (0, 2), (1,))
# Words are whole tokens here but for `goodly`-like ones; a full stop is a word of its own.
SCORES = [[4, 3, 0, -1, -2], [1, 4, 0, 2, -1], [0.5, 2]]
OTHER = [[-4, 3, 0, -1, 5], [1, 4, 0, 2, -1], [2, 0.5]]


@pytest.fixture
def table(tiny_model: Any) -> ExplainedTexts:
    encodings = [encode(tiny_model(), example) for example in EXAMPLES]
    rows = [
        msgspec.structs.replace(
            row(e.id, tokens=["t"] * len(first), scores=first),
            more_scores=(tuple(map(float, second)),),
        )
        for e, first, second in zip(EXAMPLES, SCORES, OTHER, strict=True)
    ]
    return explained_texts(encodings, rows, lambda _likeness: NEAR)


def values(name: str, table: ExplainedTexts) -> list[list[float | None]]:
    metric = METRICS[name]
    assert isinstance(metric, TextMetric)
    return [own[name] for own in text_values([metric], table)]


def test_words_of_every_seed(table: ExplainedTexts) -> None:
    assert table.words[0].strings == ("good", "film", ".", "dull", "plot")
    assert table.words[0].scores.tolist() == SCORES[0]
    assert [len(words) for words in table.seeds] == [3, 3]
    assert table.seeds[1][0].scores.tolist() == OTHER[0]
    # One word of five, and two of five.
    assert table.share == pytest.approx(0.3)


def test_overlap_with_neighbours_by_hand(table: ExplainedTexts) -> None:
    """The top 30% are 2 of 5 words and 1 of 2."""
    # First seed: {good, film}, {plot, not}, {dull}; second: {plot, film}, {plot, not}, {very}.
    raw = values("iou_semantic:variant=raw", table)
    assert raw == [[0.0, 1 / 3], [0.0, (1 / 3 + 0) / 2], [0.0, 0.0]]
    assert values("iou_lexical:variant=raw", table) == raw


def test_overlap_above_chance_by_hand(table: ExplainedTexts) -> None:
    """The top 30% of 4, 3 and 1 content words are one of each: good, plot, dull; then plot twice.

    a and b share good and plot. First seed: no overlap; chance is that of a drawing plot (1/4) or
    b drawing good (1/3). Second seed: the overlap is 1, and chance that of drawing plot again.
    """
    found = values("iou_semantic", table)
    assert values("iou_lexical", table) == found
    assert found[0][0] == pytest.approx(0 - (1 / 4 + 1 / 3) / 2, abs=0.12)
    assert found[0][1] == pytest.approx(1 - (1 / 4 + 1 / 3) / 2, abs=0.12)
    assert found[1] == pytest.approx([value / 2 for value in found[0] if value is not None])
    assert found[2] == [0.0, 0.0], "dull and what b has are never shared"


def test_labels_by_hand(table: ExplainedTexts) -> None:
    """First seed. a: high good, low film, low negative dull, high negative plot (means 3.5, -1.5).

    b: means 7/3 and -1: low good, high plot, low not, low negative bad. c: means 1.25: low very,
    high dull. Neighbours a-b share no word under the same label: 0 of 4 + 4.
    """
    found = values("iou_labels:variant=raw", table)
    assert [first for first, _ in found] == [0.0, 0.0, 0.0]
    # By sign alone, a and b share good as positive: 1 of good, film, plot, not, dull, plot, bad.
    merged = values("iou_labels:variant=l2e", table)
    assert merged[0][0] == pytest.approx(1 / 7)


def test_labels_of_annotated_words_only(table: ExplainedTexts) -> None:
    """c has none, so neither it nor b has words to share with it: b is left with a."""
    found = values("iou_labels:words=annotated", table)
    assert [first for first, _ in found] == [0.0, 0.0, 0.0]


def test_seeds_agree_on_what_they_share(table: ExplainedTexts) -> None:
    """{good, film} and {plot, film}; the same twice; {dull} and {very}."""
    assert values("seed_agreement", table) == [[1 / 3], [1.0], [0.0]]


def test_plausibility_by_hand(table: ExplainedTexts) -> None:
    """A share of .3 makes the hard rationale 2 of 5 words."""
    assert [first for first, _ in values("token_f1", table)] == [
        pytest.approx(2 / 3),  # good, film against good
        pytest.approx(1 / 2),  # plot, not against not, bad
        None,
    ]
    assert [first for first, _ in values("token_precision", table)] == [0.5, 0.5, None]
    assert [first for first, _ in values("token_recall", table)] == [1.0, 0.5, None]
    # a: [0, 2) against [0, 1): half. b: [1, 2) and [3, 4) against [3, 5): half, one of two found.
    assert [first for first, _ in values("iou_f1", table)] == [1.0, pytest.approx(2 / 3), None]
    assert [first for first, _ in values("saliency_accuracy", table)] == [1.0, 0.5, None]
    assert values("auprc", table)[0][0] == 1.0 and values("auprc", table)[2] == [None, None]


def test_sentences_are_as_good_as_their_best_word(table: ExplainedTexts) -> None:
    """a: 4 and -1, the first marked; b: 4 and 2, the second marked; half are marked: one each."""
    assert [len(words.scores) for words in table.sentences] == [2, 2, 1]
    assert [first for first, _ in values("sentence_f1", table)] == [1.0, 0.0, None]


def test_a_task_without_rationales_has_no_values(tiny_model: Any) -> None:
    encodings = [encode(tiny_model(), Example("a", "good film", 0))]
    table = explained_texts(encodings, [row("a", scores=[1.0, 2.0])], lambda _likeness: ((),))
    found = text_values(text_metrics(METRICS.values()), table)[0]
    assert all(own == [None] for name, own in found.items() if METRICS[name].need != "seeds")
    assert table.share is None


def test_scaling_changes_nothing(table: ExplainedTexts) -> None:
    """Twice the scores is the same explanation, for every metric of words."""
    from dataclasses import replace

    def twice(words: Any) -> Any:
        return tuple(replace(own, scores=2 * own.scores) for own in words)

    scaled = replace(
        table, words=twice(table.words), seeds=tuple(twice(own) for own in table.seeds)
    )
    metrics = text_metrics(METRICS.values())
    assert text_values(metrics, scaled) == text_values(metrics, table)
    assert np.array_equal(scaled.words[0].scores, 2 * table.words[0].scores)
