"""faithbench: how faithful, stable, plausible and fast an explanation of an NLP model is."""

from __future__ import annotations

from typing import Any

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.registry import explainer

__all__ = ["FaithbenchError", "explainer", "metric", "per_example"]


def __getattr__(name: str) -> Any:
    # Loads torch, which `faithbench --help` must not wait for.
    if name == "per_example":
        from faithbench.explainers.per_example import per_example

        return per_example
    if name == "metric":
        from faithbench.metrics.registry import metric

        return metric
    raise AttributeError(f"module 'faithbench' has no attribute {name!r}")
