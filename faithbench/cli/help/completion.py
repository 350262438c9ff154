"""What Tab offers for names of tasks, explainers, metrics and models."""

from __future__ import annotations

from collections.abc import Iterable


def complete_tasks(incomplete: str) -> list[str]:
    """Return the tasks that begin so."""
    from faithbench.data.tasks import task_names

    return _beginning(incomplete, task_names())


def complete_explainers(incomplete: str) -> list[str]:
    """Return the built-in explainers whose name begins as the last of those typed."""
    from faithbench.explainers.registry import EXPLAINERS

    return _beginning(incomplete, EXPLAINERS)


def complete_metrics(incomplete: str) -> list[str]:
    """Return the metrics and families whose name begins as the last of those typed."""
    from faithbench.metrics import FAMILIES, METRICS

    return _beginning(incomplete, (*FAMILIES, *METRICS))


def complete_models(incomplete: str) -> list[str]:
    """Return the bundled models that begin so."""
    from faithbench.cli.reference.models import bundled_models

    return _beginning(incomplete, bundled_models())


def _beginning(incomplete: str, names: Iterable[str]) -> list[str]:
    """Complete the last of several names between commas."""
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]
