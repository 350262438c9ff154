"""Lines that compare explainers: the right word for the direction, and the right numbers."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from faithbench.comparison import comparison_lines, show_examples
from faithbench.data import Dataset, load_dataset
from faithbench.metrics import find_metrics
from faithbench.reporting import make_record
from faithbench.run import Outcome
from faithbench.selection import find_explainers
from tests.builders import ROWS, make_task, put, row

Build = Callable[[str, Sequence[float | None], Sequence[float | None]], Outcome]
ODD_ROWS = [*ROWS, {"id": "[/b]:smile:", "text": "a [b]bad[/b] film", "label": 0}]


@pytest.fixture
def data(tmp_path: Path) -> Dataset:
    put(tmp_path, ODD_ROWS)
    return load_dataset(make_task(), folder=tmp_path)


@pytest.fixture
def outcome(data: Dataset, tiny_model: Any) -> Build:
    def build(label: str, aopc: Sequence[float | None], lodds: Sequence[float | None]) -> Outcome:
        rows = tuple(
            row(f"e{i}", values={"aopc": a, "lodds": b})
            for i, (a, b) in enumerate(zip(aopc, lodds, strict=True))
        )
        (chosen,) = find_explainers(label)
        record = make_record(
            data=data,
            model=tiny_model(),
            chosen=chosen,
            assets={},
            metrics=find_metrics("aopc,lodds"),
            operator="mask",
            seed=0,
            rows=rows,
            seconds=[],
            rows_file=("x.rows.jsonl", "ab"),
            truncated=0,
            threads=1,
        )
        return Outcome(chosen, record, Path("x.json"), rows)

    return build


UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
ZERO = [0.0] * 6


def words(lines: Sequence[str]) -> list[str]:
    return [" ".join(line.split()) for line in lines]


def test_better_and_worse_follow_the_direction(outcome: Build) -> None:
    # The first has more AOPC (good) and more LOdds (bad), on all six examples.
    lines = list(comparison_lines([outcome("attention", UP, UP), outcome("random", ZERO, ZERO)]))
    assert lines[0].strip().startswith("attention against the others (Wilcoxon signed-rank, Holm")
    # p is 2 / 64 for each, and Holm over two lines doubles it: 0.0625.
    assert words(lines[1:]) == [
        "aopc random better p = 0.062, effect +1.00",
        "lodds random worse p = 0.062, effect +1.00",
    ]
    turned = list(comparison_lines([outcome("random", ZERO, ZERO), outcome("attention", UP, UP)]))
    assert words(turned[1:]) == [
        "aopc attention worse p = 0.062, effect -1.00",
        "lodds attention better p = 0.062, effect -1.00",
    ]


def test_a_draw_is_neither(outcome: Build) -> None:
    swing = [0.1, 0.1, 0.1, -0.1, -0.1, -0.1]
    lines = list(
        comparison_lines([outcome("attention", swing, swing), outcome("random", ZERO, ZERO)])
    )
    assert [line.split()[:3] for line in lines[1:]] == [
        ["aopc", "random", "equal"],
        ["lodds", "random", "equal"],
    ]
    assert all("p = 1, effect +0.00" in line for line in lines[1:])


def test_lines_without_a_test_say_why_and_do_not_count(outcome: Build) -> None:
    first = outcome("attention", UP, [None, *UP[1:]])
    others = [outcome("random", ZERO, UP), outcome("rollout", UP, ZERO)]
    lines = list(comparison_lines([first, *others]))
    assert words(lines[1:]) == [
        "aopc random better p = 0.031, effect +1.00",  # Holm over one: 2 / 64
        "aopc rollout no test: all differences are zero",
        "lodds random no test: only 5 pairs",
        "lodds rollout no test: only 5 pairs",
    ]


def test_a_metric_without_values_has_no_line(outcome: Build) -> None:
    empty: list[float | None] = [None] * 6
    lines = list(
        comparison_lines([outcome("attention", UP, empty), outcome("random", ZERO, empty)])
    )
    assert [line.split()[0] for line in lines[1:]] == ["aopc"]


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
    made = Outcome(chosen, None, Path("x.json"), rows)  # type: ignore[arg-type]
    console = Console(file=io.StringIO(), width=80)
    show_examples(console, tiny_model(), data, made, count=2)
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines == [
        "",
        "attention on 2 of the examples (orange for the prediction, blue against):",
        "a: yes (p = 0.750, right)",
        "good film",
        "[/b]:smile:: yes (p = 0.750, wrong, it is no)",
        "a [b]bad[/b] film",
    ]
