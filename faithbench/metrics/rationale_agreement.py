"""Do explanations mark what people mark? One value per example, from words and their scores.

Every function returns None where its value is undefined: no rationale, or no words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.core.types import Bools, Floats, Span, rank
from faithbench.metrics.word_scores import WordScores

ENOUGH = 0.5
"""Two spans match if so much of their union is shared (ERASER, section 4.1)."""


def auprc(words: WordScores) -> float | None:
    """Return the area under the precision-recall curve of the scores (ERASER, section 4.1).

    By the trapezoid rule over one point per distinct score and the point of recall 0 and
    precision 1, as scikit-learn's `precision_recall_curve` and `auc` have it. It is 1 where
    all words are marked.
    """
    if words.rationale is None:
        return None
    order = rank(words.scores)
    scores, marked = words.scores[order], words.rationale[order]
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)
    right = np.cumsum(marked)[ends]
    precision = np.concatenate([[1.0], right / (ends + 1)])
    recall = np.concatenate([[0.0], right / right[-1]])
    return float(np.sum(np.diff(recall) * (precision[1:] + precision[:-1]) / 2))


def token_precision(words: WordScores, share: float) -> float | None:
    """Return the share of the hard rationale's words that are marked."""
    return _judged(words, share, lambda right, found, marked: right / found)


def token_recall(words: WordScores, share: float) -> float | None:
    """Return the share of the marked words that the hard rationale has."""
    return _judged(words, share, lambda right, found, marked: right / marked)


def token_f1(words: WordScores, share: float) -> float | None:
    """Return the F1 of marked words and the hard rationale's."""
    return _judged(words, share, lambda right, found, marked: 2 * right / (found + marked))


def iou_f1(words: WordScores, share: float, *, released: bool = False) -> float | None:
    """Return the F1 of spans, which are runs of neighbouring words of the hard rationale.

    A found span matches a marked one if their IoU is at least a half. Each span has at most
    one partner, and as many as possible have one; `released` counts as ERASER's code does. On
    runs the two agree: two that share a partner would have to touch, and be one run.
    """
    if words.rationale is None:
        return None
    found, marked = runs(hard_rationale(words, share), words), runs(words.rationale, words)
    return span_f1(found, marked, released=released)


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


def saliency_accuracy(words: WordScores) -> float | None:
    """Return the share of marked words with a positive score (Ghaeini et al. 2019, section 5.2)."""
    if words.rationale is None:
        return None
    return float((words.scores[words.rationale] > 0).mean())


def saliency_hinge(words: WordScores) -> float | None:
    """Return how far below 0 the scores of marked words are, added (Ghaeini et al. 2019, Eq. 1)."""
    if words.rationale is None:
        return None
    return float(np.maximum(0.0, -words.scores[words.rationale]).sum())


def tpr_drop(before: Sequence[bool], after: Sequence[bool]) -> float | None:
    """Return by what part the true-positive rate falls when rationales are erased.

    A property of a model (Ghaeini et al. 2019, section 5.4). One entry per example that has a
    rationale, its label being the positive class: is the model right on the full text, and
    on the text without the rationale? None where it is right on no full text.
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


def runs(marked: Bools, words: WordScores) -> tuple[Span, ...]:
    """Join neighbouring marked words into spans [start, end) of words, each within one text."""
    border = len(marked) - words.second
    edges = np.flatnonzero(np.diff(np.concatenate([[False], marked, [False]]).astype(np.int8)))
    found: list[Span] = []
    for start, end in edges.reshape(-1, 2).tolist():
        if start < border < end:
            found += [(start, border), (border, end)]
        else:
            found.append((start, end))
    return tuple(found)


def _judged(
    words: WordScores, share: float, judge: Callable[[int, int, int], float]
) -> float | None:
    """Judge the counts of words that are in both, found, and marked."""
    if words.rationale is None:
        return None
    found = hard_rationale(words, share)
    right = int((found & words.rationale).sum())
    return judge(right, int(found.sum()), int(words.rationale.sum()))


def _partners(found: Sequence[Span], marked: Sequence[Span]) -> int:
    """Return how many pairs can be made of spans that match, no span in two of them."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import maximum_bipartite_matching

    match = csr_array(overlap(found, marked) >= ENOUGH)
    return int((maximum_bipartite_matching(match, perm_type="column") >= 0).sum())


@dataclass(frozen=True)
class Document:
    """A document's token spans [start, end), as marked by people and as found by a system."""

    marked: frozenset[Span]
    found: frozenset[Span]


@dataclass(frozen=True)
class Agreement:
    """Precision, recall and F1 between what was found and what was marked."""

    precision: float
    recall: float
    f1: float


@dataclass(frozen=True)
class SoftAgreement:
    """How well scores rank marked tokens: each a mean over documents."""

    auprc: float
    average_precision: float
    roc_auc: float


def iou_agreement(
    documents: Sequence[Document], threshold: float = 0.5
) -> tuple[Agreement, Agreement]:
    """Return micro and macro IOU-F1: a found span is right if one marked span overlaps enough.

    Macro is the F1 of the mean precision (of documents with a found span) and the mean recall
    (of those with a marked one), not the mean of F1s.
    """
    counts = [
        (matched(tuple(d.found), tuple(d.marked), threshold), len(d.found), len(d.marked))
        for d in documents
    ]
    micro = _pooled(counts)
    precision = _mean(right / found for right, found, _ in counts if found)
    recall = _mean(right / marked for right, _, marked in counts if marked)
    return micro, Agreement(precision, recall, f1(precision, recall))


def span_agreement(documents: Sequence[Document]) -> tuple[Agreement, Agreement]:
    """Return micro and macro agreement on whole spans; macro is the mean of documents' values.

    Documents with neither a marked nor a found span do not count.
    """
    counts = [(len(d.marked & d.found), len(d.found), len(d.marked)) for d in documents]
    each = [_pooled([count]) for count in counts if count[1] or count[2]]
    macro = Agreement(
        _mean(one.precision for one in each),
        _mean(one.recall for one in each),
        _mean(one.f1 for one in each),
    )
    return _pooled(counts), macro


def token_agreement(documents: Sequence[Document]) -> tuple[Agreement, Agreement]:
    """Return micro and macro agreement on tokens, as `span_agreement` with spans of one token."""
    return span_agreement([Document(_tokens(d.marked), _tokens(d.found)) for d in documents])


def soft_agreement(scores: Sequence[Floats], marked: Sequence[Bools]) -> SoftAgreement:
    """Return AUPRC, average precision and ROC-AUC of documents' token scores.

    Documents without a marked token, or with nothing else, count in AUPRC (as 0.5 and 1) and
    in no other.
    """
    from sklearn.metrics import (
        auc,
        average_precision_score,
        precision_recall_curve,
        roc_auc_score,
    )

    curves = [precision_recall_curve(m, s)[:2] for s, m in zip(scores, marked, strict=True)]
    mixed = [(m, s) for s, m in zip(scores, marked, strict=True) if 0 < m.sum() < len(m)]
    return SoftAgreement(
        auprc=_mean(float(auc(recall, precision)) for precision, recall in curves),
        average_precision=_mean(float(average_precision_score(*pair)) for pair in mixed),
        roc_auc=_mean(float(roc_auc_score(*pair)) for pair in mixed),
    )


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


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean; 0 if either is 0."""
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


def _pooled(counts: Sequence[tuple[int, int, int]]) -> Agreement:
    """Pool counts of right, found and marked ones."""
    right, found, marked = (sum(count[place] for count in counts) for place in range(3))
    precision = right / found if found else 0.0
    recall = right / marked if marked else 0.0
    return Agreement(precision, recall, f1(precision, recall))


def _tokens(spans: Iterable[Span]) -> frozenset[Span]:
    return frozenset((token, token + 1) for start, end in spans for token in range(start, end))


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
