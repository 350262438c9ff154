"""The same examples erased in two ways: which tables are compared, and how their orders agree."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.operators import operator_pairs
from tests.support.stores import store

NONE = ()


def add(folder: Path, operator: str, means: Mapping[str, float], task: str = "one") -> None:
    for name, mean in means.items():
        store(
            folder / task / operator, f"{name}-11111111", {"aopc": [mean] * 6},
            task={"name": task}, protocol={"operator": operator},
        )  # fmt: skip


def test_two_orders_by_hand(tmp_path: Path) -> None:
    add(tmp_path, "mask", {"a": 0.4, "b": 0.3, "c": 0.2, "d": 0.1, "alone": 0.5})
    add(tmp_path, "delete", {"a": 0.3, "b": 0.4, "c": 0.2, "d": 0.1})
    (pair,) = make_board(tmp_path, NONE).operators
    assert (pair.first, pair.second, pair.operators) == ("one", "one-delete", ("mask", "delete"))
    # One of six pairs is turned round: (5 - 1) / 6.
    assert pair.shared == 4 and pair.kendall == pytest.approx(4 / 6, abs=1e-9)
    assert pair.kendall_best == pair.kendall == pair.kendall_aopc
    assert pair.leaders == (("alone",), ("b",))


def test_other_examples_are_not_compared(tmp_path: Path) -> None:
    add(tmp_path, "mask", {"a": 0.4, "b": 0.3})
    add(tmp_path, "delete", {"a": 0.4, "b": 0.3}, task="two")
    assert make_board(tmp_path, NONE).operators == ()


def test_the_ten_best_are_compared_apart(tmp_path: Path) -> None:
    names = [f"x{i:02}" for i in range(12)]
    add(tmp_path, "mask", {name: 1 - i / 100 for i, name in enumerate(names)})
    turned = [*names[:10], names[11], names[10]]
    add(tmp_path, "pad", {name: 1 - i / 100 for i, name in enumerate(turned)})
    (pair,) = make_board(tmp_path, NONE).operators
    assert pair.kendall_best == 1 and pair.kendall == pytest.approx(1 - 2 / 66, abs=1e-9)


def test_one_explainer_has_no_order(tmp_path: Path) -> None:
    add(tmp_path, "mask", {"a": 0.4, "random": 0.0})
    add(tmp_path, "delete", {"a": 0.4, "random": 0.0})
    (pair,) = operator_pairs(make_board(tmp_path, NONE).tables)
    assert pair.kendall is None and pair.shared <= 1
