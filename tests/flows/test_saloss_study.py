"""The study of SaLoss: divergences by hand, tables of made-up records, and claims on work."""

from __future__ import annotations

import json
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.records.model_comparison import find_models
from tests.support.benchmarks import load_benchmark
from tests.support.stores import change_rows, store

saloss: Any = load_benchmark("saloss")


def test_the_divergence_is_normalised_over_the_text() -> None:
    """Attention .3 and .1 of a text against equal salience: (.75, .25) and (.5, .5)."""
    expected = 0.75 * log(1.5) + 0.25 * log(0.5)
    assert saloss.divergence([0.3, 0.1], np.array([2.0, 2.0])) == pytest.approx(expected)
    assert saloss.divergence([0.4, 0.0], np.array([1.0, 3.0])) == pytest.approx(log(4))


def test_every_model_of_the_study_has_its_own_folder_and_recipe() -> None:
    models = list(saloss.study())
    assert len({one.folder for one in models}) == len(models)
    assert models[0].recipe.objectives == () and models[0].folder == "sst2/plain-seed0"
    assert models[1].recipe.objectives == ("saloss:salience=textrank,weight=0.1",)
    assert {one.recipe.epochs for one in models} == {1}


def test_work_is_claimed_once(tmp_path: Path) -> None:
    name = "train-a/b"
    with saloss.claimed(tmp_path, name) as first, saloss.claimed(tmp_path, name) as second:
        assert first and not second
    with saloss.claimed(tmp_path, name) as again:
        assert again


def test_tables_of_two_models(tmp_path: Path) -> None:
    """TextRank attention moved from (.6, .2) to (.4, .4); flips fell on all seven texts."""
    settings = {"attention": {}, "salience": {"kind": "textrank"}}
    for model, scores, flips in (
        ("plain-seed0", (0.6, 0.2), [0.5] * 7),
        ("textrank-0.1-seed0", (0.4, 0.4), [0.1, 0.2, 0.3, 0.4, 0.45, 0.46, 0.47]),
    ):
        folder = tmp_path / "sst2" / model
        folder.mkdir(parents=True)
        card = {"test": {"accuracy": 0.75}, "recipe": {"metric": "accuracy"}}
        (folder / "card.json").write_text(json.dumps(card))
        for name, kept in settings.items():
            told = {"name": model, "weights_sha256": model[0] * 64}
            values = {"flip_fraction": flips}
            where = tmp_path / "records" / model
            path = store(where, f"{name}-11111111", values, settings=kept, model=told)
            own = scores if name == "attention" else (0.5, 0.5)
            change_rows(path, {f"e{n}": {"scores": own} for n in range(7)})
        uniform = {"kind": "uniform"}
        path = store(
            tmp_path / "records" / model, "salience-22222222", values, settings=uniform, model=told
        )
        change_rows(path, {f"e{n}": {"scores": (0.5, 0.5)} for n in range(7)})
    (plain,) = find_models(["plain-seed0"], "sst2", tmp_path / "records")
    facts = saloss.attention_facts(plain, saloss.saliences_of(plain))
    assert facts["textrank"] == pytest.approx(0.75 * log(1.5) + 0.25 * log(0.5))
    assert facts["special"] == pytest.approx(0.2)
    shown = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in saloss.tables(tmp_path, "sst2").splitlines()
        if line.startswith("|")
    ]
    trained = next(line for line in shown if line[0] == "textrank-0.1" and line[1] == "1")
    assert trained[2:] == ["0.750", "0.000", "0.000", "0.000", "-100%", "0.200"]
    flips_line = next(line for line in shown if line[:2] == ["textrank-0.1", "attention"])
    assert flips_line[2:5] == ["0.500", "0.340", "-0.160"]
