"""Compare the orders of explainers when tokens are masked, deleted or replaced by padding.

    python benchmarks/operators.py [--records leaderboard/records] [--no-write]
    python benchmarks/operators.py --measure sst2 --limit 40 --explainers attn-lrp,occlusion,random
        [--data <data folder>] [--results results/operators] [--no-write]

The first form reads published tables that show the same examples under several operators. The
second explains a few examples and scores them under all three operators; it continues where it
was stopped. Orders are by mean AOPC, and by place where the board has one: a table of few
examples ranks nobody who is not significantly better than random scores. Controls are left out.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from tabulate import tabulate

from faithbench.cli.options import PASSED
from faithbench.leaderboard.board import Board, OperatorPair, Table
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.operators import BEST
from faithbench.leaderboard.rankings import same_but_operator
from faithbench.metrics.rank_correlation import kendall
from faithbench.records.passed import accepted_submissions
from faithbench.stats.ranks import average_ranks

if TYPE_CHECKING:
    from faithbench.data.dataset import Dataset
    from faithbench.data.tasks import Task
    from faithbench.models.model import Model

OPERATORS = ("mask", "delete", "pad")
METRICS = "aopc,sufficiency,delta_log_odds_neg"
EXPLAINERS = (
    "attn-lrp,deep-shap,gae,lrp-rollout,attention-x-gradient,attention,gradient,"
    "occlusion,leave-one-out,kernel-shap:samples=64,random"
)
Means = Mapping[str, float]


def erased_alike(tables: Sequence[Table]) -> list[dict[str, Table]]:
    """Return the sets of tables that differ in the operator alone, by operator, mask first."""
    alike: dict[tuple[object, ...], dict[str, Table]] = {}
    for table in sorted(tables, key=lambda table: OPERATORS.index(table.operator)):
        alike.setdefault(same_but_operator(table), {})[table.operator] = table
    return [by_operator for by_operator in alike.values() if len(by_operator) > 1]


def aopc_means(table: Table) -> dict[str, float]:
    """Return the mean AOPC of each explainer that looks at the model."""
    (column,) = (column for column in table.columns if column.metric == "aopc")
    methods = {row.label for row in table.entrants if row.standing != "control"}
    cells = {label: column.cells[label].mean for label in methods & set(column.cells)}
    return {label: mean for label, mean in cells.items() if mean is not None}


def tau(first: Means, second: Means, best: int | None = None) -> float | None:
    """Return Kendall's tau-b of two orders; with `best`, of that many of the first's leaders."""
    shared = sorted(set(first) & set(second), key=lambda label: (-first[label], label))[:best]
    return kendall(np.array([first[x] for x in shared]), np.array([second[x] for x in shared]))


def agreement_table(board: Board) -> str:
    """Return a table with a line for every two operators on the same examples."""
    lines = []
    for by_operator in erased_alike(board.tables):
        for first, second in combinations(by_operator.values(), 2):
            means, others = aopc_means(first), aopc_means(second)
            pair = _pair_of(board, first, second)
            lines.append(
                (
                    f"{first.task}, {first.n}",
                    f"{first.operator}, {second.operator}",
                    len(set(means) & set(others)),
                    _shown(tau(means, others)),
                    _shown(tau(means, others, BEST)),
                    _shown(pair.kendall),
                    _shown(pair.kendall_best),
                    f"{_best(means)}, {_best(others)}",
                )
            )
    headers = ("examples", "operators", "explainers", "AOPC: all", f"AOPC: {BEST} best")
    places = ("places: all", f"places: {BEST} best", "best AOPC")
    return _table(lines, (*headers, *places))


def shared_ranks(by_operator: Mapping[str, Table]) -> dict[str, dict[str, float]]:
    """Return, by operator, the ranks by AOPC of the explainers that all operators have."""
    means = {operator: aopc_means(table) for operator, table in by_operator.items()}
    shared = sorted(set.intersection(*map(set, means.values())))
    return {
        operator: dict(zip(shared, average_ranks([own[x] for x in shared], True), strict=True))
        for operator, own in means.items()
    }


def ranks_table(by_operator: Mapping[str, Table]) -> str:
    """Return the ranks and means of AOPC under each operator, in the order of the first."""
    ranks = shared_ranks(by_operator)
    means = {operator: aopc_means(table) for operator, table in by_operator.items()}
    first = next(iter(ranks.values()))
    lines = [
        (label, *(f"{ranks[each][label]:g} ({means[each][label]:.3f})" for each in ranks))
        for label in sorted(first, key=lambda label: (first[label], label))
    ]
    return _table(lines, ("rank by AOPC (mean)", *ranks))


def moves(by_operator: Mapping[str, Table], most: int = 3) -> str:
    """Return in a sentence who falls and rises furthest from the first operator to the second."""
    (one, before), (other, after) = list(shared_ranks(by_operator).items())[:2]
    falls = sorted((before[label] - after[label], label) for label in before)
    fallen = [f"`{label}` {-fall:g}" for fall, label in falls[:most] if fall < 0]
    risen = [f"`{label}` {rise:g}" for rise, label in falls[::-1][:most] if rise > 0]
    if not fallen:
        return f"{one} and {other} give the same order by AOPC."
    return (
        f"From {one} to {other}, ranks fall by {', '.join(fallen)}, and rise by {', '.join(risen)}."
    )


def body_of(board: Board) -> str:
    """Return what the tables of a board say about operators."""
    sets = erased_alike(board.tables)
    if not sets:
        return "No two tables show the same examples under two operators."
    said = (
        "Kendall's tau-b between the orders of the same explainers on the same examples, by mean "
        f"AOPC and by place in the table; the {BEST} best are those of the first operator. 1: the "
        "order does not depend on the operator; 0: it says nothing about the other's."
    )
    parts = [f"{moves(tables)}\n\n{ranks_table(tables)}" for tables in sets]
    return "\n\n".join([said, agreement_table(board), *parts])


def measure(
    task: str | Task,
    explainers: str,
    limit: int,
    results: Path,
    data: Path | Dataset | None = None,
    model: Model | None = None,
) -> Board:
    """Score explainers under all operators in a results folder, and return the board of it.

    A run that was stopped continues; one whose records are all there is not made again.
    """
    from faithbench.run.loop import run
    from faithbench.run.request import Request, make_job

    for operator in OPERATORS:
        job = make_job(
            Request(
                explainer=explainers, task=task, model=model, data=data, limit=limit,
                metrics=METRICS, operator=operator, seeds=1, human=False, results=results,
            )
        )  # fmt: skip
        if not all((cell.folder / f"{cell.stem}.json").is_file() for cell in job.cells):
            run(job, _report)
    return make_board(results, ())


def main() -> None:
    """Compare published tables, or measure some examples and compare those."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--records", type=Path, default=Path("leaderboard/records"))
    parser.add_argument("--submissions", type=Path, default=Path("submissions"))
    parser.add_argument("--measure", metavar="TASK")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--explainers", default=EXPLAINERS)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--results", type=Path, default=Path("results/operators"))
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    if options.measure is None:
        title, command = "Operators, published", "python benchmarks/operators.py"
        body = body_of(
            make_board(options.records, accepted_submissions(options.submissions, PASSED).accepted)
        )
    else:
        title = "Operators, measured"
        command = (
            f"python benchmarks/operators.py --measure {options.measure} --limit {options.limit}"
            + (" --data <data folder>" if options.data else "")
            + (f" --explainers {options.explainers}" if options.explainers != EXPLAINERS else "")
        )
        body = body_of(
            measure(
                options.measure, options.explainers, options.limit, options.results, options.data
            )
        )
    if options.no_write:
        print(body)
    else:
        from tables import write_section

        write_section(title, command, body, timed=False)


def _report(what: str, done: int, total: int) -> None:
    print(f"{what}: {done} of {total}", file=sys.stderr)


def _pair_of(board: Board, first: Table, second: Table) -> OperatorPair:
    ids = {first.id, second.id}
    return next(pair for pair in board.operators if {pair.first, pair.second} == ids)


def _best(means: Means) -> str:
    return max(sorted(means), key=lambda label: means[label])


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _table(lines: Sequence[Sequence[object]], headers: Sequence[str]) -> str:
    return tabulate(lines, headers, tablefmt="github", disable_numparse=True)


if __name__ == "__main__":
    main()
