"""The plan of a leaderboard: which explainers on which tasks, and running what is missing."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, ValidationError

from faithbench.core.erasure import Operator
from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import reason
from faithbench.core.schema import Count, Facts, describe_error
from faithbench.core.types import Progress
from faithbench.leaderboard.publish import publish_results

# Only for types: reading a plan, or importing this room, should not wait for torch.
if TYPE_CHECKING:
    from faithbench.explainers.selection import Selected
    from faithbench.run.job import Job
    from faithbench.run.request import Request

Positive = Annotated[int, Field(ge=1)]
Say = Callable[[str], None]


class PlannedRun(Facts):
    """Explainers that run on a task together.

    `name` is unique in the plan; `metrics` are given as to `faithbench run`. A published record
    keeps tokens and scores of at most `attributions` examples.
    """

    name: str
    task: str
    limit: Positive
    explainers: tuple[str, ...]
    metrics: str = "all"
    operator: Operator = "mask"
    seeds: Positive = 3
    attributions: Count = 40


class Plan(Facts):
    """All runs of a leaderboard, in the order in which they are to run."""

    runs: tuple[PlannedRun, ...]


def read_plan(path: Path) -> Plan:
    """Read a plan; an error names the wrong key or value."""
    try:
        plan = Plan.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FaithbenchError(f"cannot read plan {path}: {reason(error)}; check --plan") from error
    except ValidationError as error:
        raise FaithbenchError(f"plan {path}: {describe_error(error)}; fix it there") from error
    names = [run.name for run in plan.runs]
    twice = [name for index, name in enumerate(names) if name in names[:index]]
    if twice:
        raise FaithbenchError(f"plan {path} has two runs named {twice[0]!r}; rename one")
    return plan


def run_plan(
    plan: Plan,
    *,
    data: Path | None,
    results: Path,
    records: Path,
    only: tuple[str, ...],
    jobs: int | None = None,
    say: Say,
    progress: Progress,
) -> None:
    """Run what has no published record yet, and publish each run as it ends.

    `only` names the runs to look at; empty stands for all. `jobs` is the number of processes. A
    run that was killed is continued by the same call: its results are in the folder of its name
    below `results`.
    """
    names = [planned.name for planned in plan.runs]
    for name in only:
        if name not in names:
            raise unknown("run of the plan", name, names)
    # Loaded here, after what can be refused at once.
    from faithbench.run.request import make_job

    for planned in plan.runs:
        if not only or planned.name in only:
            folder = results / planned.name
            job = make_job(_request(planned, data, folder), progress)
            missing = _missing(job, folder, records)
            say(f"{planned.name}: {len(missing)} of {len(job.explainers)} explainers to run")
            if missing:
                # Imports torch: only now, when there is a line that says what is being loaded.
                from faithbench.run.backends import choose_backend
                from faithbench.run.loop import run

                run(replace(job, explainers=missing), progress, choose_backend(jobs))
                publish_results(folder, records, planned.attributions)


def _missing(job: Job, folder: Path, records: Path) -> tuple[Selected, ...]:
    """Return the explainers of a job that have no record in the folder of published ones.

    A record is published under the path that it has below `folder`, the results of the job.
    """
    from faithbench.run.job import Cell

    cells = [Cell(job, selected) for selected in job.explainers]
    return tuple(
        cell.selected
        for cell in cells
        if not (records / cell.folder.relative_to(folder) / f"{cell.stem}.json").is_file()
    )


def _request(planned: PlannedRun, data: Path | None, results: Path) -> Request:
    from faithbench.run.request import Request

    return Request(
        explainer=",".join(planned.explainers),
        task=planned.task,
        data=data,
        limit=planned.limit,
        metrics=planned.metrics,
        operator=planned.operator,
        seeds=planned.seeds,
        results=results,
    )
