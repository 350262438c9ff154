"""Lines that compare explainers: the right word for the direction, and the right numbers."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from faithbench.cli.run import comparison_lines, show_examples
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.records.schema import TimingFacts
from faithbench.run.finish import Outcome, make_record
from faithbench.run.job import Cell, Job
from tests.support.builders import ROWS, make_task, put, row

Build = Callable[[str, Sequence[float | None], Sequence[float | None]], Outcome]
ODD_ROWS = [*ROWS, {"id": "[/b]:smile:", "text": "a [b]bad[/b] film", "label": 0}]


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    put(tmp_path, ODD_ROWS)
    return load_dataset(make_task(), folder=tmp_path)


@pytest.fixture
def outcome(data: Dataset, tiny_model: Any, tmp_path: Path) -> Build:
    def build(label: str, aopc: Sequence[float | None], lodds: Sequence[float | None]) -> Outcome:
        rows = tuple(
            row(f"e{i}", values={"aopc": a, "lodds": b})
            for i, (a, b) in enumerate(zip(aopc, lodds, strict=True))
        )
        (chosen,) = find_explainers(label)
        metrics = find_metrics("aopc,lodds")
        job = Job(data, tiny_model(), (chosen,), metrics, tmp_path, seeds=1)
        record = make_record(
            cell=Cell(job, chosen),
            rows=rows,
            timing=TimingFacts(seconds_total=0),
            rows_file=("x.rows.jsonl", "ab"),
            truncated=0,
            threads=1,
        )
        return Outcome(chosen, record, Path("x.json"), rows)

    return build


def said(*outcomes: Outcome) -> list[str]:
    """The lines after the first, unwrapped."""
    _, *lines = comparison_lines(outcomes)
    assert max(len(part) for line in lines for part in line.splitlines()) <= 78
    return [" ".join(line.split()) for line in lines]


# Seven examples: p is 2 / 128, and Holm over two tests doubles it to 0.031.
UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
ZERO = [0.0] * 7


def test_better_and_worse_follow_the_direction(outcome: Build) -> None:
    """The first has more AOPC (good) and more LOdds (bad), on all examples."""
    one, other = outcome("attention", UP, UP), outcome("random", ZERO, ZERO)
    (head, *_) = comparison_lines([one, other])
    assert head.strip() == (
        "attention against the others (Wilcoxon signed-rank; p after Holm over 2 tests):"
    )
    assert said(one, other) == [
        "random",
        "better: aopc (p = 0.031, effect +1.00)",
        "worse: lodds (p = 0.031, effect -1.00)",
    ]
    assert said(other, one) == [
        "attention",
        "better: lodds (p = 0.031, effect +1.00)",
        "worse: aopc (p = 0.031, effect -1.00)",
    ]


def test_what_is_not_significant_is_no_difference(outcome: Build) -> None:
    swing = [0.1, 0.1, 0.1, -0.1, -0.1, -0.1, 0.0]
    lines = said(outcome("attention", swing, swing), outcome("random", ZERO, ZERO))
    assert lines == ["random", "no clear difference: aopc, lodds"]
    # Six examples all one way: 2 / 64, doubled, is 0.062.
    lines = said(outcome("attention", UP[:6], UP[:6]), outcome("random", ZERO[:6], ZERO[:6]))
    assert lines == ["random", "no clear difference: aopc, lodds"]


def test_lines_without_a_test_say_why_and_do_not_count(outcome: Build) -> None:
    first = outcome("attention", UP, [None, None, *UP[2:]])
    others = [outcome("random", ZERO, UP), outcome("rollout", UP, ZERO)]
    assert said(first, *others) == [
        "random",
        "better: aopc (p = 0.016, effect +1.00)",  # Holm over one: 2 / 128
        "no test, only 5 pairs: lodds",
        "rollout",
        "no test, all differences are zero: aopc",
        "no test, only 5 pairs: lodds",
    ]


def test_a_metric_without_values_has_no_line(outcome: Build) -> None:
    empty: list[float | None] = [None] * 7
    lines = said(outcome("attention", UP, empty), outcome("random", ZERO, empty))
    assert not any("lodds" in line for line in lines)


def test_zero_one_values_go_to_mcnemar(outcome: Build) -> None:
    """Seven up, none down: 2 / 128, doubled by Holm; five up and two down: 58 / 128."""
    kept, lost = [1.0] * 5 + [0.0] * 2, [0.0] * 5 + [1.0] * 2
    one, other = outcome("attention", [1.0] * 7, kept), outcome("random", ZERO, lost)
    (head, *_) = comparison_lines([one, other])
    assert head.strip() == (
        "attention against the others (Wilcoxon signed-rank, for 0/1 metrics exact McNemar; "
        "p after Holm over 2 tests):"
    )
    assert said(one, other) == [
        "random",
        "better: aopc (p = 0.031, effect +1.00)",
        "no clear difference: lodds",
    ]


def test_one_explainer_is_compared_with_nothing(outcome: Build) -> None:
    assert list(comparison_lines([outcome("random", UP, UP)])) == []


def test_examples_are_spread_and_shown_as_written(data: Dataset, tiny_model: Any) -> None:
    (chosen,) = find_explainers("attention")
    tokens = ["good film", "dull film", "fine , warm film", "a [ b ] bad [ / b ] film"]
    rows = tuple(
        row(
            example.id,
            target=1,
            label=example.label,
            probability=0.75,
            tokens=parts.split(),
            scores=[0.5] * len(parts.split()),
        )
        for example, parts in zip(data.examples, tokens, strict=True)
    )
    record = SimpleNamespace(protocol=SimpleNamespace(long="truncate"))
    made = Outcome(chosen, record, Path("x.json"), rows)
    console = Console(file=io.StringIO(), width=80)
    show_examples(console, tiny_model(), data, made, count=2)
    lines = console.file.getvalue().splitlines()
    assert lines == [
        "",
        "attention on 2 of the examples (orange for the prediction, blue against):",
        "a: yes (p = 0.750, right)",
        "good film",
        "[/b]:smile:: yes (p = 0.750, wrong, it is no)",
        "a [b]bad[/b] film",
    ]
