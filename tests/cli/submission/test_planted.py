"""Planted words, asked of submitted explainers: the real worker, and what passes."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.submission import planted
from faithbench.cli.submission.planted import (
    is_better_than_chance,
    plant_words,
    planted_setup,
    words_found,
)
from faithbench.core.errors import FaithbenchError
from faithbench.submissions.scaffold import new_submission


def test_what_knows_the_word_passes_and_a_constant_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted, "STEPS", 1)
    bodies = {
        "a-oracle": "[float(t in ('good', 'bad')) for t in example.tokens]",
        "b-constant": "[1.0] * len(example.tokens)",
    }
    for name, body in bodies.items():
        path = new_submission(tmp_path, name, "plugin") / "explainer.py"
        head, _, _ = path.read_text().partition("        n = len")
        path.write_text(f"{head}        return {body}\n")
    new_submission(tmp_path, "c-scores", "attributions")
    with pytest.raises(FaithbenchError, match="1 of 2 submissions did not pass; see above"):
        plant_words(["all"], texts=20, seed=7, root=tmp_path)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "20 new texts (--seed 7); by chance: 8.4%"
    assert "a-oracle: planted word first on 100%, passes" in lines
    assert "b-constant: planted word first on 0%, not better than chance" in lines
    assert not list(tmp_path.glob("*/records")), "a trial leaves no record"


def test_words_are_counted_at_the_models_own_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planted, "STEPS", 1)
    setup = planted_setup(tmp_path, 20, 3)
    words = {e.example.id: e.example.text.split() for e in setup.encodings}
    right = {key: tuple(float(w in ("good", "bad")) for w in own) for key, own in words.items()}
    assert words_found(setup, right) == 20
    assert words_found(setup, {key: tuple(-s for s in own) for key, own in right.items()}) == 0


def test_a_share_must_be_more_than_chance() -> None:
    assert not is_better_than_chance(15, 100, 0.087)  # p = .026
    assert is_better_than_chance(17, 100, 0.087)  # p = .006
