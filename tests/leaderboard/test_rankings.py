"""Ranks over tables by hand: which tables count, what is left out, what the tests say."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from faithbench.leaderboard.board import Board
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.rankings import groups_within
from faithbench.stats.ranks import critical_difference
from tests.support.stores import store

NONE = Path("no-such-folder")


def add(
    folder: Path, task: str, means: Mapping[str, float], source: str = "folder", cost: float = 3
) -> None:
    """Store explainers on a task, with the same value on all examples."""
    for name, mean in means.items():
        values = {"aopc": [mean, mean], "lodds": [-mean, -mean]}
        store(
            folder / task, f"{name}-11111111", values,
            task={"name": task, "source": source, "rationale": "none"},
            cost={"forward_equivalents_per_example": cost + mean},
        )  # fmt: skip


def ranks(board: Board, family: str) -> dict[str, float]:
    return next(r.mean_ranks for r in board.rankings if r.family == family)


def test_mean_ranks_by_hand(tmp_path: Path) -> None:
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4, "random": 0.1})
    add(tmp_path, "two", {"lime": 0.5, "deep": 0.6, "random": 0.1})
    add(tmp_path, "three", {"lime": 0.5, "deep": 0.4, "random": 0.1})
    board = make_board(tmp_path, NONE)
    assert [r.family for r in board.rankings] == ["overall", "faithfulness", "speed"]
    # Lime is 1, 2, 1; deep is 2, 1, 2; random is 3 everywhere.
    ranking = board.rankings[1]
    assert list(ranking.mean_ranks) == ["lime", "deep", "random"]
    assert list(ranking.mean_ranks.values()) == pytest.approx([4 / 3, 5 / 3, 3])
    assert ranking.over[:2] == ("one/aopc", "one/lodds") and len(ranking.over) == 6
    assert ranking.ci95["random"] == (3, 3) and ranking.ci95["lime"] == (1, 2)
    assert ranking.critical_difference == pytest.approx(critical_difference(3, 3), abs=1e-9)
    # Friedman: 12 N / k (k + 1) * (sum of squared mean ranks - k (k + 1)^2 / 4) = 14 / 3; df 2.
    assert ranking.friedman_p == pytest.approx(0.09697, abs=1e-5)
    assert ranking.groups == (("lime", "deep", "random"),) and ranking.left_out == ()
    # Cost grows with the value here, so speed turns the order around.
    assert list(ranks(board, "speed").values()) == pytest.approx([1, 7 / 3, 8 / 3])
    # Speed has no part in the overall ranking: scores drawn at random would win it.
    assert ranks(board, "overall") == ranks(board, "faithfulness")


def test_only_those_in_all_tables_are_ranked(tmp_path: Path) -> None:
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4, "random": 0.1, "human": 0.9})
    add(tmp_path, "two", {"lime": 0.5, "random": 0.1})
    board = make_board(tmp_path, NONE)
    assert ranks(board, "faithfulness") == {"lime": 1.0, "random": 2.0}
    assert board.rankings[0].left_out == ("deep",), "human is no method, so it is not left out"
    assert board.rankings[1].reason.startswith("ranks are tested from 3 explainers and 2 tables")


def test_bundled_and_sparse_tables_do_not_count(tmp_path: Path) -> None:
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4, "random": 0.1, "late": 0.0, "last": -1})
    add(tmp_path, "two", {"deep": 0.9, "lime": 0.1}, source="bundled")
    add(tmp_path, "three", {"other": 0.5, "lime": 0.1})
    board = make_board(tmp_path, NONE)
    assert {row.split("/")[0] for r in board.rankings for row in r.over} == {"one"}
    assert ranks(board, "faithfulness") == {"lime": 1, "deep": 2, "random": 3, "late": 4, "last": 5}
    assert board.rankings[1].ci95["lime"] is None, "one table has no interval"


def test_many_tables_with_few_explainers_count_more_than_one_with_many(tmp_path: Path) -> None:
    few = {f"x{i}": i / 100 for i in range(3)}
    many = {f"x{i}": i / 100 for i in range(8)}
    add(tmp_path, "a", many)
    add(tmp_path, "b", few)
    board = make_board(tmp_path, NONE)
    # 1 table times 8 explainers is more than 2 times 3; 3 times 3 is more than 8.
    assert {row.split("/")[0] for row in board.rankings[0].over} == {"a"}
    add(tmp_path, "c", few)
    add(tmp_path, "d", {"x0": 0.5, "other": 0.1})
    board = make_board(tmp_path, NONE)
    assert {row.split("/")[0] for row in board.rankings[0].over} == {"a", "b", "c"}
    assert set(board.rankings[0].mean_ranks) == set(few)


def test_an_explainer_without_a_metric_is_left_out_and_not_the_metric(tmp_path: Path) -> None:
    add(tmp_path, "one", {f"x{i}": i / 100 for i in range(10)})
    task = {"name": "one", "source": "folder", "rationale": "none"}
    store(tmp_path / "one", "odd-11111111", {"lodds": [0.0, 0.0]}, task=task)
    board = make_board(tmp_path, NONE)
    assert board.rankings[1].left_out == ("odd",)
    assert board.rankings[1].over == ("one/aopc", "one/lodds")


def test_proxies_do_not_count_next_to_human_rationales(tmp_path: Path) -> None:
    values = {"agreement": [0.5, 0.5]}
    for task, proxy in (("one", True), ("two", False)):
        for name in ("lime", "random"):
            path = store(
                tmp_path / task, f"{name}-11111111", values,
                task={"name": task, "source": "folder", "rationale": "human"},
            )  # fmt: skip
            family = '"family": "plausibility"'
            text = path.read_text().replace('"family": "faithfulness"', family)
            path.write_text(text.replace('"proxy": false', f'"proxy": {str(proxy).lower()}'))
    over = {r.family: r.over for r in make_board(tmp_path, NONE).rankings}
    assert over["plausibility"] == ("two/agreement",)
    for path in (tmp_path / "two").glob("*.json"):
        path.unlink()
    over = {r.family: r.over for r in make_board(tmp_path, NONE).rankings}
    assert over["plausibility"] == ("one/agreement",), "better than nothing, and marked"


def test_pareto_front_by_hand(tmp_path: Path) -> None:
    # Ranks 1, 2 and 3 at costs 3.5, 3.4 and 50.1: one that is more expensive and worse is beaten.
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4})
    add(tmp_path, "one", {"slow": 0.1}, cost=50)
    points = {p.label: p for p in make_board(tmp_path, NONE).pareto}
    assert {label: point.front for label, point in points.items()} == {
        "lime": True, "deep": True, "slow": False,
    }  # fmt: skip
    assert points["slow"].forward_equivalents == 50.1 and points["slow"].faithfulness_rank == 3


def test_explainers_without_a_known_cost_are_left_out_of_the_front(tmp_path: Path) -> None:
    """A cost of nothing would put scores that were made elsewhere on the front."""
    add(tmp_path, "one", {"lime": 0.5, "deep": 0.4})
    store(
        tmp_path / "one", "mine-11111111", {"aopc": [0.6, 0.6], "lodds": [-0.6, -0.6]},
        task={"name": "one", "source": "folder", "rationale": "none"},
        cost={"forward_equivalents_per_example": None},
    )  # fmt: skip
    board = make_board(tmp_path, NONE)
    assert list(ranks(board, "faithfulness")) == ["mine", "lime", "deep"]
    assert {p.label: p.front for p in board.pareto} == {"lime": True, "deep": True}


def test_groups_within_the_critical_difference() -> None:
    means = {"a": 1.0, "b": 1.5, "c": 2.4, "d": 4.0}
    assert groups_within(means, 1.0, 0.01) == (("a", "b"), ("b", "c"))
    assert groups_within(means, 1.4, 0.01) == (("a", "b"), ("b", "c")), "1.4 apart is different"
    assert groups_within(means, 9.0, 0.01) == (("a", "b", "c", "d"),)
    assert groups_within(means, 1.0, 0.2) == (("a", "b", "c", "d"),)
    assert groups_within(means, None, None) == ()
