"""Plausibility: do explanations mark the words that people mark? As ERASER defines it.

Proxies, which no person marked, are the record's to tell apart.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from faithbench.metrics import rationale_agreement as plausibility
from faithbench.metrics.explained import ExplainedTexts
from faithbench.metrics.registry import Measure, file_metric, table_metric
from faithbench.metrics.word_scores import WordScores


@table_metric(
    "auprc", family="plausibility", higher_is_better=True, bounds=(0, 1), need="rationale"
)
def auprc(table: ExplainedTexts) -> list[float | None]:
    """Area under precision and recall of the words' scores against the rationale."""
    return [plausibility.auprc(words) for words in table.words]


@table_metric(
    "token_f1", family="plausibility", higher_is_better=True, bounds=(0, 1), need="rationale"
)
def token_f1(table: ExplainedTexts) -> list[float | None]:
    """F1 of the top words, as many as rationales have on average, and the rationale's."""
    return _hard(plausibility.token_f1, table.words, table.share)


@table_metric(
    "token_precision", family="plausibility", higher_is_better=True, bounds=(0, 1), need="rationale"
)
def token_precision(table: ExplainedTexts) -> list[float | None]:
    """Share of those top words that are in the rationale."""
    return _hard(plausibility.token_precision, table.words, table.share)


@table_metric(
    "token_recall", family="plausibility", higher_is_better=True, bounds=(0, 1), need="rationale"
)
def token_recall(table: ExplainedTexts) -> list[float | None]:
    """Share of the rationale's words that are among those top words."""
    return _hard(plausibility.token_recall, table.words, table.share)


@table_metric(
    "iou_f1", family="plausibility", higher_is_better=True, bounds=(0, 1), need="rationale"
)
def iou_f1(table: ExplainedTexts) -> list[float | None]:
    """F1 of spans that overlap by half, one to one (ERASER's own count can exceed 1)."""
    return _hard(plausibility.iou_f1, table.words, table.share)


@table_metric(
    "iou_f1:variant=eraser",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, inf),
    opt_in=True,
    need="rationale",
)
def iou_f1_eraser(table: ExplainedTexts) -> list[float | None]:
    """The same as ERASER's code counts: several found spans may match one."""

    def released(words: WordScores, share: float) -> float | None:
        return plausibility.iou_f1(words, share, released=True)

    return _hard(released, table.words, table.share)


@table_metric(
    "sentence_auprc", family="plausibility", higher_is_better=True, bounds=(0, 1), need="sentences"
)
def sentence_auprc(table: ExplainedTexts) -> list[float | None]:
    """AUPRC of sentences, each as good as its best word."""
    return [plausibility.auprc(words) for words in table.sentences]


@table_metric(
    "sentence_f1", family="plausibility", higher_is_better=True, bounds=(0, 1), need="sentences"
)
def sentence_f1(table: ExplainedTexts) -> list[float | None]:
    """F1 of the top sentences and the rationale's."""
    return _hard(plausibility.token_f1, table.sentences, table.sentence_share)


@table_metric(
    "saliency_accuracy",
    family="plausibility",
    higher_is_better=True,
    bounds=(0, 1),
    need="rationale",
)
def saliency_accuracy(table: ExplainedTexts) -> list[float | None]:
    """Share of the rationale's words with a positive score (Ghaeini et al. 2019)."""
    return [plausibility.saliency_accuracy(words) for words in table.words]


file_metric(
    Measure(
        "tpr_drop", "plausibility", True, -inf, 1.0, 1,
        "Of the model, not of explainers: share of right answers lost when rationales are erased.",
        need="rationale",
    )
)  # fmt: skip


def _hard(
    judge: Callable[[WordScores, float], float | None],
    words: Sequence[WordScores],
    share: float | None,
) -> list[float | None]:
    """Judge the words of each example by the mean share of marked ones; no share, no values."""
    return [None if share is None else judge(own, share) for own in words]
