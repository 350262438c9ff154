"""What two cores give a run, and what a board of 1,000 explainers would take, on paper.

Run: python benchmarks/scale.py --data <data folder>      measures, in less than 8 minutes
     python benchmarks/scale.py --plan                    computes the plan of docs/scale.md

Leave the machine alone while it measures: it takes wall clock, and every configuration once. The
plan follows from the published records, so that it changes only with them.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "scale.md"
RECORDS = ROOT / "leaderboard" / "records"
EXPLAINERS = "lrp-mask,deep-shap,attention,gae"
MODES = {"1": "one thread", "threads": "two torch threads", "2": "two processes"}


def main() -> None:
    """Measure, or compute the plan."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sst", type=int, default=200, help="sentences; 0 for none")
    parser.add_argument("--imdb", type=int, default=6, help="reviews; 0 for none")
    parser.add_argument("--plan", action="store_true", help="compute the plan, measure nothing")
    parser.add_argument("--busy", action="store_true", help="say that others use the machine too")
    parser.add_argument("--only-print", action="store_true", help="leave all files as they are")
    parser.add_argument("--inside", metavar="MODE,TASK,LIMIT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plan:
        write_plan(plan_table(list(read_cells())), keep=options.only_print)
    elif options.data is None:
        parser.error("give --data <data folder>, or --plan")
    elif options.inside:
        atexit.register(gc.freeze)  # as the command does
        mode, task, limit = options.inside.split(",")
        print(json.dumps(measure(mode, task, int(limit), options.data)))
    else:
        jobs = (("SST", "sst2", options.sst), ("IMDb", "imdb", options.imdb))
        lines = [
            line
            for name, task, limit in jobs
            if limit
            for line in compare(f"{limit} {name}", task, limit, options.data)
        ]
        write_measured(lines, busy=options.busy, keep=options.only_print)


# What two cores give


def compare(name: str, task: str, limit: int, data: Path) -> Iterator[list[str]]:
    """Run a job in every mode, and yield a table line for each."""
    first = None
    for mode, title in MODES.items():
        start = time.perf_counter()
        told = _measured(mode, task, limit, data)
        seconds = time.perf_counter() - start - told["forecast"]
        first = first or seconds
        yield [
            name,
            title,
            f"{seconds:.1f}",
            f"{first / seconds:.2f}",
            f"{told['cpu']:.1f}",
            f"{told['start-up']:.1f}",
            f"{told['estimate'] / told['run']:.2f}" if told["estimate"] else "-",
        ]


def _measured(mode: str, task: str, limit: int, data: Path) -> dict[str, float]:
    """Run a job in a process of its own."""
    command = [sys.executable, __file__, "--inside", f"{mode},{task},{limit}"]
    done = subprocess.run(
        [*command, "--data", str(data.resolve())],
        env={
            **{name: value for name, value in os.environ.items() if name != "OMP_NUM_THREADS"},
            "PYTHONPATH": str(ROOT),
            "TOKENIZERS_PARALLELISM": "false",
        },
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    told: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return told


def measure(mode: str, task: str, limit: int, data: Path) -> dict[str, float]:
    """Forecast a job, run it, and return seconds; CPU seconds are those of workers too."""
    from faithbench.core.types import quiet
    from faithbench.run.backends import choose_backend
    from faithbench.run.backends.serial import Serial
    from faithbench.run.forecast import forecast
    from faithbench.run.loop import run
    from faithbench.run.request import Request, make_job

    backend = Serial(threads=2) if mode == "threads" else choose_backend(int(mode))
    with tempfile.TemporaryDirectory() as results:
        request = Request(
            explainer=EXPLAINERS,
            task=task,
            data=data,
            source="folder",
            limit=limit,
            metrics="faithfulness",
            human=False,
            device="cpu",
            results=Path(results),
        )
        job = make_job(request, quiet)
        started = sum(os.times()[:4])
        times = [time.perf_counter()]
        # Two threads are no backend that a user can ask for, so that nothing is foretold.
        told = None if mode == "threads" else forecast(job, backend, quiet)
        times.append(time.perf_counter())
        before = sum(os.times()[:4])
        run(job, quiet, backend)
        times.append(time.perf_counter())
        after = sum(os.times()[:4])
    return {
        "forecast": times[1] - times[0],
        "run": times[2] - times[1],
        "estimate": told.seconds if told else 0.0,
        "start-up": started,
        "cpu": started + after - before,
    }


def write_measured(lines: Sequence[Sequence[str]], *, busy: bool, keep: bool) -> None:
    """Write the section of what was measured."""
    from tables import write_section
    from tabulate import tabulate

    headers = ["texts", "with", "seconds", "times as fast", "CPU seconds", "of it start-up"]
    table = tabulate(
        lines, headers=[*headers, "estimate / truth"], tablefmt="github", disable_numparse=True
    )
    note = " The machine was busy: only CPU seconds say something." if busy else ""
    body = (
        f"`{EXPLAINERS}`, all faithfulness metrics; wall clock of the whole command, start-up "
        "included. Estimate: what `--dry-run` tells, over what the run then took without start-up."
        f"{note}\n\n{table}"
    )
    if keep:
        print(body)
        return
    write_section("Two cores", "python benchmarks/scale.py --data <data folder>", body)


# The plan

WEIGHTS = {"MiniLM (6 blocks of 384)": 6 * 12 * 384**2, "BERT-base": 12 * 12 * 768**2}
"""Weights that a token is multiplied with: 12 times the width's square in each block."""
GPU_FLOPS, GPU_SHARE = 19.5e12, 0.3
"""Float32 peak of an A100 (its data sheet; TF32 is off), and the share of it that rows may get."""
CPU_FLOPS = 120e9
"""What rows get of one core of the machine in RESULTS.md: 72% of 167 GFLOP/s ("Erasure")."""
PROBED, PERTURBED = 16, 10
"""Examples of max_sensitivity, and how many more explanations each takes."""


@dataclass(frozen=True)
class Board:
    """A size of board."""

    explainers: int
    tasks: int
    models: int
    examples: int = 200

    @property
    def cells(self) -> int:
        """The number of records."""
        return self.explainers * self.tasks * self.models


NOW = "the published records"
PLANNED = Board(1000, 100, 20)


@dataclass(frozen=True)
class Cell:
    """What a record measured, per example; bytes are those of its two files."""

    task: str
    examples: int
    rows: float
    passes: float
    probing: float
    tokens: float
    record_bytes: int
    row_bytes: int


def read_cells() -> Iterator[Cell]:
    """Read what the published records of bundled models on real data took."""
    from faithbench.records.record import read
    from faithbench.records.rows_file import read_rows

    for path in sorted(RECORDS.glob("*-folder/bundled-*/*.json")):
        record = read(path)
        rows_path = path.with_name(record.rows.file)
        n = record.task.n
        passes = record.cost.forward_equivalents_per_example
        probed = "max_sensitivity" in record.metrics
        lengths = [len(row.scores) for row in read_rows(rows_path) if len(row.scores)]
        yield Cell(
            task=record.task.name,
            examples=n,
            rows=record.cost.distinct_rows / n,
            passes=passes * len(record.seeds),
            probing=passes * PERTURBED * min(PROBED, n // 4) / n if probed else 0.0,
            tokens=mean(lengths) if lengths else 0.0,
            record_bytes=path.stat().st_size,
            row_bytes=rows_path.stat().st_size,
        )


def plan_table(cells: Sequence[Cell]) -> str:
    """Return the table of the plan: what a cell takes on average, and all of them."""
    from tabulate import tabulate

    by_task: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_task[cell.task].append(cell)
    tokens = {task: max(cell.tokens for cell in them) for task, them in by_task.items()}

    def of_a_task(task: str, value: Any) -> float:
        return mean(float(value(cell)) for cell in by_task[task])

    def average(value: Any) -> float:
        """Average over explainers, then over tasks."""
        return mean(of_a_task(task, value) for task in by_task)

    n = PLANNED.examples
    erased = average(lambda cell: cell.rows) * n
    explaining = average(lambda cell: cell.passes + cell.probing) * n
    token_rows = n * mean(
        tokens[task] * of_a_task(task, lambda cell: cell.rows + cell.passes + cell.probing)
        for task in by_task
    )
    size = average(lambda cell: cell.record_bytes + cell.row_bytes * n / cell.examples)
    records = sum(1 for _ in RECORDS.rglob("*.json"))
    html = (ROOT / "leaderboard" / "index.html").stat().st_size / records
    tables = PLANNED.tasks * PLANNED.models
    lines: list[tuple[str, str, str]] = [
        ("cells (records)", "1", f"{PLANNED.cells:,}"),
        ("erased rows", f"{erased:,.0f}", _short(erased * PLANNED.cells)),
        ("forward equivalents of explaining", f"{explaining:,.0f}",
         _short(explaining * PLANNED.cells)),
        ("tokens through the network", _short(token_rows), _short(token_rows * PLANNED.cells)),
    ]  # fmt: skip
    for name, weights in WEIGHTS.items():
        flops = 2 * weights * token_rows
        gpu = flops / (GPU_FLOPS * GPU_SHARE) / 3600
        core = flops / CPU_FLOPS / 3600
        lines.append((f"GPU hours, {name}", f"{gpu * 3600:.1f} s", f"{gpu * PLANNED.cells:,.0f}"))
        lines.append(
            (f"core hours, {name}", f"{core * 60:.1f} min", f"{core * PLANNED.cells:,.0f}")
        )
    lines += [
        ("storage (record and rows, compressed)", _bytes(size), _bytes(size * PLANNED.cells)),
        ("one self-contained page", _bytes(html), _bytes(html * PLANNED.cells)),
        ("a table's share of it, loaded on demand", "-",
         f"{_bytes(html * PLANNED.cells / tables)} each, {tables:,} tables"),
        ("paired tests of a metric", "-",
         _short(tables * PLANNED.explainers * (PLANNED.explainers - 1) / 2)),
    ]  # fmt: skip
    title = f"{PLANNED.explainers:,} x {PLANNED.tasks:,} x {PLANNED.models:,}"
    told = tabulate(
        lines,
        headers=[f"of {n} examples", "a cell", title],
        tablefmt="github",
        disable_numparse=True,
    )
    facts = (
        f"From {len(cells)} records of bundled models on {len(by_task)} tasks: averages over the "
        f"explainers of a task, then over tasks. Texts have {mean(tokens.values()):.0f} tokens on "
        f"average ({min(tokens.values()):.0f} to {max(tokens.values()):.0f})."
    )
    return f"{facts}\n\n{told}"


def write_plan(body: str, *, keep: bool) -> None:
    """Put the plan between the marks of its page."""
    print(body)
    if keep:
        return
    page = PAGE.read_text()
    marked = re.compile(r"(<!-- plan -->\n).*?(<!-- end of plan -->)", re.DOTALL)
    PAGE.write_text(marked.sub(lambda match: f"{match[1]}\n{body}\n\n{match[2]}", page))


SCALES: Mapping[str, float] = {"million": 1e6, "billion": 1e9, "trillion": 1e12, "10^15": 1e15}


def _short(number: float) -> str:
    """Return a number in words of three digits."""
    name, scale = "", 1.0
    for name_of, size in SCALES.items():
        if number >= size:
            name, scale = f" {name_of}", size
    return f"{number / scale:,.3g}{name}" if name else f"{number:,.0f}"


def _bytes(number: float) -> str:
    """Return a number of bytes."""
    for name in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.3g} {name}"
        number /= 1000
    return f"{number:,.3g} TB"


if __name__ == "__main__":
    main()
