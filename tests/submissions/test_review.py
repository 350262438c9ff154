"""Review of a change: the submissions it touches, and their rows in the board's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.submissions.review import preview, touched
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]
RECORDS = "sst2-bundled/tiny-000000"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a board of one explainer, two submissions, and one without a record."""
    monkeypatch.chdir(tmp_path)
    store(Path("board") / RECORDS, "lime-11111111", {"aopc": UP})
    store(Path("board") / RECORDS, "other-11111111", {"aopc": UP}, task={"split": "dev"})
    submitted = Path("submissions/my-x/records") / RECORDS
    store(submitted, "mine-22222222", {"aopc": [v + 0.1 for v in UP]})
    store(Path("submissions/theirs/records") / RECORDS, "theirs-3333333", {"aopc": UP})
    (tmp_path / "submissions" / "new").mkdir()
    return tmp_path


def test_a_submission_has_an_arrow_among_the_others(folder: Path) -> None:
    lines = preview(["my-x", "new"], Path("board"), Path("submissions")).splitlines()
    assert "Submitted: my-x." in lines[2]
    names = [line.split(" | ")[1] for line in lines if line.startswith("| ")]
    assert names[0] == "explainer" and sorted(names[2:]) == ["lime", "theirs", "→ my-x"]
    mine = next(line for line in lines if "→" in line)
    assert ".507" in mine  # the mean of what was stored
    assert lines[-1] == "new has no record yet: it is measured once it is merged."
    assert not [line for line in lines if "other" in line]  # another split is another table


def test_untrusted_names_are_escaped(folder: Path) -> None:
    (folder / "submissions" / "my-x").rename(folder / "submissions" / "<b>|[a](b)")
    text = preview(["<b>|[a](b)"], Path("board"), Path("submissions"))
    assert r"→ &lt;b&gt;\|\[a\]\(b\)" in text and "<b>" not in text


def test_submissions_alone_are_named_once_and_in_order() -> None:
    paths = ["submissions/b/entry.toml", "submissions/a/data/x.txt", "submissions/b/explainer.py"]
    assert touched(paths) == ("a", "b")


def test_a_change_of_other_files_touches_no_submission() -> None:
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
