"""A submission beside the board's explainers, in markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.submission_ci import preview_command, scope_command
from faithbench.core.errors import FaithbenchError
from faithbench.submissions.review import touched
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]
PLACE = "sst2-bundled/tiny-000000"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    store(Path("board") / PLACE, "lime-11111111", {"aopc": UP})
    store(Path("board") / PLACE, "other-11111111", {"aopc": UP}, task={"split": "dev"})
    submitted = Path("submissions/my-x/records") / PLACE
    store(submitted, "mine-22222222", {"aopc": [v + 0.1 for v in UP]})
    store(Path("submissions/theirs/records") / PLACE, "theirs-3333333", {"aopc": UP})
    (tmp_path / "submissions" / "new").mkdir()
    return tmp_path


def test_a_submission_has_an_arrow_among_the_others(place: Path, capsys) -> None:
    preview_command(["submissions/my-x", "submissions/new"], Path("submissions"), Path("board"))
    lines = capsys.readouterr().out.splitlines()
    assert "Submitted: my-x." in lines[2]
    first = [line.split(" | ")[0] for line in lines if line.startswith("| ")]
    assert first[0] == "| explainer" and sorted(first[2:]) == ["| lime", "| theirs", "| → my-x"]
    mine = next(line for line in lines if "→" in line)
    assert ".507" in mine  # the mean of what was stored
    assert lines[-1] == "new has no record yet: it is measured once it is merged."
    assert not [line for line in lines if "other" in line]  # another split is another table


def test_names_of_strangers_are_escaped(place: Path, capsys) -> None:
    (place / "submissions" / "my-x").rename(place / "submissions" / "<b>|[a](b)")
    preview_command(["submissions/<b>|[a](b)"], Path("submissions"), Path("board"))
    said = capsys.readouterr().out
    assert r"→ &lt;b&gt;\|\[a\]\(b\)" in said and "<b>" not in said


def test_a_submission_that_is_not_there_is_said(place: Path) -> None:
    with pytest.raises(FaithbenchError, match="no submission gone in submissions"):
        preview_command(["submissions/gone"], Path("submissions"), Path("board"))


def test_submissions_alone_are_named_once_and_in_order() -> None:
    paths = ["submissions/b/entry.toml", "submissions/a/data/x.txt", "submissions/b/explainer.py"]
    assert touched(paths) == ("a", "b")


def test_a_change_of_other_files_is_none_of_its_business() -> None:
    assert touched(["README.md", "submissions/.gitkeep", ""]) == ()


@pytest.mark.parametrize(
    "other",
    [
        "faithbench/metrics.py",
        ".github/workflows/ci.yml",
        "leaderboard/records/x.json",
        "submissions",
        "submissions/.gitkeep",
        "submissions/link-in-the-place-of-a-folder",
        "submissions/a/../../faithbench/metrics.py",
        '"submissions/a/\\303\\244"',
        "Submissions/a/entry.toml",
        "/submissions/a/entry.toml",
    ],
)
def test_both_at_once_are_refused(other: str) -> None:
    with pytest.raises(FaithbenchError, match="touches submissions/a and also") as caught:
        touched(["submissions/a/entry.toml", other])
    assert other[:20] in str(caught.value)


def test_a_folder_that_cannot_be_a_submission_is_refused() -> None:
    with pytest.raises(FaithbenchError, match="is not allowed"):
        touched(["submissions/$(id)/entry.toml"])


def test_removed_submissions_are_left_out_where_asked(tmp_path: Path, capsys) -> None:
    (tmp_path / "a").mkdir()
    paths = ["submissions/a/entry.toml\n", "submissions/gone/entry.toml\n"]
    scope_command(paths, tmp_path, existing=True)
    assert capsys.readouterr().out.split() == [str(tmp_path / "a")]
    scope_command(paths, tmp_path, existing=False)
    assert capsys.readouterr().out.split() == [str(tmp_path / "a"), str(tmp_path / "gone")]
