"""Review of a change: the submissions it touches, and their rows in the board's tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.options import PASSED
from faithbench.core.errors import FaithbenchError
from faithbench.records.passed import PassedCheck, content_digest, write_passed
from faithbench.submissions.review import changed_paths, preview, touched
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
    theirs = Path("submissions/theirs")
    check = PassedCheck(
        content=content_digest(theirs), records=(f"records/{RECORDS}/theirs-3333333.json",)
    )
    write_passed(PASSED, {"theirs": check})
    return tmp_path


def test_a_submission_has_an_arrow_among_the_others(folder: Path) -> None:
    lines = preview(["my-x", "new"], Path("board"), Path("submissions"), PASSED).splitlines()
    assert "Submitted: my-x." in lines[2]
    names = [line.split(" | ")[1] for line in lines if line.startswith("| ")]
    assert names[0] == "explainer" and sorted(names[2:]) == ["lime", "theirs", "→ my-x"]
    mine = next(line for line in lines if "→" in line)
    assert ".507" in mine  # the mean of what was stored
    assert lines[-1] == "new has no record yet: it is measured once it is merged."
    assert not [line for line in lines if "other" in line]  # another split is another table


def test_a_record_of_other_examples_has_no_table_of_its_own(folder: Path) -> None:
    store(Path("submissions/new/records") / RECORDS, "new-44444444", {"aopc": UP[:3]})
    text = preview(["new"], Path("board"), Path("submissions"), PASSED)
    assert text.startswith(rf"submissions/new/records/{RECORDS}/new-44444444.json: left out, the ")
    assert "table has 7 examples: 4 are missing \\(e3, e4, e5, and 1 more\\)" in text
    assert "###" not in text and "no record yet" not in text


def test_untrusted_names_are_escaped(folder: Path) -> None:
    (folder / "submissions" / "my-x").rename(folder / "submissions" / "<b>|[a](b)")
    text = preview(["<b>|[a](b)"], Path("board"), Path("submissions"), PASSED)
    assert r"→ &lt;b&gt;\|\[a\]\(b\)" in text and "<b>" not in text


def test_submissions_alone_are_named_once_and_in_order() -> None:
    paths = ["submissions/b/entry.toml", "submissions/a/data/x.txt", "submissions/b/explainer.py"]
    assert touched(paths) == ("a", "b")


def test_a_change_of_other_files_touches_no_submission() -> None:
    assert touched(["README.md", "submissions/.gitkeep"]) == ()


@pytest.mark.parametrize(
    "other",
    [
        "faithbench/metrics.py",
        ".github/workflows/ci.yml",
        "leaderboard/records/x.json",
        "leaderboard/passed.json",
        "submissions/.gitkeep",
        "/submissions/a/entry.toml",
    ],
)
def test_both_at_once_are_refused(other: str) -> None:
    with pytest.raises(FaithbenchError, match="touches submissions/a and also") as caught:
        touched(["submissions/a/entry.toml", other])
    assert other[:20] in str(caught.value)


@pytest.mark.parametrize(
    "stray",
    [
        "submissions",
        "submissions/link-in-the-place-of-a-folder",
        "submissions/x.json",
        "submissions/a/evil.py",
        "submissions/a/records/x.json",
        "submissions/a/../../faithbench/metrics.py",
        "submissions/a/b/.gitkeep",
        "Submissions/a/entry.toml",
    ],
)
def test_what_belongs_to_no_submission_is_refused_even_alone(stray: str) -> None:
    with pytest.raises(FaithbenchError, match="is no file of a submission; put the submission's"):
        touched([stray])


def listing(path: bytes, mode: str = "100644") -> bytes:
    return f":000000 {mode} 0000000 1234567 A".encode() + b"\0" + path + b"\0"


def test_paths_are_read_without_quotes() -> None:
    removed = b":100644 000000 1234567 0000000 D\0submissions/b/entry.toml\0"
    assert changed_paths(listing(b"submissions/a/data/x y.txt") + removed) == [
        "submissions/a/data/x y.txt",
        "submissions/b/entry.toml",
    ]
    assert changed_paths(b"") == []


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (listing("submissions/é/entry.toml".encode()), "is not plain ASCII; rename the file"),
        (listing(b"submissions/\xff/entry.toml"), "is not plain ASCII"),
        (listing(b'submissions/"a"/entry.toml'), "is not plain ASCII"),
        (listing(b"submissions/a\n/entry.toml"), "is not plain ASCII"),
        (listing(b"submissions/a\\/entry.toml"), "is not plain ASCII"),
        (listing(b"submissions/a", mode="120000"), "is a link or a module; replace it by a plain"),
        (listing(b"submissions/a", mode="160000"), "is a link or a module"),
        (b"submissions/a/entry.toml\n", "is not what `git diff --raw -z --no-renames` prints"),
        (b"submissions/a/entry.toml\0submissions/b\0", "not a line of `git diff --raw -z"),
    ],
)
def test_what_is_not_understood_is_refused(given: bytes, message: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        changed_paths(given)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_folder_that_cannot_be_a_submission_is_refused() -> None:
    with pytest.raises(FaithbenchError, match="is not allowed"):
        touched(["submissions/$(id)/entry.toml"])
