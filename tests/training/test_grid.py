"""A grid of settings: what is read, trained, chosen and written down."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.training.grid import Grid, fit_grid, read_grid
from tests.support.training import WHOLE, killer, label_splits, save_base, silent

OBJECTIVES = ("saloss:salience=uniform",)


def test_a_grid_is_read() -> None:
    expected = Grid("saloss", "weight", ("0.01", "1"))
    assert read_grid("weight=0.01, 1,1", OBJECTIVES) == expected
    assert read_grid("saloss.weight=0.01,1", OBJECTIVES) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("weight", "should be a setting and values: weight=0.01,0.1,1"),
        ("weight=", "should be a setting and values"),
        ("wight=1", "none of the objectives can be set by 'wight'"),
        ("neutral.weight=1", "no objective with that setting named 'neutral'"),
        ("weight=1,-1", "objective saloss: weight is at least 0, found -1"),
        ("weight=1,much", "weight is a number, found 'much'"),
    ],
)
def test_faults_are_named(text: str, message: str) -> None:
    with pytest.raises(FaithbenchError, match=message):
        read_grid(text, OBJECTIVES)


def test_the_whole_grid_is_recorded_and_a_killed_one_continues(tmp_path: Path) -> None:
    base, splits, out = save_base(tmp_path, "bert"), label_splits(), tmp_path / "grid"
    recipe = replace(WHOLE, epochs=1, objectives=OBJECTIVES)
    grid = read_grid("weight=0,5", OBJECTIVES)
    with pytest.raises(KeyboardInterrupt):
        fit_grid(splits, recipe, grid, out, killer("scoring test", 10), base=str(base))
    first = [path.name for path in out.iterdir()]
    assert first == ["weight=0"] and not (out / "grid.json").exists()
    steps: list[str] = []
    report = fit_grid(
        splits,
        recipe,
        grid,
        out,
        lambda name, *_: steps.append(name),
        metric="flip_fraction@attention",
        base=str(base),
    )
    assert json.loads((out / "grid.json").read_text()) == report
    assert [trial["value"] for trial in report["tried"]] == ["0", "5"]
    assert (report["metric"], report["setting"]) == ("flip_fraction@attention", "weight")
    least = min(trial["dev"] for trial in report["tried"])
    (chosen,) = (t for t in report["tried"] if t["value"] == report["chosen"])
    assert chosen["dev"] == least and (out / report["folder"] / "card.json").exists()
    cards = [json.loads((out / t["folder"] / "card.json").read_text()) for t in report["tried"]]
    weights = [card["recipe"]["objectives"][1]["settings"]["weight"] for card in cards]
    assert weights == [0.0, 5.0]
    # What is trained is not trained again.
    again: list[str] = []
    fit_grid(splits, recipe, grid, out, lambda name, *_: again.append(name), base=str(base))
    assert "epoch 1/1" in steps and "epoch 1/1" not in again
    # A folder with another training is not taken for one of the grid.
    with pytest.raises(FaithbenchError, match="already holds a trained model"):
        fit_grid(splits, replace(recipe, seed=4), grid, out, silent, base=str(base))
