"""FRESH: is what an explainer chooses enough to learn the task from? (Jain et al. 2020)

`faithbench fresh` trains classifiers on rationales alone; this file makes their score a metric.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from faithbench.metrics.faithfulness import ANY
from faithbench.metrics.registry import metric


def macro_f1_values(predicted: Sequence[int], gold: Sequence[int], classes: int) -> list[float]:
    """Return a value per example whose mean is macro-F1, and whose spread is that of macro-F1.

    These are the pseudo-values of the infinitesimal jackknife: macro-F1 plus n times its
    derivative by the example's weight. With T gold and S predicted examples of a class,
    F1 = 2 TP / (T + S), and the derivatives of all examples add up to 0.
    """
    truth, said = np.asarray(gold), np.asarray(predicted)
    there, named = np.bincount(truth, minlength=classes), np.bincount(said, minlength=classes)
    right = np.bincount(truth[truth == said], minlength=classes)
    # A class that is neither there nor predicted has an F1 of 0, as in a model's own scores.
    both = np.maximum(there + named, 1)
    f1 = 2 * right / both
    weight = len(truth) / (classes * both)
    gain = 2 * weight[truth] * (truth == said)
    loss = (weight * f1)[truth] + (weight * f1)[said]
    values: list[float] = (f1.mean() + gain - loss).tolist()
    return values


@metric(
    "fresh_f1_topk",
    kind="trained",
    family="faithfulness",
    higher_is_better=True,
    bounds=ANY,
    opt_in=True,
    command="faithbench fresh --select topk",
    papers=("jain2020learning",),
)
def fresh_f1_topk(predicted: Sequence[int], gold: Sequence[int], classes: int) -> list[float]:
    """Macro-F1 of a fresh classifier that was trained on, and reads, only the top words."""
    return macro_f1_values(predicted, gold, classes)


@metric(
    "fresh_f1_contiguous",
    kind="trained",
    family="faithfulness",
    higher_is_better=True,
    bounds=ANY,
    opt_in=True,
    command="faithbench fresh --select contiguous",
    papers=("jain2020learning",),
)
def fresh_f1_contiguous(predicted: Sequence[int], gold: Sequence[int], classes: int) -> list[float]:
    """The same for one stretch of words, the one with the highest sum of scores."""
    return macro_f1_values(predicted, gold, classes)
