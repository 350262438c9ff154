"""A new submission is fine as it is: short, checked, and of a shape that explainers have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.registry import plugins_of_file
from faithbench.submissions.check import Checks, check_submission
from faithbench.submissions.scaffold import new_submission
from faithbench.submissions.score_files import read_scores
from faithbench.testing import conformance
from faithbench.testing.conformance import check_file


@pytest.mark.parametrize("kind", ["plugin", "attributions"])
def test_a_new_submission_passes_its_check(tmp_path: Path, kind: str) -> None:
    folder = new_submission(tmp_path, "my-x", kind)
    assert check_submission(folder, Checks(None, tmp_path)).faults == ()


def test_its_explainer_is_short_and_conforms(tmp_path: Path) -> None:
    path = new_submission(tmp_path, "my-x", "plugin") / "explainer.py"
    assert len(path.read_text().splitlines()) < 25
    (plugin,) = plugins_of_file(path)
    assert plugin.name == "my-x"
    check_file(path, ["bert"])


def test_its_test_checks_its_explainer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    checked = []
    monkeypatch.setattr(conformance, "check_file", checked.append)
    path = folder / "test_explainer.py"
    scope: dict[str, Any] = {"__file__": str(path)}
    exec(path.read_text(), scope)
    scope["test_conformance"]()
    assert checked == [folder / "explainer.py"]


def test_its_attributions_are_the_lengths_of_words(tmp_path: Path) -> None:
    path = new_submission(tmp_path, "my-w", "attributions") / "scores" / "sst2.jsonl"
    scores = read_scores(path)
    assert len(scores) == 140
    assert all(score == int(score) > 0 for own in scores.values() for score in own)


def test_its_attributions_are_of_the_boards_examples(tmp_path: Path) -> None:
    own = ("bundled-sst2-007", "bundled-sst2-002")
    folder = new_submission(tmp_path, "my-w", "attributions", own)
    assert set(read_scores(folder / "scores" / "sst2.jsonl")) == set(own)


def test_what_is_there_is_never_overwritten(tmp_path: Path) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    (folder / "explainer.py").write_text("mine")
    with pytest.raises(FaithbenchError, match="exists already"):
        new_submission(tmp_path, "my-x", "plugin")
    assert (folder / "explainer.py").read_text() == "mine"


@pytest.mark.parametrize("name", ["../x", "/tmp/x", "random", "con"])
def test_a_name_that_leaves_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(FaithbenchError, match="submission name"):
        new_submission(tmp_path / "root", name, "plugin")
    assert not (tmp_path / "root").exists()


def test_an_unknown_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="did you mean 'plugin'"):
        new_submission(tmp_path, "my-x", "plugins")
