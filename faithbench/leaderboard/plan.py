"""The plan of a leaderboard: which explainers on which tasks, and running what is missing."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, ValidationError, model_validator

from faithbench.core.erasure import Operator
from faithbench.core.errors import CannotServeError, FaithbenchError, RefusedError, unknown
from faithbench.core.files import check_writable, parse_json, read_toml, reason, replace_file
from faithbench.core.schema import Count, Facts, describe_error
from faithbench.core.types import Progress
from faithbench.leaderboard.publish import publish_results
from faithbench.records.store import record_files

# Only for types: reading a plan, or importing this room, should not wait for torch.
if TYPE_CHECKING:
    from faithbench.explainers.selection import Selected
    from faithbench.run.backends import Backend
    from faithbench.run.job import Job
    from faithbench.run.request import Request

Positive = Annotated[int, Field(ge=1)]
Say = Callable[[str], None]


class PlannedRun(Facts):
    """Explainers that run on a task together.

    `name` is unique in the plan; `metrics` are given as to `faithbench run`. A published record
    keeps tokens and scores of at most `attributions` examples. `model` is the folder of a model
    that is not the task's own, and `made_by` the command that makes it.
    """

    name: str
    task: str
    limit: Positive
    explainers: tuple[str, ...]
    metrics: str = "all"
    operator: Operator = "mask"
    seeds: Positive = 3
    attributions: Count = 40
    model: str = ""
    made_by: str = ""

    @model_validator(mode="after")
    def _says_how_the_model_is_made(self) -> PlannedRun:
        if self.model and not self.made_by:
            raise ValueError(f"model {self.model!r} needs made_by, the command that makes it")
        return self

    @property
    def model_is_missing(self) -> bool:
        """Whether the run waits for a command that makes its model."""
        return bool(self.model) and not Path(self.model).is_dir()


class Plan(Facts):
    """All runs of a leaderboard, in the order in which they are to run."""

    runs: tuple[PlannedRun, ...]


def read_plan(path: Path) -> Plan:
    """Read a plan; an error names the wrong key or value."""
    try:
        plan = Plan.model_validate(read_toml(path))
    except ValidationError as error:
        raise FaithbenchError(f"plan {path}: {describe_error(error)}; fix it there") from error
    except (OSError, ValueError) as error:
        raise FaithbenchError(f"cannot read plan {path}: {reason(error)}; check --plan") from error
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
    backend: str = "processes",
    dry_run: bool = False,
    say: Say,
    progress: Progress,
) -> None:
    """Run what has no published record yet, and publish each run as it ends.

    `only` names the runs to look at; empty stands for all. `jobs` is the number of processes and
    `backend` where they are. A run that was killed is continued by the same call: its results are
    in the folder of its name below `results`. A `dry_run` computes nothing but short trials, and
    says what each run and all of them would take.
    """
    names = [planned.name for planned in plan.runs]
    if strange := [name for name in only if name not in names]:
        raise unknown("run of the plan", strange[0], names)
    # Loaded here, after what can be refused at once.
    from faithbench.run.request import make_job

    total = 0.0
    for planned in plan.runs:
        if not only or planned.name in only:
            if planned.model_is_missing:
                say(f"{planned.name}: left out, there is no {planned.model}; {planned.made_by}")
                continue
            folder = results / planned.name
            company = () if dry_run else _continued(planned, folder, records)
            job = make_job(_request(planned, data, folder), progress)
            missing = _missing(job, folder, records)
            say(f"{planned.name}: {len(missing)} of {len(job.explainers)} explainers to run")
            if missing:
                # Imports torch: only now, when there is a line that says what is being loaded.
                from faithbench.run.backends import choose_backend
                from faithbench.run.loop import run_serving

                wanted = replace(job, explainers=missing, company=_company(missing, company))
                chosen = choose_backend(jobs, str(job.model.device), backend)
                if dry_run:
                    total += _forecast(wanted, chosen, planned.name, say, progress)
                    continue
                _begin(folder, wanted.company)
                try:
                    left_out = run_serving(wanted, progress, chosen).left_out
                except RefusedError as refused:
                    if len(missing) == len(job.explainers):
                        raise
                    left_out = refused.reasons  # the others are published already
                else:
                    publish_results(folder, records, planned.attributions)
                for label, why in left_out.items():
                    say(f"{planned.name}: left out {label} ({why})")
            if not dry_run:
                _note(folder).unlink(missing_ok=True)
    if dry_run:
        from faithbench.run.estimate import in_words

        say(f"all runs: {in_words(total)}")


def _continued(planned: PlannedRun, folder: Path, records: Path) -> tuple[str, ...]:
    """Publish what a killed run had finished, and return the labels of all its explainers."""
    try:
        labels = parse_json(_note(folder).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    if finished := record_files(folder):
        publish_results(folder, records, planned.attributions)
    for path, _ in finished:
        # Killed between the record and its end: nobody continues these rows.
        for left in (path.parent / ".partial").glob(f"{escape(path.stem)}-*"):
            left.unlink(missing_ok=True)
    return tuple(map(str, labels)) if isinstance(labels, list) else ()


def _company(missing: Sequence[Selected], begun: tuple[str, ...]) -> tuple[str, ...]:
    """Return the labels of the explainers that rows are known by.

    Explainers share passes, which decide last bits: what is left of a killed run, of which others
    are finished, is known by all of them.
    """
    labels = tuple(selected.label for selected in missing)
    return begun if set(begun) >= set(labels) else labels


def _begin(folder: Path, company: tuple[str, ...]) -> None:
    check_writable(folder)
    replace_file(_note(folder), json.dumps(company).encode())


def _note(folder: Path) -> Path:
    return folder / ".explainers.json"


def _forecast(job: Job, backend: Backend, name: str, say: Say, progress: Progress) -> float:
    """Say what a run would take, and return its seconds; those of a refused run are 0."""
    from faithbench.run.forecast import forecast

    try:
        told = forecast(job, backend, progress)
    except RefusedError as refused:
        say(f"{name}: {refused}")
        return 0.0
    say(f"{name}: {told}")
    return told.seconds


def _missing(job: Job, folder: Path, records: Path) -> tuple[Selected, ...]:
    """Return the explainers of a job that have no record in the folder of published ones.

    A record is published under the path that it has below `folder`, the results of the job.
    """
    from faithbench.run.job import Cell

    cells = [Cell(job, selected) for selected in job.explainers]

    def is_published(cell: Cell) -> bool:
        try:
            name = f"{cell.stem}.json"
        except CannotServeError:  # a file that its name depends on is missing: the run will say so
            return False
        return (records / cell.folder.relative_to(folder) / name).is_file()

    return tuple(cell.selected for cell in cells if not is_published(cell))


def _request(planned: PlannedRun, data: Path | None, results: Path) -> Request:
    from faithbench.run.request import Request

    return Request(
        explainer=",".join(planned.explainers),
        task=planned.task,
        model=planned.model or None,
        data=data,
        limit=planned.limit,
        metrics=planned.metrics,
        operator=planned.operator,
        seeds=planned.seeds,
        results=results,
    )
