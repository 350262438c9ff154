"""What each number means: pure functions of an example, of its words, or of a whole table.

The room offers `metric`, the decorator that makes a metric of a function (`registry` explains it
with an example); `find_metrics` and `METRICS`, by which metrics are asked for; and what metrics
are given: `WordScores` and `ExplainedTexts`. The families are files: `faithfulness`, `stability`,
`plausibility` and `cost`; `influence` has the measures of the paper on sparse attention, `released`
the variants of published code, `fresh` the score of classifiers trained on rationales.
"""

from faithbench.metrics import (
    cost,
    faithfulness,
    fresh,
    influence,
    plausibility,
    released,
    stability,
)
from faithbench.metrics.explained import ExplainedTexts
from faithbench.metrics.kinds import FAMILIES, Metric
from faithbench.metrics.registry import METRICS, find_metrics, metric, metrics_in, register
from faithbench.metrics.word_scores import WordScores

__all__ = [
    "FAMILIES",
    "METRICS",
    "ExplainedTexts",
    "Metric",
    "WordScores",
    "find_metrics",
    "metric",
]

# The order of the catalogue: records and leaderboards list metrics by it.
register(cost.COSTS)
for _family in (faithfulness, influence, plausibility, released, stability, fresh):
    register(metrics_in(_family))
