"""What the leaderboard is made of: explainers on tasks, and running what is missing of them."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import reason
from faithbench.core.schema import Count, Facts, describe_error
from faithbench.core.types import Progress
from faithbench.leaderboard.publish import publish
from faithbench.run.request import Request, make_job

Positive = Annotated[int, Field(ge=1)]
Say = Callable[[str], None]


class PlannedRun(Facts):
    """Explainers that run on a task together.

    `name` tells it from other runs of the plan; `metrics` are those of `faithbench run`. Of
    `attributions` examples, at most, a published record keeps tokens and scores.
    """

    name: str
    task: str
    limit: Positive
    explainers: tuple[str, ...]
    metrics: str = "all"
    seeds: Positive = 3
    attributions: Count = 40


class Plan(Facts):
    """All runs of a leaderboard, in the order in which they are wanted."""

    runs: tuple[PlannedRun, ...]


def read_plan(path: Path) -> Plan:
    """Read a plan; a wrong key or value is said with its place."""
    try:
        plan = Plan.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise FaithbenchError(f"cannot read plan {path}: {reason(error)}; check --plan") from error
    except ValidationError as error:
        raise FaithbenchError(f"plan {path}: {describe_error(error)}; mend it there") from error
    names = [run.name for run in plan.runs]
    twice = [name for place, name in enumerate(names) if name in names[:place]]
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
    say: Say,
    progress: Progress,
) -> None:
    """Run what has no published record yet, and publish each run as it ends.

    `only` names the runs to look at; none stands for all. A killed run continues with the same
    call, in the folder of its name below `results`.
    """
    for name in only:
        if name not in {run.name for run in plan.runs}:
            raise unknown("run of the plan", name, [run.name for run in plan.runs])
    for planned in plan.runs:
        if not only or planned.name in only:
            folder = results / planned.name
            job = make_job(_request(planned, data, folder))
            from faithbench.run.job import Cell
            from faithbench.run.loop import run

            cells = [Cell(job, chosen) for chosen in job.explainers]
            missing = tuple(
                cell.selected
                for cell in cells
                if not (records / cell.folder.relative_to(folder) / f"{cell.stem}.json").is_file()
            )
            say(f"{planned.name}: {len(missing)} of {len(cells)} explainers to run")
            if missing:
                run(replace(job, explainers=missing), progress)
                publish(folder, records, planned.attributions)


def _request(planned: PlannedRun, data: Path | None, results: Path) -> Request:
    return Request(
        explainer=",".join(planned.explainers),
        task=planned.task,
        data=data,
        limit=planned.limit,
        metrics=planned.metrics,
        seeds=planned.seeds,
        results=results,
    )
