"""Held-out sentences, asked of submitted explainers: a line each, and who passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.submission import held_out as asking
from faithbench.cli.submission.held_out import ask_held_out, in_words
from faithbench.core.errors import FaithbenchError
from faithbench.submissions.held_out import Held
from faithbench.submissions.scaffold import new_submission

HONEST = Held(0.4, 0.25, p_lower=0.4, p_gain=1e-9)
MEMORISED = Held(0.6, 0.05, p_lower=3e-7, p_gain=1e-3)
NO_BETTER = Held(0.01, -0.02, p_lower=0.3, p_gain=0.7)


def test_both_gains_and_the_verdict_in_a_line() -> None:
    assert in_words(HONEST) == "gain +0.400 in its record, +0.250 held out: passes"
    assert in_words(MEMORISED) == (
        "gain +0.600 in its record, +0.050 held out: falls behind on held-out sentences (p 3e-07)"
    )
    assert in_words(NO_BETTER).endswith("-0.020 held out: no gain on held-out sentences (p 0.70)")


def test_each_submission_is_asked_and_a_failing_one_does_not_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = {"a-honest": HONEST, "b-memory": MEMORISED, "d-chance": NO_BETTER}
    for name in (*answers, "c-bare"):
        new_submission(tmp_path, name, "plugin")
    new_submission(tmp_path, "e-scores", "attributions")

    def ask(_: object, folder: Path, trial: str, *rest: object) -> Held:
        assert trial == "a trial"
        if folder.name not in answers:
            raise FaithbenchError("has no record")
        return answers[folder.name]

    monkeypatch.setattr(asking, "check_ready", lambda *_: None)
    monkeypatch.setattr(asking, "draw_trial", lambda *_: "a trial")
    monkeypatch.setattr(asking, "ask", ask)
    with pytest.raises(FaithbenchError, match="3 of 4 submissions did not pass; see above"):
        ask_held_out(["all"], root=tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "a-honest",
        "b-memory",
        "failed",
        "d-chance",
    ]
    assert lines[2] == "failed: submission c-bare has no record"
    ask_held_out([str(tmp_path / "a-honest")], root=tmp_path)
    assert capsys.readouterr().out == f"a-honest: {in_words(HONEST)}\n"


def test_what_cannot_be_asked_is_said_before_others_are_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw_trial(*_: object) -> None:
        raise AssertionError("nothing is measured")

    monkeypatch.setattr(asking, "draw_trial", draw_trial)
    bare = new_submission(tmp_path, "a-bare", "plugin")
    with pytest.raises(FaithbenchError, match="2 of 2 submissions did not pass"):
        ask_held_out([str(bare), str(tmp_path / "nowhere")], root=tmp_path)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith("failed: submission a-bare has no record of this explainer.py")
    assert " is not a folder; give the folder that has its entry.toml" in second
