"""Plausibility against stored values of the papers' released code, through the reference."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.metrics.plausibility import saliency_accuracy
from faithbench.metrics.word_scores import WordScores
from tests.reference.eraser import (
    Agreement,
    Document,
    iou_agreement,
    saliency_hinge,
    soft_agreement,
    span_agreement,
    token_agreement,
)

GOLDEN = Path(__file__).parents[1] / "reference" / "golden" / "metrics"
PAPER: list[dict[str, Any]] = json.loads((GOLDEN / "saliency_learning.json").read_text())
STORED: dict[str, Any] = json.loads((GOLDEN / "eraser_plausibility.json").read_text())
EXPECTED = STORED["expected"]


def words(scores: list[float], rationale: list[int] | None) -> WordScores:
    marked = None if rationale is None else np.array(rationale, dtype=bool)
    spans = tuple((2 * i, 2 * i + 1) for i in range(len(scores)))
    return WordScores(np.array(scores, dtype=float), ("w",) * len(scores), spans, marked)


def test_the_hinge_by_hand() -> None:
    assert saliency_hinge(words([1, -1.5, -2, -5], [1, 1, 1, 0])) == 3.5
    assert saliency_hinge(words([], None)) is None


@pytest.mark.parametrize("stored", PAPER, ids=lambda s: s["name"])
def test_saliency_learning(stored: dict[str, Any]) -> None:
    of_logit = words(stored["saliency_logit"], stored["Z"])
    of_probability = words(stored["saliency_prob"], stored["Z"])
    accuracy = saliency_accuracy(of_logit)
    assert accuracy is not None
    assert 100 * accuracy == pytest.approx(stored["saliency_accuracy_logit"], rel=1e-14)
    # The stored values are of the size of rounding errors: relative, not absolute.
    assert saliency_hinge(of_logit) == pytest.approx(stored["hinge_logit"], rel=1e-12, abs=0)
    assert saliency_hinge(of_probability) == pytest.approx(stored["hinge_prob"], rel=1e-12, abs=0)


def document(marked: list[list[int]], found: list[list[int]]) -> Document:
    return Document(frozenset((a, b) for a, b in marked), frozenset((a, b) for a, b in found))


def corpus() -> list[Document]:
    return [document(d["marked"], d["found"]) for d in STORED["documents"]]


def same(found: Agreement, expected: dict[str, float]) -> None:
    given = (found.precision, found.recall, found.f1)
    assert given == (expected["p"], expected["r"], expected["f1"])


@pytest.mark.parametrize("expected", EXPECTED["iou"], ids=lambda e: str(e["threshold"]))
def test_iou(expected: dict[str, Any]) -> None:
    micro, macro = iou_agreement(corpus(), expected["threshold"])
    same(micro, expected["micro"])
    same(macro, expected["macro"])


@pytest.mark.parametrize(
    ("agreement", "key"), [(span_agreement, "rationale_prf"), (token_agreement, "token_prf")]
)
def test_spans_and_tokens(agreement: Any, key: str) -> None:
    micro, macro = agreement(corpus())
    same(micro, EXPECTED[key]["instance_micro"])
    same(macro, EXPECTED[key]["instance_macro"])


def test_soft_scores() -> None:
    scores = [np.array(d["scores"]) for d in STORED["documents"]]
    marked = [np.zeros(len(s), dtype=bool) for s in scores]
    for mask, entry in zip(marked, STORED["documents"], strict=True):
        for start, end in entry["marked"]:
            mask[start:end] = True
    found, expected = soft_agreement(scores, marked), EXPECTED["soft"]
    assert found.auprc == pytest.approx(expected["auprc"], abs=1e-15)
    assert found.average_precision == pytest.approx(expected["average_precision"], abs=1e-15)
    assert found.roc_auc == pytest.approx(expected["roc_auc_score"], abs=1e-15)


def test_documents_of_one_class_count_in_auprc_alone() -> None:
    ranked = np.array([3.0, 2.0, 1.0])
    marked = [np.array([True, False, False]), np.zeros(3, dtype=bool), np.ones(3, dtype=bool)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = soft_agreement([ranked] * 3, marked)
    assert found.auprc == pytest.approx((1 + 0.5 + 1) / 3)
    assert (found.average_precision, found.roc_auc) == (1, 1)


def test_recall_may_exceed_one() -> None:
    """Two halves of one marked span each reach an IoU of a half."""
    micro, macro = iou_agreement([document([[0, 4]], [[0, 2], [2, 4]])])
    assert micro == macro == Agreement(1.0, 2.0, pytest.approx(4 / 3))


def test_means_leave_out_documents_that_lack_a_side() -> None:
    documents = [document([[0, 2]], [[0, 2]]), document([[0, 2]], []), document([], [[4, 5]])]
    documents.append(document([], []))
    micro, macro = iou_agreement(documents)
    # Precisions 1 and 0, recalls 1 and 0: each of two documents.
    assert micro == macro == Agreement(0.5, 0.5, 0.5)
    exact = span_agreement(documents)[1]
    third = pytest.approx(1 / 3)
    assert exact == Agreement(third, third, third)
    nothing = Agreement(0.0, 0.0, 0.0)
    assert iou_agreement([document([], [])]) == (nothing, nothing)
    assert iou_agreement([]) == token_agreement([]) == (nothing, nothing)
