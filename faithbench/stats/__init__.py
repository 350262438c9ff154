"""Intervals, paired tests, groups of ties and ranks: numbers in, numbers out.

- `summaries`: means with bootstrap intervals, `summarise` for one column of values
- `signed_rank` and `pairwise`: tests of two explainers on the same examples. `paired_tests` takes
  McNemar's test for values of 0 and 1, else signed ranks; `paired_t` (as FRESH does), `rank_sum`
  (as SaLoss does) and `mcnemar_greater` (as Saliency Learning does) repeat what papers report;
  `mean_tests` and `two_sample_t` are of means; `holm` corrects for many tests
- `tournament`: all pairs of a table, letters of ties, the best
- `ranks`: mean ranks over tasks, Friedman's test, Nemenyi's critical difference

Functions that are named like their module are imported from it.
"""

from faithbench.stats.pairwise import (
    ALPHA,
    holm,
    mcnemar,
    mcnemar_greater,
    mean_tests,
    paired_t,
    paired_tests,
    rank_sum,
    two_sample_t,
)
from faithbench.stats.ranks import RankTest, rank_test
from faithbench.stats.signed_rank import PairedTest
from faithbench.stats.summaries import bootstrap, summarise
from faithbench.stats.tournament import Tournament

__all__ = [
    "ALPHA",
    "PairedTest",
    "RankTest",
    "Tournament",
    "bootstrap",
    "holm",
    "mcnemar",
    "mcnemar_greater",
    "mean_tests",
    "paired_t",
    "paired_tests",
    "rank_sum",
    "rank_test",
    "summarise",
    "two_sample_t",
]
