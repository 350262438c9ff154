"""Calibration of head thresholds: the whole grid, each trial worth what a run would give."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench import data
from faithbench.core.types import Example
from faithbench.data.dataset import Dataset
from faithbench.explainers.passes.heads import (
    HeadStatistics,
    PositionFacts,
    RelationFacts,
    Trial,
    all_heads,
    cached_heads,
    count_heads,
    masks_at,
    read_heads,
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
    _Candidate,
    _trials,
    calibrate,
    choose_mask,
    fit_heads,
    verdict_on,
)
from faithbench.training.head_statistics import Arc
from tests.support.builders import make_task, put
from tests.support.training import save_base

BUNDLED = sorted(Path(data.__file__).parent.glob("bundled/*/heads.json"))
TEXTS = [
    "the good film is not very dull",
    "a bad plot",
    "badly plot and dull film .",
    "the film is great , the plot is good and the film is not dull .",
    "very good",
]
# With a best offset of 0.5, the bars for the grid's xi are 0.5, 0.55 and 0.6.
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


def trials(statistics: HeadStatistics) -> dict[Any, Any]:
    assert statistics.calibration is not None
    return {trial.thresholds: trial for trial in statistics.calibration.grid}


def test_the_grid_is_complete(calibrated: HeadStatistics) -> None:
    """No mask, and three by seven pairs but for the two that select no head."""
    grid = trials(calibrated)
    every = {(synt, pos) for synt in XI_SYNTACTIC for pos in XI_POSITIONAL}
    assert len(every) == 21 and PAPER in every and min(XI_SYNTACTIC) == 0
    assert every - set(grid) == {(0.05, 0.8), (0.1, 0.8)}
    assert set(grid) - every == {None}
    assert len(grid) == 20 == len(calibrated.calibration.grid)
    first, *others = grid
    assert first is None and others == sorted(others)
    # All eight; the subject's 0.52 and two positions; the subject alone; a position alone.
    assert grid[None].heads == 8
    assert grid[0.0, 0.2].heads == 3
    assert grid[0.0, 0.8].heads == 1
    assert grid[0.1, 0.7].heads == 1
    assert grid[0.1, 0.4].heads == 2


def test_masks_are_compared_with_none_on_the_same_texts(calibrated: HeadStatistics) -> None:
    grid = trials(calibrated)
    assert (grid[None].error, grid[None].p_worse, grid[None].p_better) == (None, None, None)
    assert all(trial.error > 0 for pair, trial in grid.items() if pair is not None)
    # Five texts are too few for the test.
    assert {trial.p_worse for trial in grid.values()} == {None}
    assert calibrated.thresholds == {
        "paper": (0.1, 0.8),
        "calibrated": choose_mask(calibrated.calibration.grid).thresholds,
    }
    assert calibrated.schema_version == 2


def test_of_equals_the_fewest_heads(model: Model) -> None:
    """A single word is erased whatever the mask, so all trials are worth the same."""
    statistics = calibrate(model, facts(), dev("film"), lambda *_: None)
    assert len({trial.aopc for trial in trials(statistics).values()}) == 1
    # One head: the subject's alone with (0, 0.8), or a position's with (0.1, 0.7), the strictest.
    assert statistics.thresholds["calibrated"] == (0.1, 0.7)
    assert statistics.calibration is not None
    assert statistics.calibration.verdict == "masking does not hurt"


# The rule


def tried(
    heads: int,
    aopc: float,
    pair: tuple[float, float] | None = (0.1, 0.5),
    *,
    error: float | None = 0.02,
    worse: float | None = 1.0,
    better: float | None = 1.0,
) -> Trial:
    synt, pos = pair or (None, None)
    ps = {"p_worse": worse, "p_better": better}
    return Trial(xi_syntactic=synt, xi_positional=pos, heads=heads, aopc=aopc, error=error, **ps)


NO_MASK = tried(72, 0.5, None, error=None, worse=None, better=None)


@pytest.mark.parametrize(
    ("masks", "index"),
    [
        # Not more than one error below: 0.481 is within 0.02 of 0.5, 0.479 is not.
        ([tried(20, 0.481)], 0),
        ([tried(20, 0.479)], None),
        ([tried(20, 0.479, error=0.03)], 0),
        # Within the error, but the test finds it worse: most texts lose a little.
        ([tried(20, 0.49, worse=0.049)], None),
        ([tried(20, 0.49, worse=0.05)], 0),
        # The strictest of those that pass, not the best.
        ([tried(20, 0.6), tried(9, 0.49), tried(3, 0.4)], 1),
        # As many heads: the higher syntactic threshold, then the positional one.
        ([tried(9, 0.5, (0.1, 0.2)), tried(9, 0.6, (0.0, 0.8))], 0),
        ([tried(9, 0.5, (0.1, 0.2)), tried(9, 0.5, (0.1, 0.3))], 1),
        # No error and no test, of one text: not lower at all.
        ([tried(20, 0.5, error=None, worse=None)], 0),
        ([tried(20, 0.499999, error=None, worse=None)], None),
        ([], None),
    ],
)
def test_the_strictest_mask_that_is_not_worse_than_none(
    masks: list[Trial], index: int | None
) -> None:
    expected = NO_MASK if index is None else masks[index]
    assert choose_mask([*masks, NO_MASK]) == expected
    assert choose_mask([NO_MASK, *reversed(masks)]) == expected


def test_verdicts() -> None:
    assert verdict_on(NO_MASK) == "masking does not help"
    assert verdict_on(tried(20, 0.6, better=0.049)) == "masking helps"
    assert verdict_on(tried(20, 0.6, better=0.05)) == "masking does not hurt"
    assert verdict_on(tried(20, 0.6, better=None)) == "masking does not hurt"


def test_errors_and_p_values_by_hand() -> None:
    """Seven texts: one mask lowers all of them, one raises five, and two pairs lead to it."""
    no_mask = np.array([0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8])
    lower = no_mask - np.arange(1, 8) / 100
    higher = no_mask + np.array([1, 2, 3, 4, 5, -6, -7]) / 100
    mask = [[[1, 0], [0, 0]]]
    candidates = [
        _Candidate([[[1, 1], [1, 1]]], (None,)),
        _Candidate(mask, ((0.0, 0.5),)),
        _Candidate(mask, ((0.1, 0.2), (0.1, 0.3))),
    ]
    first, second, third, fourth = _trials(candidates, np.stack([no_mask, lower, higher]))
    assert (first.thresholds, first.heads, first.aopc) == (None, 4, 0.5)
    assert (second.thresholds, second.heads, second.aopc) == ((0.0, 0.5), 1, 0.46)
    # The variance of 1 to 7 is 14/3.
    assert second.error == pytest.approx((14 / 3) ** 0.5 / 7**0.5 / 100, abs=1e-6)
    # One of 2^7 sign patterns is as extreme; the smaller of two p counts twice.
    assert second.p_worse == pytest.approx(2 / 128, abs=1e-6)
    assert second.p_better == pytest.approx(1 - 1 / 128, abs=1e-6)
    assert (third.thresholds, fourth.thresholds) == ((0.1, 0.2), (0.1, 0.3))
    assert third.model_dump(exclude={"xi_positional"}) == fourth.model_dump(
        exclude={"xi_positional"}
    )
    assert third.aopc == pytest.approx(0.5 + 0.02 / 7, abs=1e-6)
    # The signed ranks are 15 up and 13 down: of 128 patterns 60 reach 15 or more.
    assert third.p_better == pytest.approx(60 * 2 / 128, abs=1e-6)


def test_a_mask_that_changes_nothing_is_no_test() -> None:
    """It is not among the tests that Holm counts."""
    no_mask = np.array([0.5, 0.4, 0.6, 0.3, 0.7, 0.2])
    mask = [[[1, 0], [0, 0]]]
    candidates = [
        _Candidate([[[1, 1], [1, 1]]], (None,)),
        _Candidate(mask, ((0.0, 0.5),)),
        _Candidate(mask, ((0.1, 0.2),)),
    ]
    _, same, better = _trials(candidates, np.stack([no_mask, no_mask, no_mask + 0.1]))
    assert (same.error, same.p_worse, same.p_better) == (0, None, None)
    assert better.p_better == pytest.approx(1 / 64, abs=1e-6)


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
    # One pair for each of the five masks that the grid can tell apart, and no mask.
    pairs = [None, (0.0, 0.2), (0.0, 0.5), (0.0, 0.8), (0.1, 0.2), (0.1, 0.5)]
    for pair in pairs:
        named = calibrated.model_copy(update={"thresholds": {"tried": pair}})
        write_heads(named, cached_heads(model))
        expected = trials(calibrated)[pair].aopc
        assert run_aopc(model, "tried") == pytest.approx(expected, abs=6e-7)
    assert len({trials(calibrated)[pair].aopc for pair in pairs}) > 3


def test_batches_and_order_change_nothing(calibrated: HeadStatistics, model: Model) -> None:
    steps: list[tuple[str, int, int]] = []
    again = calibrate(model, facts(), dev(), lambda *step: steps.append(step), budget=12)
    # Six masks of five texts: two short ones together, the others alone.
    assert {(name, total) for name, _, total in steps} == {("calibrating heads", 30)}
    done = [count for _, count, _ in steps]
    assert done == sorted(done) and done[-1] == 30 and len(done) > 6
    assert again.thresholds == calibrated.thresholds
    for pair, trial in trials(again).items():
        assert trial.aopc == pytest.approx(trials(calibrated)[pair].aopc, abs=2e-6)


def test_a_coarse_grid_has_the_same_trials(calibrated: HeadStatistics, model: Model) -> None:
    statistics = calibrate(model, facts(), dev(), lambda *_: None, coarse=True)
    pairs = {(synt, pos) for synt in (0.0, 0.1) for pos in (0.2, 0.4, 0.6, 0.8)}
    # The paper's own pair selects no head here.
    assert set(trials(statistics)) == {None, *pairs} - {PAPER}
    for pair, trial in trials(statistics).items():
        assert trial.aopc == pytest.approx(trials(calibrated)[pair].aopc, abs=2e-6)


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
        coarse=True,
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
    assert steps[0] == ("reading heads", 5, 5)
    assert {name for name, _, _ in steps[1:]} == {"calibrating heads"}
    masks = steps[-1][2] // 2
    assert steps[1:] == [("calibrating heads", 2 * n, 2 * masks) for n in range(1, masks + 1)]
    # Once more, without a parser, from the file that is there.
    monkeypatch.delattr(head_calibration, "spacy_parse")
    again, _ = fit_heads(
        task,
        model=network,
        folder=tmp_path,
        examples=3,
        keep_statistics=True,
        device="cpu",
        out=tmp_path / "again.json",
        progress=lambda *_: None,
    )
    assert (again.sentences, again.relations) == (5, statistics.relations)
    assert again.calibration is not None and again.calibration.examples == 3


def parse_pairs(texts: Iterable[str]) -> Iterable[list[Arc]]:
    """Say of each text that its first word, `good`, is an adjective of the second, `film`."""
    return ([Arc("amod", (0, 4), (5, 9), 1)] for _ in texts)


def test_a_model_without_such_heads_is_not_masked(model: Model) -> None:
    flat = PositionFacts(rows=10, best_offset=POSITIONS.best_offset, share=((0.1,) * 4,) * 2)
    statistics = calibrate(model, facts(relations={}, positions=flat), dev(), lambda *_: None)
    assert list(trials(statistics)) == [None]
    assert statistics.thresholds == {"paper": PAPER, "calibrated": None}
    assert statistics.calibration is not None
    assert statistics.calibration.verdict == "masking does not help"


@pytest.mark.parametrize("path", BUNDLED, ids=lambda path: path.parent.name)
def test_shipped_thresholds_follow_from_their_grid(path: Path) -> None:
    shipped = read_heads(path)
    assert shipped.calibration is not None and shipped.calibration.split == "dev"
    grid = shipped.calibration.grid
    assert len({trial.thresholds for trial in grid}) == len(grid)
    # Every trial counts the heads that its thresholds select.
    for trial in grid:
        groups = masks_at(shipped, *trial.thresholds) if trial.thresholds else all_heads(shipped)
        assert trial.heads == count_heads(groups)
    chosen = {trial.thresholds: trial for trial in grid}[shipped.thresholds["calibrated"]]
    if shipped.schema_version == 1:
        assert chosen.aopc == max(trial.aopc for trial in grid)
    else:
        assert chosen == choose_mask(grid)
        assert shipped.calibration.verdict == verdict_on(chosen)
