"""A small version of benchmarks/saliency_learning.py: its tables, and models not trained twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from faithbench.core.types import Example
from faithbench.training.recipe import Recipe, Splits
from tests.support.benchmarks import load_benchmark
from tests.support.training import label_splits, save_base


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return load_benchmark("saliency_learning")


def marked(example: Example) -> Example:
    return replace(example, rationale=((0, 4),)) if example.label else example


def marked_splits() -> Splits:
    parts = vars(label_splits()).values()
    return Splits(*(replace(p, examples=tuple(map(marked, p.examples))) for p in parts))


def test_a_study_is_trained_once_and_told_in_four_tables(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    splits = marked_splits()
    plain = Recipe(arch="cnn", vectors="random", width=8, method="full", epochs=1, batch_size=4)
    recipes = {"plain": plain, "sum": replace(plain, objectives=("saliency",))}
    found = script.study(splits, recipes, 2, tmp_path)
    assert [(f["row"], f["seed"]) for f in found] == [
        ("plain", 0), ("sum", 0), ("plain", 1), ("sum", 1),
    ]  # fmt: skip
    assert all(len(f["right"]) == len(splits.test.examples) for f in found)
    monkeypatch.setattr(script, "fit", None)
    monkeypatch.setattr(script, "measure", None)
    assert script.study(splits, recipes, 2, tmp_path) == found
    # One line per training, and per level.
    assert len(script.class_table(found).splitlines()) == 2 + 2
    assert len(script.removal_table(found).splitlines()) == 2 + 2
    for score in script.MEASURED_BY:
        assert len(script.level_table(found, score).splitlines()) == 2 + 2 * 3


def test_a_model_that_is_there_is_measured_alone(script: ModuleType, tmp_path: Path) -> None:
    """All of its levels are told, and no test: there is no plain model beside it."""
    folder = str(save_base(tmp_path, "bert"))
    (found,) = script.measured(marked_splits(), [folder])
    assert (found["row"], len(found["right"])) == (folder, 10)
    lines = script.tables([found]).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    rows = [row[1:] for row in cells if row and row[0] == folder]
    accuracy = sum(found["right"]) / 10
    assert rows[0][-2:] == [f"{accuracy:.3f}".replace("0.", ".", 1), ""]
    # The untrained model finds no positive text, so there is nothing to lose.
    assert rows[1] == [".000", ".000", "-", "-"]
    assert [row[0] for row in rows[2:]] == ["word", "intermediate"] * 2


def test_fewer_texts_are_refused_in_a_study(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["study", "--data", "nowhere", "--limit", "5"])
    with pytest.raises(SystemExit):
        script.main()
    assert "--limit goes with --measure" in capsys.readouterr().err


def test_means_and_one_sided_tests_by_hand(script: ModuleType) -> None:
    classes = {"precision": 0.5, "recall": 1.0, "f1": 0.667, "accuracy": 0.5}
    plain = {"row": "plain", "seed": 0, "classes": classes, "right": [0, 0, 0, 0, 0, 1, 1]}
    learnt = {"row": "sum", "seed": 0, "right": [1, 1, 1, 1, 1, 0, 1]}
    learnt["classes"] = classes | {"precision": 0.75}
    lines = script.class_table([plain, learnt]).splitlines()
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert cells[2] == ["plain", ".500", "1.000", ".667", ".500", ""]
    assert cells[3] == ["sum", ".750", "1.000", ".667", ".500", "0.11 (5:1)"]
