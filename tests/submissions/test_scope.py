"""Whether a change may be taken as a submission."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.errors import FaithbenchError
from faithbench.submissions.scope import touched
from faithbench.submissions.upkeep import scope_command


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
    with pytest.raises(FaithbenchError, match="is not one"):
        touched(["submissions/$(id)/entry.toml"])


def test_removed_submissions_are_left_out_where_asked(tmp_path: Path, capsys) -> None:
    (tmp_path / "a").mkdir()
    paths = ["submissions/a/entry.toml\n", "submissions/gone/entry.toml\n"]
    scope_command(paths, tmp_path, existing=True)
    assert capsys.readouterr().out.split() == [str(tmp_path / "a")]
    scope_command(paths, tmp_path, existing=False)
    assert capsys.readouterr().out.split() == [str(tmp_path / "a"), str(tmp_path / "gone")]
