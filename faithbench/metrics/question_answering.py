"""Question answering: does the explanation point at the answer?"""

from __future__ import annotations

from faithbench.metrics import metric
from faithbench.ranking import rank
from faithbench.types import Answers, Case

BEST = 20


@metric(
    "answer_recall_at_20",
    family="faithfulness",
    higher_is_better=True,
    bounds=(0, 1),
    need="answers",
)
def answer_recall_at_20(case: Case, answers: Answers) -> float | None:
    """Share of the gold answer's tokens among the 20 best (the Precision@20 of Song et al.).

    Of several accepted answers the one found best, as in SQuAD's own scores; none: no value.
    """
    if not case.gold:
        return None
    best = case.evidence[rank(case.every_score[case.evidence])[:BEST]]
    return max(float(gold[best].sum() / gold.sum()) for gold in case.gold)
