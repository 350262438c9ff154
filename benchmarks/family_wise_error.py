"""Measure how often a table of equal explainers shows any significant difference.

    python benchmarks/family_wise_error.py [--draws 1000] [--no-write]

Every draw makes a table of 10 explainers on 200 examples in which no explainer is better than
another: the examples differ, and each explainer adds noise of its own to them. A family-wise error
is a draw with at least one p below .05 after Holm. At most .06 is allowed: .05, and room for the
chance of 1000 draws.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable

import numpy as np
from tabulate import tabulate

from faithbench.core.types import Floats
from faithbench.stats.pairwise import ALPHA
from faithbench.stats.tournament import tournament

ALLOWED = 0.06
Null = Callable[[np.random.Generator, int, int], Floats]


def normal(rng: np.random.Generator, explainers: int, n: int) -> Floats:
    """Draw easy and hard examples with normal noise, like the log-odds of a metric."""
    return rng.normal(size=n) + rng.normal(size=(explainers, n))


def heavy_tailed(rng: np.random.Generator, explainers: int, n: int) -> Floats:
    """Draw noise from Student's t with 2 degrees of freedom: a few examples decide the mean."""
    return rng.standard_t(2, size=n) + rng.standard_t(2, size=(explainers, n))


def skewed(rng: np.random.Generator, explainers: int, n: int) -> Floats:
    """Draw falls of a probability: most near 0 or near the whole, as AOPC's are."""
    share = rng.beta(0.5, 0.5, size=n)
    return rng.beta(0.2 + 2 * share, 2.2 - 2 * share, size=(explainers, n))


def few_levels(rng: np.random.Generator, explainers: int, n: int) -> Floats:
    """Draw shares in steps of 5% of which half are 1, like flip_fraction: heavy ties."""
    never = rng.random(n) < 0.4
    steps = rng.integers(1, 21, size=(explainers, n)) / 20
    return np.where(never | (rng.random((explainers, n)) < 0.2), 1.0, steps)


def mostly_equal(rng: np.random.Generator, explainers: int, n: int) -> Floats:
    """Draw explainers that agree on nine examples of ten, like settings of one method: zeros."""
    common = rng.normal(size=n).round(1)
    differs = rng.random((explainers, n)) < 0.05
    return common + differs * rng.normal(size=(explainers, n)).round(1)


def zero_one(rng: np.random.Generator, explainers: int, n: int) -> Floats:
    """Draw 0/1 values of easy and hard examples, like agreement: exact McNemar."""
    return (rng.random((explainers, n)) < rng.beta(2, 0.6, size=n)).astype(float)


NULLS: dict[str, Null] = {
    "normal": normal,
    "heavy tails": heavy_tailed,
    "skewed, like AOPC": skewed,
    "20 levels, half at 1": few_levels,
    "nine of ten equal": mostly_equal,
    "0/1, exact McNemar": zero_one,
}


def errors(null: Null, draws: int, explainers: int = 10, n: int = 200, better: int = 0) -> float:
    """Return the share of draws with a false discovery.

    The first `better` explainers are lifted by half a step of the values' spread, to see that
    true differences cost the others nothing; only pairs without a true one count as false.
    """
    names = [f"e{i}" for i in range(explainers)]
    lifted = set(names[:better])
    found = 0
    for seed in range(draws):
        values = null(np.random.default_rng(seed), explainers, n)
        values = values + np.where(np.arange(explainers) < better, values.std() / 2, 0)[:, None]
        table = dict(zip(names, values.round(9).tolist(), strict=True))
        found += any(
            duel.adjusted is not None and duel.adjusted < ALPHA
            for duel in tournament(table, True).duels
            if (duel.first in lifted) == (duel.second in lifted)
        )
    return found / draws


def main() -> None:
    """Measure every null, and one with true differences, and keep the figures."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    shares = {name: errors(null, options.draws) for name, null in NULLS.items()}
    shares["normal, one of ten truly better"] = errors(normal, options.draws, better=1)
    rows = [(name, f"{share:.3f}", f"{_error(share, options.draws):.3f}")
            for name, share in shares.items()]  # fmt: skip
    highest = max(shares.values())
    body = (
        f"Share of {options.draws} tables of 10 equal explainers on 200 examples with any p < .05 "
        f"after Holm over the 45 pairs. Highest: {highest:.3f} (allowed: {ALLOWED}).\n\n"
        + tabulate(
            rows,
            ("values", "family-wise error", "standard error"),
            tablefmt="github",
            disable_numparse=True,
        )
    )
    if options.no_write:
        print(body)
    else:
        from tables import write_section

        write_section("Family-wise error", "python benchmarks/family_wise_error.py", body)
    if highest > ALLOWED:
        raise SystemExit(f"family-wise error {highest:.3f} is above {ALLOWED}")


def _error(share: float, draws: int) -> float:
    return math.sqrt(max(share * (1 - share), 1 / draws) / draws)


if __name__ == "__main__":
    main()
