"""What `faithbench run` does once its options are parsed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from rich.console import Console

from faithbench.commands import model_for
from faithbench.data import Dataset, load_dataset
from faithbench.display import caption, progress_on, results_tables
from faithbench.erasure import Operator
from faithbench.errors import FaithbenchError, unknown
from faithbench.files import check_writable
from faithbench.metrics import Metric, Need, find_metrics
from faithbench.selection import Chosen, find_explainers
from faithbench.tasks import Task, load_task

if TYPE_CHECKING:
    from faithbench.encoding import Long
    from faithbench.models import Model

_OPERATORS = ("mask", "delete", "pad")
_LONG = ("truncate", "window")


def run_command(
    *,
    explainer: str,
    task: str,
    model: str | None,
    data: Path | None,
    source: str,
    split: str,
    limit: int | None,
    metrics: str,
    operator: str,
    device: str,
    dtype: str,
    seed: int,
    seeds: int,
    encoder: str | None,
    human: bool,
    batch: int,
    long: str,
    results: Path,
    allow_changed_data: bool,
    plugins: list[Path],
) -> None:
    """Run explainers on a task and print the table, three heat maps and the record paths."""
    console = Console()
    the_task = load_task(task)
    find_metrics(metrics)  # a misspelt name is said before anything is loaded
    _check_options(the_task, operator, long)
    check_writable(results)
    dataset = load_dataset(
        the_task,
        source=source,
        split=split,
        folder=data,
        limit=limit,
        allow_changed=allow_changed_data,
    )
    chosen = _explainers(explainer, plugins, dataset, human)
    draws = any(getattr(one.explainer, "stochastic", False) for one in chosen)
    wanted = wanted_metrics(metrics, dataset, several_seeds=seeds > 1 and draws)
    with console.status("loading model"):
        from faithbench.cells import Job
        from faithbench.models import load_model
        from faithbench.precision import HALVES, precision_shift
        from faithbench.run import run

        name, revision = model_for(the_task, dataset, model)

        def load(kind: str) -> Model:
            return load_model(
                name,
                labels=the_task.labels,
                kind=the_task.kind,
                revision=revision,
                device=device,
                dtype=kind,
            )

        loaded = load(dtype)
        shift = precision_shift(load("float32"), loaded, dataset) if dtype in HALVES else None
    job = Job(
        dataset, loaded, chosen, wanted, results, cast(Operator, operator), seed,
        seeds, encoder, chunk=batch, precision=shift, long=cast("Long", long),
    )  # fmt: skip
    with progress_on(console) as progress:
        outcomes = run(job, progress)
    for table in results_tables([(o.chosen.label, o.record) for o in outcomes]):
        console.print(table)
    console.print(caption(outcomes[0].record), style="dim", highlight=False)
    from faithbench.comparison import comparison_lines, show_examples

    for line in comparison_lines(outcomes):
        console.print(line, highlight=False, markup=False)
    show_examples(console, loaded, dataset, outcomes[0])
    for outcome in outcomes:
        console.print(f"record: {outcome.path}", highlight=False, markup=False, soft_wrap=True)


def _check_options(task: Task, operator: str, long: str) -> None:
    """Refuse what no task takes, and what questions do not."""
    if operator not in _OPERATORS:
        raise unknown("operator", operator, _OPERATORS)
    if task.kind == "qa" and operator != "mask":
        raise FaithbenchError(
            f"task {task.name} asks for answers, whose places --operator {operator} would "
            "move or blur; leave it at mask"
        )
    if long not in _LONG:
        raise unknown("way to read long texts", long, _LONG)
    if task.kind == "qa" and long == "window":
        raise FaithbenchError(
            f"task {task.name} asks for answers, which --long window cannot join; "
            "leave it at truncate"
        )


def _explainers(text: str, plugins: list[Path], data: Dataset, human: bool) -> tuple[Chosen, ...]:
    """Find explainers; what people marked is one too, where they did: plausibility's ceiling."""
    marked = data.rationale == "human"
    chosen = find_explainers(text, plugins, rationale=marked)
    if not human or not marked or any(one.name == "human" for one in chosen):
        return chosen
    return (*chosen, *find_explainers("human"))


def wanted_metrics(metrics: str, data: Dataset, *, several_seeds: bool) -> tuple[Metric, ...]:
    """Resolve the metrics; `all` leaves out what task, data or explainers lack the needs of."""
    there: dict[Need, bool] = {
        "answers": data.task.kind == "qa",
        "rationale": data.rationale != "none",
        "sentences": data.rationale != "none" and data.task.rationale_unit == "sentences",
        "seeds": several_seeds,
    }
    return find_metrics(metrics, [need for need, is_there in there.items() if is_there])
