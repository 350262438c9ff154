"""Plausibility by hand, against scikit-learn, and what must not move it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.core.types import Example
from faithbench.data.rationales import without_rationale
from faithbench.data.windows import erased_rows
from faithbench.metrics.plausibility import (
    auprc,
    hard_rationale,
    iou_f1,
    iou_f1_eraser,
    matched,
    overlap,
    runs,
    saliency_accuracy,
    sentence_auprc,
    sentence_f1,
    span_f1,
    token_f1,
    token_precision,
    token_recall,
    tpr_drop,
)
from faithbench.metrics.word_scores import WordScores
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.predictions import evaluate_inputs, predictions
from tests.support.cases import bag_model

Metric = Callable[[WordScores], float | None]
BY_RANK: dict[str, Metric] = {
    "auprc": auprc,
    "token_precision": token_precision,
    "token_recall": token_recall,
    "token_f1": token_f1,
    "iou_f1": iou_f1,
    "iou_f1:variant=eraser": iou_f1_eraser,
}
EVERY: dict[str, Metric] = {**BY_RANK, "saliency_accuracy": saliency_accuracy}


def words(
    scores: Sequence[float],
    rationale: Sequence[int] | None,
    second: int = 0,
    share: float | None = 0.3,
) -> WordScores:
    n = len(scores)
    marked = None if rationale is None else np.array(rationale, dtype=bool)
    spans = tuple((2 * i, 2 * i + 1) for i in range(n))
    return WordScores(np.array(scores, dtype=float), ("w",) * n, spans, marked, second, share)


some_words = st.integers(1, 24).flatmap(
    lambda n: st.builds(
        words,
        st.lists(st.integers(-4, 4), min_size=n, max_size=n),
        st.lists(st.integers(0, 1), min_size=n, max_size=n).filter(any),
        st.integers(0, n),
    )
)


# By hand


def test_auprc_by_hand() -> None:
    # Precision 1, 1/2, 2/3, 1/2 at recall 1/2, 1/2, 1, 1.
    assert auprc(words([9, 8, 7, 6], [1, 0, 1, 0])) == pytest.approx(0.5 + (1 / 2 + 2 / 3) / 4)
    assert auprc(words([6, 7, 8, 9], [0, 0, 1, 1])) == 1
    # One score for all: a line from precision 1 to the share of marked words.
    assert auprc(words([2, 2, 2, 2], [1, 0, 0, 0])) == pytest.approx((1 + 1 / 4) / 2)
    assert auprc(words([1, 2], [1, 1])) == 1
    assert auprc(words([5], [1])) == 1


def test_hard_rationale_is_rounded_half_up_and_ties_go_to_the_earlier() -> None:
    for share, count in ((0, 1), (0.1, 1), (0.29, 1), (0.3, 2), (0.5, 3), (1, 5)):
        assert hard_rationale(words([0] * 5, None), share).tolist() == [True] * count + [False] * (
            5 - count
        )
    assert hard_rationale(words([1, 3, 2, 3], None), 0.5).tolist() == [False, True, False, True]


def test_tokens_by_hand() -> None:
    # The two best of eight are the words 1 and 6; marked are 1, 2 and 3.
    example = words([0, 9, 2, 1, 0, -3, 8, 0], [0, 1, 1, 1, 0, 0, 0, 0], share=0.25)
    assert token_precision(example) == 1 / 2
    assert token_recall(example) == 1 / 3
    assert token_f1(example) == 2 / 5
    assert token_f1(words([1, 2], [1, 0], share=0.5)) == 0


def test_sentences_are_judged_like_words() -> None:
    example = words([0, 9, 2, 1], [0, 1, 1, 0], share=0.5)
    assert sentence_auprc(example) == auprc(example) == 1
    assert sentence_f1(example) == token_f1(example) == 1


def test_spans_by_hand() -> None:
    # Found [0, 2) and [4, 6); marked [0, 3) and [5, 8): IoU 2/3 and 1/4.
    example = words([9, 8, 0, 0, 7, 6, 0, 0], [1, 1, 1, 0, 0, 1, 1, 1], share=0.5)
    assert iou_f1(example) == 1 / 2
    assert iou_f1(words([9, 8, 0], [1, 0, 0], share=2 / 3)) == pytest.approx(1), "a half is enough"
    assert iou_f1(words([9, 8, 7], [1, 0, 0], share=1)) == 0


def test_runs_end_where_the_second_text_begins() -> None:
    marked = np.array([1, 1, 0, 1, 1, 1], dtype=bool)
    assert runs(marked, words([0] * 6, None)) == ((0, 2), (3, 6))
    assert runs(marked, words([0] * 6, None, second=2)) == ((0, 2), (3, 4), (4, 6))
    assert runs(marked, words([0] * 6, None, second=3)) == ((0, 2), (3, 6))
    assert runs(np.zeros(3, dtype=bool), words([0] * 3, None)) == ()


def test_one_partner_each_unless_released() -> None:
    halves, whole = [(0, 2), (2, 4)], [(0, 4)]
    assert span_f1(halves, whole) == pytest.approx(2 / 3)
    assert span_f1(halves, whole, released=True) == pytest.approx(4 / 3), "more than 1"
    # The first takes the second, so that the other may have the first: as many as possible.
    assert span_f1([(0, 4), (0, 2)], [(0, 2), (2, 4)]) == 1
    assert span_f1([], whole) is None and span_f1(whole, []) is None


@settings(deadline=None)
@given(some_words, st.floats(0, 1))
def test_on_runs_both_ways_of_counting_agree(example: WordScores, share: float) -> None:
    """A run that matches two others would need them to touch, and then they were one run."""
    chosen = replace(example, share=share)
    assert iou_f1(chosen) == iou_f1_eraser(chosen)


def test_saliency_accuracy_by_hand() -> None:
    assert saliency_accuracy(words([1, -1, 0, 5], [1, 1, 1, 0])) == pytest.approx(1 / 3)


def test_true_positive_rates_of_the_paper() -> None:
    """Ghaeini et al. (2019), Table 4: ACE, 76.1 to 45.0 is a fall of 40.9 percent."""
    before = [True] * 761 + [False] * 239
    after = [False] * 311 + [True] * 450 + [False] * 239
    found = tpr_drop(before, after)
    assert found == pytest.approx(0.409, abs=5e-4)
    # An example that is right only without its rationale counts as well: the rate is of all.
    assert tpr_drop([True, True, False], [True, False, True]) == 0
    assert tpr_drop([True, False, False], [True, True, False]) == -1
    assert tpr_drop([False], [True]) is None and tpr_drop([], []) is None


def test_rates_of_a_model_that_reads_one_word(tokenizer: Any) -> None:
    """The logit is 3 w0 + w1 - 2: without w0 it is below 0, without w1 it is not."""
    model = bag_model(tokenizer, [3.0, 1.0], bias=-2.0)
    examples = [
        Example("a", "w0 w1", 1, rationale=((0, 2),)),
        Example("b", "w0 w1", 1, rationale=((3, 5),)),
        Example("c", "w1 w1", 1, rationale=((0, 2),)),
        Example("d", "w1 w1", 0),
    ]
    encodings = [encode(model, example) for example in examples]
    judged = [(e, keep) for e in encodings if (keep := without_rationale(e)) is not None]
    assert [e.example.id for e, _ in judged] == ["a", "b", "c"]
    token = model.erasure_id("mask")
    inputs = [erased_rows(encoding, keep, "mask", token) for encoding, keep in judged]
    own = [encoding for encoding, _ in judged]
    # With the labels as targets, `kept` says whether the erased text is still classed right.
    after = evaluate_inputs(Engine(model), inputs, own, [e.example.label for e in own]).kept
    before = [p.right for p in predictions(Engine(model), own)]
    assert (before, after.tolist()) == ([True, True, False], [False, True, False])
    assert tpr_drop(before, after.tolist()) == 0.5


@pytest.mark.parametrize("name", EVERY)
def test_nothing_marked_is_none_and_not_zero(name: str) -> None:
    assert EVERY[name](words([1, 2, 3], None)) is None
    assert EVERY[name](words([], None)) is None


# Against others


@settings(deadline=None)
@given(some_words)
def test_auprc_is_that_of_scikit_learn(example: WordScores) -> None:
    from sklearn.metrics import auc, precision_recall_curve

    precision, recall, _ = precision_recall_curve(example.rationale, example.scores)
    assert auprc(example) == pytest.approx(auc(recall, precision), abs=1e-12)


# What must not move a value


@pytest.mark.parametrize("name", BY_RANK)
@settings(deadline=None)
@given(example=some_words)
def test_rising_functions_of_the_scores_change_no_rank_metric(
    name: str, example: WordScores
) -> None:
    for change in (np.exp, np.arctan, lambda s: s**3 - 7, lambda s: 1e-9 * s):
        moved = replace(example, scores=change(example.scores))
        assert BY_RANK[name](moved) == BY_RANK[name](example)


@pytest.mark.parametrize("name", EVERY)
@settings(deadline=None)
@given(example=some_words, factor=st.floats(1e-6, 1e6))
def test_scaling_changes_nothing(name: str, example: WordScores, factor: float) -> None:
    scaled = replace(example, scores=factor * example.scores)
    value = EVERY[name](example)
    assert EVERY[name](scaled) == value
    assert value is not None and 0 <= value <= 1


@settings(deadline=None)
@given(some_words)
def test_the_rationale_itself_is_the_ceiling(example: WordScores) -> None:
    assert example.rationale is not None
    share = float(example.rationale.mean())
    perfect = replace(example, scores=example.rationale.astype(float), second=0, share=share)
    for metric in EVERY.values():
        value = metric(perfect)
        assert value == pytest.approx(1)


# Spans


def test_overlap_by_hand() -> None:
    table = overlap([(0, 2), (3, 7)], [(0, 1), (1, 5), (9, 10)])
    assert table.tolist() == [[1 / 2, 1 / 5, 0], [0, 2 / 6, 0]]
    assert matched([(0, 2), (3, 7)], [(0, 1), (1, 5)], 0.5) == 1
    assert matched([(0, 2), (3, 7)], [(0, 1), (1, 5)], 1 / 3) == 2
    assert matched([], [(0, 1)], 0.5) == matched([(0, 1)], [], 0.5) == 0
