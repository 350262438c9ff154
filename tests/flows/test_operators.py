"""A small version of benchmarks/operators.py: two orders by hand, and three measured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from faithbench.data.dataset import load_dataset
from faithbench.leaderboard.build import make_board
from tests.support.benchmarks import load_benchmark
from tests.support.builders import make_task, put
from tests.support.jobs import TEXTS, watched_sessions
from tests.support.stores import store

NONE = ()


@pytest.fixture(scope="module")
def study() -> ModuleType:
    return load_benchmark("operators")


def add(folder: Path, operator: str, means: Mapping[str, float]) -> None:
    for name, mean in means.items():
        stem = f"{name}-11111111"
        store(folder / operator, stem, {"aopc": [mean] * 6}, protocol={"operator": operator})


def test_orders_of_methods_are_compared(study: ModuleType, tmp_path: Path) -> None:
    add(tmp_path, "mask", {"alti": 0.4, "gae": 0.3, "lrp": 0.2, "rollout": 0.1, "random": 0.9})
    add(tmp_path, "delete", {"alti": 0.3, "gae": 0.4, "lrp": 0.2, "rollout": 0.1, "random": 0.0})
    board = make_board(tmp_path, NONE)
    (tables,) = study.erased_alike(board.tables)
    assert list(tables) == ["mask", "delete"]
    means = [study.aopc_means(table) for table in tables.values()]
    assert means[0] == {"alti": 0.4, "gae": 0.3, "lrp": 0.2, "rollout": 0.1}
    # One of six pairs is turned round, and the only pair of the two best.
    assert study.tau(*means) == pytest.approx(4 / 6)
    assert study.tau(*means, best=2) == pytest.approx(-1)
    assert "| mask, delete | 4            | 0.67 " in study.agreement_table(board)
    assert "| alti                  | 1 (0.400) | 2 (0.300) |" in study.ranks_table(tables)
    assert study.moves(tables) == (
        "From mask to delete, ranks fall by `alti` 1, and rise by `gae` 1."
    )


def test_one_operator_is_said_to_be_one(study: ModuleType, tmp_path: Path) -> None:
    add(tmp_path, "mask", {"alti": 0.4, "gae": 0.3})
    assert study.body_of(make_board(tmp_path, NONE)).startswith("No two tables")


def test_three_operators_are_measured_once(
    study: ModuleType, tmp_path: Path, tiny_model: Any
) -> None:
    put(tmp_path, [{"id": f"e{i}", "text": text, "label": 0} for i, text in enumerate(TEXTS[:6])])
    data = load_dataset(make_task(rationale="none", labels=["class 0", "class 1"]), folder=tmp_path)
    given = (data.task, "attention,gradient", 4, tmp_path / "results", data, tiny_model())
    board = study.measure(*given)
    (tables,) = study.erased_alike(board.tables)
    assert list(tables) == ["mask", "delete", "pad"]
    assert [len(study.aopc_means(table)) for table in tables.values()] == [2, 2, 2]
    with watched_sessions() as opened:
        assert study.measure(*given).operators == board.operators
    assert opened == []  # nothing was left to do
