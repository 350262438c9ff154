"""Held-out sentences: what is honest keeps its gain on them, and what was memorised does not."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest

from faithbench.cli.submission import planted
from faithbench.cli.submission.planted import planted_setup
from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.selection import Selected, find_explainers
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.run.request import wanted_metrics
from faithbench.submissions import held_out as held_out_module
from faithbench.submissions.entry import read_entry
from faithbench.submissions.held_out import (
    Bars,
    Held,
    Trial,
    aopc_of,
    bars_of,
    compared,
    held_out,
    held_out_sentences,
    recorded_aopc,
)
from faithbench.submissions.measure import Setup
from faithbench.submissions.replay import replay
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.scaffold import new_submission
from faithbench.testing.planted import planted_data
from tests.support.submissions import N, record_of, rows_of

HALF = 24
Patch = pytest.MonkeyPatch
Scores = dict[str, tuple[tuple[float, ...], ...]]


def quiet(*_: object) -> None:
    pass


def some(name: str, values: list[float]) -> dict[str, float]:
    return {f"{name}{number}": value for number, value in enumerate(values)}


def test_a_loss_beside_leave_one_out_is_a_loss() -> None:
    easy, hard = [0.5 + n / 100 for n in range(30)], [0.2 + n / 100 for n in range(30)]
    bundled = Bars(some("b", easy), some("b", [0.1] * 30))
    others = Bars(some("h", hard), some("h", [0.1] * 30))
    # Lower on the others by as much as leave-one-out is: they are harder, and nothing is lost.
    honest = compared(
        some("b", [v - 0.05 + n % 3 / 50 for n, v in enumerate(easy)]), bundled,
        some("h", [v - 0.05 + n % 3 / 50 for n, v in enumerate(hard)]), others,
    )  # fmt: skip
    assert honest.recorded == pytest.approx(fmean(easy) - 0.05 + 0.02 - 0.1)
    assert honest.held_out == pytest.approx(honest.recorded - 0.3)
    assert honest.p_lower == pytest.approx(0.5) and honest.p_gain < 1e-6
    assert honest.keeps and honest.gains
    # In all pairs of one of each, the first is the higher: the rank-sum test's z is 6.65.
    memorised = compared(some("b", [0.9] * 30), bundled, some("h", hard), others)
    assert memorised.p_lower == pytest.approx(1.43e-11, rel=0.01)
    assert not memorised.keeps and memorised.gains


def test_what_is_no_better_than_random_has_no_gain() -> None:
    chance = [0.1 + n / 100 for n in range(20)]
    bars = Bars(some("x", [0.5] * 20), some("x", chance))
    held = compared(some("x", chance), bars, some("x", chance), bars)
    assert held == Held(0.0, 0.0, pytest.approx(0.5), 1.0) and held.keeps and not held.gains
    worse = compared(some("x", chance), bars, some("x", [v - 0.05 for v in chance]), bars)
    assert worse.p_gain == pytest.approx(1, abs=1e-4) and not worse.gains
    same = compared(some("x", [0.5] * 20), bars, some("x", [0.5] * 20), bars)
    assert same.p_lower == 1.0, "nothing to test is no loss"


def test_last_bits_are_no_loss() -> None:
    half = some("x", [0.5] * 30)
    bars = Bars(half, some("x", [0.1] * 30))
    held = compared(some("x", [0.5 + 1e-5] * 30), bars, half, bars)
    assert held.p_lower == 1.0


def test_few_sentences_prove_nothing() -> None:
    bars = Bars(some("x", [0.5] * 30), some("x", [0.1] * 30))
    many, few = some("x", [0.4] * 30), some("x", [0.4] * 19)
    message = "has 19 sentences in its record and 30 others.*20 of each are needed; run it without"
    with pytest.raises(FaithbenchError, match=message):
        compared(few, bars, many, bars)
    with pytest.raises(FaithbenchError, match="has 30 sentences in its record and 19 others"):
        compared(many, bars, few, bars)


def test_sentences_are_spliced_anew_and_nobody_has_them() -> None:
    bundled = load_dataset(load_task("sst2"), source="bundled")
    texts = {example.text for example in bundled.examples}
    first, again, other = (held_out_sentences(bundled, None, 50, seed) for seed in (1, 1, 2))
    assert first == again != other
    spliced = {example.text for example in first.examples}
    assert len(spliced) == 50 and not spliced & texts
    assert len(spliced & {example.text for example in other.examples}) < 5
    assert all(example.rationale is None for example in first.examples)
    one, two = bundled.examples[0], replace(bundled.examples[1], text="It never, ever ends.")
    pair = replace(bundled, examples=(replace(one, text="A fine plot indeed!"), two))
    both = held_out_sentences(pair, None, 50, 0).examples
    assert sorted(example.text for example in both) == [
        "A fine ever ends.",
        "It never, plot indeed!",
    ]


def test_sentences_of_a_folder_are_those_that_are_not_bundled(tmp_path: Path) -> None:
    rows = [{"id": f"n{n}", "text": f"w{n} good film", "label": 0} for n in range(40)]
    bundled = replace(planted_data(30), source="bundled")
    file = tmp_path / "planted" / "test.jsonl"
    file.parent.mkdir()
    known = [{"id": e.id, "text": e.text, "label": e.label} for e in bundled.examples]
    file.write_text("".join(json.dumps(row) + "\n" for row in (*known, *rows)))
    drawn = held_out_sentences(bundled, tmp_path, 22, 0)
    ids = {example.id for example in drawn.examples}
    assert len(ids) == 22 and ids < {row["id"] for row in rows} and drawn.source == "folder"
    assert {e.id for e in held_out_sentences(bundled, tmp_path, 22, 1).examples} != ids
    file.write_text("".join(json.dumps(row) + "\n" for row in (*known, *rows[:19])))
    message = "hold 19 sentences that are not bundled, and 20 are needed; give a folder of more"
    with pytest.raises(FaithbenchError, match=message):
        held_out_sentences(bundled, tmp_path, 22, 0)


def test_the_record_counts_if_it_is_of_this_code(
    measured_under_seeds: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(measured_under_seeds, tmp_path / "my-x"))
    entry, task = read_entry(folder), load_task("sst2")
    recorded = recorded_aopc(folder, entry, task)
    rows = [json.loads(line) for line in rows_of(folder).read_text().splitlines()[1:]]
    assert recorded == {row["id"]: row["values"]["aopc"] for row in rows} and len(recorded) == N
    (folder / "explainer.py").write_text("# other code\n")
    with pytest.raises(FaithbenchError, match=r"has no record of this explainer\.py on bund"):
        recorded_aopc(folder, entry, task)
    shutil.rmtree(record_of(folder).parent)
    with pytest.raises(FaithbenchError, match="first give `faithbench submission run FOLDER"):
        recorded_aopc(folder, entry, task)


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> tuple[Setup, Setup]:
    """A tiny model that knows a word, and two sets of texts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planted, "STEPS", 60)
        setup = planted_setup(tmp_path_factory.mktemp("planted"), 2 * HALF, 3)
    parts = setup.encodings[:HALF], setup.encodings[HALF:]
    known, others = (
        Setup(replace(setup.data, examples=tuple(e.example for e in part)), setup.session, part)
        for part in parts
    )
    return known, others


def scores_of(name: str, setup: Setup, folder: Path) -> Scores:
    """Return the scores of an explainer of ours, as a worker would send them."""
    metrics = wanted_metrics("aopc", setup.data, several_seeds=False)
    (explained,) = run(Job(setup.data, setup.model, find_explainers(name), metrics, folder), quiet)
    return {row.id: (row.scores,) for row in explained.rows}


def asked(
    known: Scores, others: Scores, halves: tuple[Setup, Setup], folder: Path, patch: Patch
) -> Held:
    """Ask a submission whose record has some scores, and that answers with others."""
    submission = new_submission(folder, "my-x", "plugin")
    on_board, drawn = halves
    replayed = Selected("my-x", replay(known, 0, {}), "submission", stated={})
    (recorded,) = aopc_of([replayed], on_board, quiet)
    patch.setattr(held_out_module, "recorded_aopc", lambda *_: recorded)
    patch.setattr(held_out_module, "ask_scores", lambda *_: (others, 1.5))
    trial = Trial(drawn, bars_of(drawn, quiet), bars_of(on_board, quiet))
    return held_out(submission, read_entry(submission), trial, Limits(), quiet, quiet)


def test_an_honest_explainer_keeps_its_gain(
    halves: tuple[Setup, Setup], tmp_path: Path, monkeypatch: Patch
) -> None:
    known, others = (scores_of("occlusion", half, tmp_path / "results") for half in halves)
    held = asked(known, others, halves, tmp_path, monkeypatch)
    assert held.keeps and held.gains and held.p_lower > 0.01


def test_scores_that_were_carried_along_fall_behind(
    halves: tuple[Setup, Setup], tmp_path: Path, monkeypatch: Patch
) -> None:
    known, others = (scores_of("leave-one-out", half, tmp_path / "results") for half in halves)
    constant = {name: (tuple(1.0 for _ in lists[0]),) for name, lists in others.items()}
    held = asked(known, constant, halves, tmp_path, monkeypatch)
    assert not held.keeps and not held.gains
