"""`leaderboard ranking` and `leaderboard power` in a terminal of 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from faithbench.cli.app import app
from faithbench.core.errors import FaithbenchError
from tests.support.stores import store


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    for task in ("one", "two", "three"):
        for name, mean in (("lime", 0.5), ("deep", 0.4), ("late", 0.3), ("random", 0.1)):
            values = [mean + 0.01 * ((i * 7 + len(name)) % 5) for i in range(12)]
            store(
                folder / task, f"{name}-11111111", {"aopc": values},
                task={"name": task, "source": "folder"},
            )  # fmt: skip
    return folder


def shown(*arguments: str) -> list[str]:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, ["leaderboard", *arguments])
    if result.exception is not None:
        raise result.exception
    lines = result.output.splitlines()
    assert all(len(line) <= 80 for line in lines)
    return lines


def test_the_ranking_with_its_controls_last(records: Path, tmp_path: Path) -> None:
    lines = shown("ranking", "--records", str(records), "--submissions", str(tmp_path / "none"))
    words = [line.split() for line in lines if line.strip()]
    assert [row[0] for row in words[1:5]] == ["lime", "deep", "late", "random"]
    assert words[1][1] == "1.0" and "first" in words[1] and "control" in words[4]
    assert "worse on 3 of 3" in lines[2]


def test_nemenyi_is_there_on_request(records: Path, tmp_path: Path) -> None:
    arguments = ["--records", str(records), "--submissions", str(tmp_path / "none")]
    lines = shown("ranking", *arguments, "--test", "nemenyi")
    assert [line.split() for line in lines[1:4]] == [
        ["lime", "1.00"], ["deep", "2.00"], ["late", "3.00"],
    ]  # fmt: skip
    # Three tables that all agree: 12 * 3 / 12 * (14 - 12) = 6 with 2 degrees of freedom.
    assert "3 tables; Friedman p = 0.05; mean ranks 1.91 apart differ" in lines[-1]


def test_power_by_table_and_of_neighbours(records: Path, tmp_path: Path) -> None:
    arguments = ["--records", str(records), "--submissions", str(tmp_path / "none")]
    lines = shown("power", *arguments)
    assert [line.split()[:3] for line in lines[1:4]] == [
        [task, "12", "aopc"] for task in ("one", "three", "two")
    ]
    assert all(line.split()[4] == "100%" for line in lines[1:4])
    lines = shown("power", *arguments, "--table", "one")
    assert [line.split()[:2] for line in lines[1:3]] == [["lime", "deep"], ["deep", "late"]]


def test_a_table_that_is_not_there_is_named(records: Path, tmp_path: Path) -> None:
    arguments = ["--records", str(records), "--submissions", str(tmp_path / "none")]
    with pytest.raises(FaithbenchError, match="tabel"):
        shown("power", *arguments, "--table", "tabel")
    with pytest.raises(FaithbenchError, match="recall"):
        shown("power", *arguments, "--table", "one", "--metric", "recall")
