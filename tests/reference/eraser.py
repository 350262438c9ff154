"""What the papers behind plausibility compute for a whole corpus, as their released code has it.

ERASER's agreement of documents (DeYoung et al. 2020) and the hinge of saliency learning (Ghaeini et
al. 2019): no metric is made of them, but stored values of the released code are, and show that the
parts which metrics share with them are right.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.core.types import Bools, Floats, Span
from faithbench.metrics.plausibility import matched
from faithbench.metrics.word_scores import WordScores


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
        _mean(agreement.precision for agreement in each),
        _mean(agreement.recall for agreement in each),
        _mean(agreement.f1 for agreement in each),
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


def f1(precision: float, recall: float) -> float:
    """Return the harmonic mean; 0 if either is 0."""
    return 2 * precision * recall / (precision + recall) if precision and recall else 0.0


def _pooled(counts: Sequence[tuple[int, int, int]]) -> Agreement:
    """Pool counts of right, found and marked ones."""
    right, found, marked = (sum(count[index] for count in counts) for index in range(3))
    precision = right / found if found else 0.0
    recall = right / marked if marked else 0.0
    return Agreement(precision, recall, f1(precision, recall))


def _tokens(spans: Iterable[Span]) -> frozenset[Span]:
    return frozenset((token, token + 1) for start, end in spans for token in range(start, end))


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0


def saliency_hinge(words: WordScores) -> float | None:
    """Return how far below 0 the scores of marked words are, added (Ghaeini et al. 2019, Eq. 1)."""
    if words.rationale is None:
        return None
    return float(np.maximum(0.0, -words.scores[words.rationale]).sum())
