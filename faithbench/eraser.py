"""Agreement with rationales as ERASER's released code computes it, over a whole corpus.

DeYoung et al. (2020), section 4. A run reports the values of `plausibility.py`, one per example
and null where undefined; these functions are for results that compare with ERASER's own. They
differ in the means (here micro, or F1 of mean precision and mean recall), count every found span
that overlaps a marked one enough, so that recall may exceed 1, and take 0 where there is nothing
to divide by.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.types import Bools, Floats, Span


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
