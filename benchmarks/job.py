"""CPU seconds of a whole job by phase, here and in another checkout: ratios from one run.

Run: python benchmarks/job.py --data <data folder> --against <checkout> [--rounds N]

Every measurement is a process of its own with one thread. Checkouts take turns, and the smallest
of the rounds counts: what others do on the machine can only add to CPU seconds.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
EXPLAINERS = "lrp-mask,occlusion,deep-shap,attention,gae,input-x-gradient"


@dataclass(frozen=True)
class Work:
    """A job: a task, and the number of its examples."""

    name: str
    task: str
    limit: int


JOBS = (Work("SST", "sst2", 64), Work("IMDb", "imdb", 4))

PHASES: Mapping[str, tuple[str, ...]] = {
    "explaining": ("faithbench.run.chunk:_explain",),
    "erasure rows": ("faithbench.run.chunk:score", "faithbench.run.chunk:_bounds"),
    "max_sensitivity": ("faithbench.run.chunk:sensitivity",),
    "speed measured alone": ("faithbench.run.finish:_timing",),
}
"""The functions whose calls make up a phase; none of them calls one of another phase."""
FIRST_WORK = "faithbench.run.loop:run"
"""What comes before its first call is start-up: imports, data and weights."""
NAMES = ("start-up", *PHASES, "rest")


def main() -> None:
    """Measure both jobs in every checkout, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--against", type=Path, help="a checkout of the commit before")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--sst", type=int, default=JOBS[0].limit, help="sentences; 0 for none")
    parser.add_argument("--imdb", type=int, default=JOBS[1].limit, help="reviews; 0 for none")
    parser.add_argument("--explainers", default=EXPLAINERS)
    parser.add_argument("--only-print", action="store_true", help="leave RESULTS.md as it is")
    parser.add_argument("--inside", metavar="TASK,LIMIT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        task, limit = options.inside.split(",")
        print(json.dumps(measure(task, int(limit), options.explainers, options.data)))
        return
    checkouts = [ROOT] if options.against is None else [options.against.resolve(), ROOT]
    limits = (options.sst, options.imdb)
    jobs = [Work(job.name, job.task, n) for job, n in zip(JOBS, limits, strict=True) if n]
    parts = []
    for job in jobs:
        taken: list[list[dict[str, float]]] = [[] for _ in checkouts]
        for _ in range(options.rounds):
            for seconds, checkout in zip(taken, checkouts, strict=True):
                seconds.append(_measured(checkout, job, options.explainers, options.data))
        best = [{name: min(one[name] for one in rounds) for name in NAMES} for rounds in taken]
        parts.append(f"{job.name}, {job.limit} texts:\n\n{table(best)}")
        print(parts[-1], flush=True)
    if options.only_print:
        return
    from tables import write_section

    body = (
        f"CPU seconds, one thread, all metrics, `{options.explainers}`. Each phase is the least of "
        f"{options.rounds} rounds in which the checkouts take turns.\n\n" + "\n\n".join(parts)
    )
    command = (
        "python benchmarks/job.py --data <data folder> --against <checkout> "
        f"--rounds {options.rounds} --sst {options.sst} --imdb {options.imdb}"
    )
    write_section("Job", command, body)


def _measured(checkout: Path, job: Work, explainers: str, data: Path) -> dict[str, float]:
    """Run a job on the package of a checkout, in a process of its own."""
    command = [sys.executable, __file__, "--inside", f"{job.task},{job.limit}"]
    command += ["--explainers", explainers, "--data", str(data.resolve())]
    paths = [str(checkout), os.environ.get("PYTHONPATH", "")]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "OMP_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    # In the checkout: its task files and head statistics are found from there.
    done = subprocess.run(
        command, env=environment, cwd=checkout, stdout=subprocess.PIPE, text=True, check=True
    )
    seconds: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    return seconds


def measure(task: str, limit: int, explainers: str, data: Path) -> dict[str, float]:
    """Run a job here, and return the CPU seconds of its phases."""
    seconds = dict.fromkeys(NAMES, 0.0)
    with tempfile.TemporaryDirectory() as results, timed_phases(seconds):
        evaluate = importlib.import_module("faithbench.api").evaluate
        evaluate(
            task,
            explainers,
            data=data,
            source="folder",
            limit=limit,
            human=False,
            device="cpu",
            jobs=1,  # what workers do is not in this process's seconds
            results=Path(results),
        )
    seconds["rest"] = time.process_time() - sum(seconds.values())
    return seconds


@contextmanager
def timed_phases(seconds: dict[str, float]) -> Iterator[None]:
    """Add the CPU seconds of each phase to its entry, while inside."""

    def count(phase: str, work: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*values: Any, **options: Any) -> Any:
            start = time.process_time()
            try:
                return work(*values, **options)
            finally:
                seconds[phase] += time.process_time() - start

        return counted

    def begin(work: Callable[..., Any]) -> Callable[..., Any]:
        def begun(*values: Any, **options: Any) -> Any:
            seconds["start-up"] = seconds["start-up"] or time.process_time()
            return work(*values, **options)

        return begun

    wraps: list[tuple[str, Callable[..., Any]]] = [(FIRST_WORK, begin)]
    wraps += [(place, partial(count, phase)) for phase in PHASES for place in PHASES[phase]]
    before = []
    for place, wrap in wraps:
        module_name, name = place.split(":")
        module = importlib.import_module(module_name)
        before.append((module, name, getattr(module, name)))
        setattr(module, name, wrap(getattr(module, name)))
    try:
        yield
    finally:
        for module, name, work in before:
            setattr(module, name, work)


def table(best: Sequence[Mapping[str, float]]) -> str:
    """Return a line per phase: seconds before and now, and how many times as fast it is."""
    from tabulate import tabulate

    columns = [{**seconds, "whole job": sum(seconds.values())} for seconds in best]
    lines = []
    for name in columns[0]:
        values = [column[name] for column in columns]
        ratio = [f"{values[0] / values[-1]:.2f}"] if len(values) > 1 else []
        lines.append([name, *(f"{value:.1f}" for value in values), *ratio])
    headers = ["phase", "before", "now", "times as fast"] if len(best) > 1 else ["phase", "now"]
    return str(tabulate(lines, headers=headers, tablefmt="github", disable_numparse=True))


if __name__ == "__main__":
    main()
