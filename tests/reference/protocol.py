"""The faithfulness table of docs/protocol.md, written a second time: plain, slow, from its text."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

Oracle = Callable[[frozenset[int]], tuple[float, bool]]
"""Without these tokens: the probability of the prediction, and whether it is still made."""

TABLE = (
    "aopc",
    "lodds",
    "comprehensiveness",
    "sufficiency",
    "flip_fraction",
    "delta_log_odds",
    "delta_log_odds_neg",
    "agreement",
    "tau_loo",
    "fi_entropy",
)


def table(scores: Sequence[float], oracle: Oracle) -> dict[str, float | None]:
    """Return all values of TABLE for tokens 0 ... n - 1 that may be erased."""
    n = len(scores)
    everything = frozenset(range(n))
    order = sorted(range(n), key=lambda i: (-scores[i], i))
    full = oracle(frozenset())[0]

    def top(percent: int) -> frozenset[int]:
        return frozenset(order[: max(1, (2 * percent * n + 100) // 200)])

    def without(percent: int) -> float:
        return oracle(top(percent))[0]

    deciles = [without(k) for k in range(10, 100, 10)]
    eraser = (1, 5, 10, 20, 50)
    kept_only = [oracle(everything - top(k))[0] for k in eraser]
    flips = (len(top(k)) / n for k in range(5, 105, 5) if not oracle(top(k))[1])
    below = sorted((i for i in range(n) if scores[i] < 0), key=lambda i: (scores[i], i))
    worst = frozenset(below[: len(top(30))])
    drops = [full - oracle(frozenset([i]))[0] for i in range(n)]
    return {
        "aopc": sum(full - p for p in deciles) / 9,
        "lodds": sum(math.log(p / full) for p in deciles) / 9,
        "comprehensiveness": sum(full - without(k) for k in eraser) / 5,
        "sufficiency": sum(full - p for p in kept_only) / 5,
        "flip_fraction": next(flips, 1.0),
        "delta_log_odds": logit(full) - logit(without(30)),
        "delta_log_odds_neg": logit(full) - logit(oracle(worst)[0]) if worst else None,
        "agreement": float(oracle(everything - top(30))[1]),
        "tau_loo": tau_b(scores, drops),
        "fi_entropy": entropy(scores),
    }


def logit(p: float) -> float:
    p = min(max(p, 1e-6), 1 - 1e-6)
    return math.log(p / (1 - p))


def tau_b(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Kendall's tau-b by counting pairs: (C - D) / sqrt((C + D + X)(C + D + Y))."""
    agree = ties_first = ties_second = untied = 0
    for i in range(len(first)):
        for j in range(i):
            a, b = float(first[i] - first[j]), float(second[i] - second[j])
            untied += bool(a and b)
            agree += bool(a and b) and (1 if (a > 0) == (b > 0) else -1)
            ties_first += a == 0 != b
            ties_second += b == 0 != a
    scale = (untied + ties_first) * (untied + ties_second)
    return agree / math.sqrt(scale) if scale else None


def entropy(scores: Sequence[float]) -> float | None:
    total = sum(abs(s) for s in scores)
    if len(scores) < 2 or total == 0:
        return None
    shares = [abs(s) / total for s in scores if s]
    return -sum(s * math.log(s) for s in shares) / math.log(len(scores))


def same(
    found: dict[str, float | None], expected: dict[str, float | None], close: float = 1e-9
) -> bool:
    """Compare two tables; what has no value must have none in the other."""
    return set(found) == set(expected) and all(
        value == found[name]
        if value is None or found[name] is None
        else abs(value - found[name]) <= close
        for name, value in expected.items()
    )
