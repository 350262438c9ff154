"""Plausibility: do explanations mark the words that people mark? As ERASER defines it.

A word metric sees one example and returns None where its value is undefined: no rationale, or no
words. Proxies, which no person marked, are the record's to tell apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import inf

import numpy as np

from faithbench.core.types import Bools, Floats, Span, rank
from faithbench.metrics.registry import metric
from faithbench.metrics.word_scores import WordScores

ENOUGH = 0.5
"""Two spans match if they share at least this part of their union (ERASER, section 4.1)."""


@metric(
    "auprc",
    kind="word",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, 1),
    need="rationale",
    headline=True,
    attainable=1,
    papers=("deyoung2020eraser",),
)
def auprc(words: WordScores) -> float | None:
    """Area under precision and recall of the words' scores against the rationale.

    ERASER, section 4.1: by the trapezoid rule over one point per distinct score and the point of
    recall 0 and precision 1. It is 1 where all words are marked.
    """
    # The same points as scikit-learn's `precision_recall_curve` and `auc`, which take 2.8 s for
    # 2,000 examples where this takes 0.09 s, and differ from it in the last bit of every third.
    if words.rationale is None:
        return None
    order = rank(words.scores)
    scores, marked = words.scores[order], words.rationale[order]
    # A threshold takes all words of one score or none of them: points lie where a score ends.
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    right = np.cumsum(marked)[ends]
    precision = np.concatenate([[1.0], right / (ends + 1)])
    recall = np.concatenate([[0.0], right / right[-1]])
    return float(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))


@metric(
    "token_f1",
    kind="word",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, 1),
    need="rationale",
    headline=True,
    papers=("deyoung2020eraser",),
)
def token_f1(words: WordScores) -> float | None:
    """F1 of the top words, as many as rationales have on average, and the rationale's."""
    return _judged(words, lambda right, chosen, marked: 2 * right / (chosen + marked))


@metric(
    "token_precision",
    kind="word",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, 1),
    need="rationale",
    papers=("deyoung2020eraser",),
)
def token_precision(words: WordScores) -> float | None:
    """Share of those top words that are in the rationale."""
    return _judged(words, lambda right, chosen, marked: right / chosen)


@metric(
    "token_recall",
    kind="word",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, 1),
    need="rationale",
    papers=("deyoung2020eraser",),
)
def token_recall(words: WordScores) -> float | None:
    """Share of the rationale's words that are among those top words."""
    return _judged(words, lambda right, chosen, marked: right / marked)


@metric(
    "iou_f1",
    kind="word",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, 1),
    need="rationale",
    papers=("deyoung2020eraser",),
)
def iou_f1(words: WordScores) -> float | None:
    """F1 of spans that overlap by half, one to one (ERASER's own count can exceed 1).

    Spans are runs of neighbouring words of the hard rationale. Each has at most one partner, and
    as many as possible have one.
    """
    return _span_f1_of(words, released=False)


@metric(
    "iou_f1:variant=eraser",
    kind="word",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, inf),
    need="rationale",
    opt_in=True,
    papers=("deyoung2020eraser",),
)
def iou_f1_eraser(words: WordScores) -> float | None:
    """The same as ERASER's code counts: several found spans may match one.

    On runs the two agree: two that share a partner would have to touch, and be one run.
    """
    return _span_f1_of(words, released=True)


@metric(
    "sentence_auprc",
    kind="word",
    unit="sentences",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, 1),
    need="sentences",
    papers=("deyoung2020eraser",),
)
def sentence_auprc(sentences: WordScores) -> float | None:
    """AUPRC of sentences, each as good as its best word."""
    return auprc(sentences)


@metric(
    "sentence_f1",
    kind="word",
    unit="sentences",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, 1),
    need="sentences",
    papers=("deyoung2020eraser",),
)
def sentence_f1(sentences: WordScores) -> float | None:
    """F1 of the top sentences and the rationale's."""
    return token_f1(sentences)


@metric(
    "saliency_accuracy",
    kind="word",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, 1),
    need="rationale",
    papers=("ghaeini2019saliency",),
)
def saliency_accuracy(words: WordScores) -> float | None:
    """Share of the rationale's words with a positive score (Ghaeini et al. 2019).

    Their section 5.2.
    """
    if words.rationale is None:
        return None
    return float((words.scores[words.rationale] > 0).mean())


@metric(
    "tpr_drop",
    kind="measure",
    family="plausibility",
    higher_is_better=True,
    bounds=(-inf, 1.0),
    need="rationale",
    papers=("ghaeini2019saliency",),
)
def tpr_drop(before: Sequence[bool], after: Sequence[bool]) -> float | None:
    """Of the model, not of explainers: share of right answers lost when rationales are erased.

    By what part the true-positive rate falls (Ghaeini et al. 2019, section 5.4). One entry per
    example that has a rationale, its label being the positive class: is the model right on the
    full text, and on the text without the rationale? None where it is right on no full text.
    """
    pairs = list(zip(before, after, strict=True))
    first, last = sum(was for was, _ in pairs), sum(still for _, still in pairs)
    return (first - last) / first if first else None


def hard_rationale(words: WordScores, share: float) -> Bools:
    """Mark the top words, as many as the share says: rounded half up, at least one."""
    count = max(1, math.floor(share * len(words.scores) + 0.5))
    chosen = np.zeros(len(words.scores), dtype=bool)
    chosen[rank(words.scores)[:count]] = True
    return chosen


def _judged(words: WordScores, judge: Callable[[int, int, int], float]) -> float | None:
    """Judge the counts of words that are in both, in the hard rationale, and in the marked one."""
    if words.rationale is None or words.share is None:
        return None
    chosen = hard_rationale(words, words.share)
    right = int((chosen & words.rationale).sum())
    return judge(right, int(chosen.sum()), int(words.rationale.sum()))


def _span_f1_of(words: WordScores, *, released: bool) -> float | None:
    if words.rationale is None or words.share is None:
        return None
    found = runs(hard_rationale(words, words.share), words)
    return span_f1(found, runs(words.rationale, words), released=released)


def span_f1(
    found: Sequence[Span], marked: Sequence[Span], *, released: bool = False
) -> float | None:
    """Return the F1 of spans that match; `released` lets several found ones have one partner.

    ERASER counts every found span that overlaps a marked one enough, and divides that count
    by the marked spans for the recall: two halves of one marked span make a recall of 2.
    """
    if not found or not marked:
        return None
    right = matched(found, marked, ENOUGH) if released else _partners(found, marked)
    return 2 * right / (len(found) + len(marked))


def runs(marked: Bools, words: WordScores) -> tuple[Span, ...]:
    """Join neighbouring marked words into spans [start, end) of words, each within one text."""
    border = len(marked) - words.second
    # A mark that begins or ends is where neighbours differ, unmarked ones on both sides added.
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    spans: list[Span] = []
    for start, end in edges.reshape(-1, 2).tolist():
        if start < border < end:
            spans += [(start, border), (border, end)]
        else:
            spans.append((start, end))
    return tuple(spans)


def _partners(found: Sequence[Span], marked: Sequence[Span]) -> int:
    """Return how many pairs can be made of spans that match, no span in two of them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    match = csr_array(overlap(found, marked) >= ENOUGH)
    return int((maximum_bipartite_matching(match, perm_type="column") >= 0).sum())


def matched(found: Sequence[Span], marked: Sequence[Span], threshold: float) -> int:
    """Count the found spans whose best IoU with a marked span reaches the threshold."""
    if not found or not marked:
        return 0
    return int((overlap(found, marked).max(axis=1) >= threshold).sum())


def overlap(found: Sequence[Span], marked: Sequence[Span]) -> Floats:
    """Return the IoU of spans: one row per found span, one column per marked one."""
    starts, ends = np.array(found).reshape(-1, 2).T[:, :, None]
    left, right = np.array(marked).reshape(-1, 2).T[:, None, :]
    shared = np.maximum(0, np.minimum(ends, right) - np.maximum(starts, left))
    return np.asarray(shared / (ends - starts + right - left - shared), dtype=np.float64)
