"""Calibration of head thresholds: the whole grid, each trial worth what a run would give."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.data.dataset import Dataset
from faithbench.explainers.passes.heads import (
    HeadStatistics,
    PositionFacts,
    RelationFacts,
    cached_heads,
    write_heads,
)
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import METRICS
from faithbench.models.encoding import collate, encode
from faithbench.models.engine import Engine
from faithbench.models.model import Model, build_model, load_model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.attribute import attribute
from faithbench.run.score import score
from faithbench.training import head_calibration
from faithbench.training.head_calibration import (
    PAPER,
    XI_POSITIONAL,
    XI_SYNTACTIC,
    calibrate,
    fit_heads,
)
from faithbench.training.head_statistics import Arc
from tests.support.builders import make_task, put
from tests.support.training import save_base

TEXTS = [
    "the good film is not very dull",
    "a bad plot",
    "badly plot and dull film .",
    "the film is great , the plot is good and the film is not dull .",
    "very good",
]
# With a best offset of 0.5, the bars for the grid's xi are 0.2, 0.3, 0.4, 0.45, ..., 0.6.
NSUBJ = RelationFacts(
    pairs=10,
    best_offset=1,
    best_offset_share=0.5,
    to_head=((0.52, 0.0, 0.0, 0.0), (0.0, 0.0, 0.32, 0.0)),
    to_dependent=((0.0, 0.47, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0)),
)
POSITIONS = PositionFacts(
    rows=10,
    best_offset=((1, 1, 1, 1), (1, 1, 1, 1)),
    share=((0.1, 0.1, 0.75, 0.1), (0.45, 0.1, 0.1, 0.1)),
)


def facts(**changes: Any) -> HeadStatistics:
    given: dict[str, Any] = {
        "task": "mini",
        "model": "tiny-bert",
        "weights_sha256": "bert-2",
        "parser": "by hand",
        "split": "train",
        "sentences": 3,
        "data_sha256": "0" * 64,
        "relations": {"nsubj": NSUBJ},
        "positions": POSITIONS,
        "thresholds": {"paper": PAPER},
    }
    return HeadStatistics(**given | changes)


def dev(*texts: str) -> Dataset:
    examples = tuple(Example(f"e{i}", text, 0) for i, text in enumerate(texts or TEXTS))
    return Dataset(make_task(), "folder", "dev", examples, "d" * 64, "none", False)


@pytest.fixture(scope="module")
def model(tiny_model: Any) -> Model:
    """Return a tiny model whose gradients outweigh the identity of the rollout.

    Then a row normalised or a block forgotten shows in the ranking, and so in the AOPC.
    """
    made = tiny_model("bert")
    network = copy.deepcopy(made.network)
    ids = torch.tensor(encode(made, Example("first", TEXTS[0], 0)).ids)[None]
    with torch.no_grad():
        network.classifier.weight.mul_(200)
        # Logits 1 and 0 for the first text keep all probabilities away from 0 and 1.
        network.classifier.bias.sub_(network(ids).logits[0] - torch.tensor([1, 0]))
    return build_model(
        made.name, network, made.tokenizer, labels=made.labels, weights_sha256=made.weights_sha256
    )


@pytest.fixture(scope="module")
def calibrated(model: Model) -> HeadStatistics:
    return calibrate(model, facts(), dev(), lambda *_: None)


def trials(statistics: HeadStatistics) -> dict[tuple[float, float], Any]:
    assert statistics.calibration is not None
    return {(t.xi_syntactic, t.xi_positional): t for t in statistics.calibration.grid}


def test_the_grid_is_complete(calibrated: HeadStatistics) -> None:
    """Seven by seven pairs, but for the two that select no head."""
    grid = trials(calibrated)
    every = {(synt, pos) for synt in XI_SYNTACTIC for pos in XI_POSITIONAL}
    assert len(every) == 49
    assert every - set(grid) == {(0.05, 0.8), (0.1, 0.8)}
    assert len(grid) == 47 == len(calibrated.calibration.grid)
    assert list(grid) == sorted(grid)
    # Three syntactic heads and two others; the subject's 0.52 alone; the position's 0.75 alone.
    assert grid[-0.3, 0.2].heads == 5
    assert grid[0.0, 0.8].heads == 1
    assert grid[-0.05, 0.8].heads == 2
    assert grid[0.1, 0.7].heads == 1
    assert grid[-0.1, 0.4].heads == 4


def test_the_best_pair_is_chosen(calibrated: HeadStatistics) -> None:
    grid = trials(calibrated)
    assert set(calibrated.thresholds) == {"paper", "calibrated"}
    assert calibrated.thresholds["paper"] == (0.1, 0.8)
    best = calibrated.thresholds["calibrated"]
    highest = max(trial.aopc for trial in grid.values())
    assert grid[best].aopc == highest
    assert min(trial.aopc for trial in grid.values()) < highest
    # Two pairs lead to the best mask; the stricter one is named.
    assert [pair for pair, trial in grid.items() if trial.aopc == highest] == [
        (-0.1, 0.8),
        (-0.05, 0.8),
    ]
    assert best == (-0.05, 0.8)


def test_of_equals_the_fewest_heads(model: Model) -> None:
    """A single word is erased whatever the mask, so all trials are worth the same."""
    statistics = calibrate(model, facts(), dev("film"), lambda *_: None)
    assert len({trial.aopc for trial in trials(statistics).values()}) == 1
    # One head: the subject's alone with (0, 0.8), or a position's with (0.1, 0.7), the strictest.
    assert statistics.thresholds["calibrated"] == (0.1, 0.7)


def test_what_it_was_measured_on(calibrated: HeadStatistics) -> None:
    assert calibrated.calibration is not None
    assert (calibrated.calibration.split, calibrated.calibration.examples) == ("dev", 5)
    assert calibrated.calibration.data_sha256 == "d" * 64
    assert calibrated.calibration.max_tokens == 64
    assert calibrated.relations == facts().relations
    assert facts().calibration is None


def run_aopc(model: Model, thresholds: str) -> float:
    """Return the mean AOPC of lrp-mask, one example at a time, as a run scores it."""
    (chosen,) = find_explainers(f"lrp-mask:thresholds={thresholds}")
    engine = Engine(model)
    values = []
    for text in TEXTS:
        encoding = encode(model, Example("one", text, 0))
        (full,) = predictions(engine, [encoding])
        batch = collate(model, [encoding], [full.target], [0])
        (scored,) = score(
            engine,
            attribute(Session(model), chosen, batch),
            [full.log_probability],
            [METRICS["aopc"]],
            "mask",
        )
        values.append(scored.values["aopc"])
    return float(np.mean(values))


def test_each_trial_is_worth_what_a_run_gives(
    calibrated: HeadStatistics,
    model: Model,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path))
    write_heads(calibrated, cached_heads(model))
    best = trials(calibrated)[calibrated.thresholds["calibrated"]]
    assert run_aopc(model, "calibrated") == pytest.approx(best.aopc, abs=6e-7)
    # One pair for each of the eleven masks that the grid can tell apart.
    pairs = [(synt, pos) for synt in (-0.3, -0.1, 0.0, 0.1) for pos in (0.2, 0.5, 0.8)]
    for pair in pairs[:-1]:
        named = calibrated.model_copy(update={"thresholds": {"tried": pair}})
        write_heads(named, cached_heads(model))
        expected = trials(calibrated)[pair].aopc
        assert run_aopc(model, "tried") == pytest.approx(expected, abs=6e-7)
    assert len({trials(calibrated)[pair].aopc for pair in pairs[:-1]}) == 11


def test_chunks_and_order_change_nothing(calibrated: HeadStatistics, model: Model) -> None:
    steps: list[tuple[str, int, int]] = []
    again = calibrate(model, facts(), dev(), lambda *step: steps.append(step), chunk=2)
    assert steps == [("calibrating heads", done, 5) for done in (2, 4, 5)]
    assert again.thresholds == calibrated.thresholds
    for pair, trial in trials(again).items():
        assert trial.aopc == pytest.approx(trials(calibrated)[pair].aopc, abs=2e-6)


def test_a_coarse_grid_has_the_same_trials(calibrated: HeadStatistics, model: Model) -> None:
    statistics = calibrate(model, facts(), dev(), lambda *_: None, step=3)
    pairs = {(synt, pos) for synt in (-0.3, -0.05, 0.1) for pos in (0.2, 0.5, 0.8)}
    assert set(trials(statistics)) == pairs - {PAPER}  # the paper's own pair selects no head here
    for pair, trial in trials(statistics).items():
        assert trial.aopc == pytest.approx(trials(calibrated)[pair].aopc, abs=2e-6)
    assert statistics.thresholds["calibrated"] == (-0.05, 0.8)


def test_fit_heads_writes_what_it_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Train is parsed, dev calibrates; the file is the one that lrp-mask looks for."""
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(head_calibration, "spacy_parse", parse_pairs)
    for split, size in (("train", 9), ("dev", 3)):
        rows = [{"id": f"{split}{n}", "text": f"good film {n}", "label": 0} for n in range(size)]
        put(tmp_path, rows, stem=split)
    folder = {"name": "mini", "splits": {"train": "train", "dev": "dev"}}
    task = make_task(hub=None, folder=folder)
    network = str(save_base(tmp_path, "bert"))
    steps: list[tuple[str, int, int]] = []
    statistics, path = fit_heads(
        task,
        model=network,
        folder=tmp_path,
        sentences=5,
        examples=2,
        max_tokens=16,
        step=3,
        device="cpu",
        progress=lambda *step: steps.append(step),
    )
    assert path == cached_heads(load_model(network, labels=task.labels, device="cpu"))
    assert HeadStatistics.model_validate_json(path.read_text()) == statistics
    assert (statistics.task, statistics.split, statistics.sentences) == ("mini", "train", 5)
    assert statistics.relations["amod"].pairs == 5
    assert statistics.relations["amod"].best_offset == 1
    assert statistics.calibration is not None
    assert (statistics.calibration.split, statistics.calibration.examples) == ("dev", 2)
    assert statistics.calibration.max_tokens == 16
    assert set(statistics.thresholds) == {"paper", "calibrated"}
    assert steps == [("reading heads", 5, 5), ("calibrating heads", 2, 2)]


def parse_pairs(texts: Iterable[str]) -> Iterable[list[Arc]]:
    """Say of each text that its first word, `good`, is an adjective of the second, `film`."""
    return ([Arc("amod", (0, 4), (5, 9), 1)] for _ in texts)


def test_a_model_without_such_heads_is_told(model: Model) -> None:
    flat = PositionFacts(rows=10, best_offset=POSITIONS.best_offset, share=((0.1,) * 4,) * 2)
    with pytest.raises(FaithbenchError, match="no thresholds of the grid select a head of model"):
        calibrate(model, facts(relations={}, positions=flat), dev(), lambda *_: None)
