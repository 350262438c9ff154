"""The commands of `faithbench submission` that measure nothing."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from faithbench.cli.submission.commands import check_submissions, preview_submissions, print_scope
from faithbench.core.errors import FaithbenchError
from faithbench.submissions.scaffold import new_submission
from tests.support.commands import Call, Said, complaint
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]
FOLDER = "sst2-bundled/tiny-000000"


def test_new_writes_a_folder_and_says_what_to_do_next(call: Call) -> None:
    assert call("submission", "new", "my-x") == Said(
        0,
        "written: submissions/my-x\n"
        "test it:     python -m pytest submissions/my-x\n"
        "measure it:  faithbench submission run submissions/my-x --task sst2\n"
        "check it:    faithbench submission check submissions/my-x\n",
        "",
    )
    said = call("submission", "new", "my-w", "--kind", "attributions")
    assert "test it" not in said.out and "faithbench submission score submissions/my-w" in said.out
    assert "my-w" in complaint(call("submission", "new", "my-w"))


def test_faults_are_lines_and_the_check_fails(tmp_path: Path, capsys) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    (folder / "test_explainer.py").unlink()
    with pytest.raises(FaithbenchError, match="1 of 1 submissions have faults"):
        check_submissions(folders=["all"], root=tmp_path, no_model=True)
    assert capsys.readouterr().out.splitlines() == [
        "my-x: test_explainer.py: file: is missing; `faithbench submission new` writes one",
        "not checked: what needs the model (--no-model)",
        "not checked: whether the examples are the board's (--records)",
    ]


def test_preview_prints_markdown_of_the_submission(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    board, root = tmp_path / "board", tmp_path / "submissions"
    store(board / FOLDER, "lime-11111111", {"aopc": UP})
    store(root / "my-x" / "records" / FOLDER, "mine-22222222", {"aopc": UP})
    preview_submissions([str(root / "my-x")], records=board, root=root)
    assert "| → my-x |" in capsys.readouterr().out
    with pytest.raises(FaithbenchError, match="no submission gone in "):
        preview_submissions([str(root / "gone")], records=board, root=root)


def test_scope_leaves_removed_submissions_out_where_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    lines = [f":000000 100644 0 1 A\0submissions/{name}/entry.toml\0" for name in ("a", "gone")]
    given = "".join(lines).encode()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    print_scope(existing=True, root=tmp_path)
    assert capsys.readouterr().out.split() == [str(tmp_path / "a")]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(given)))
    print_scope(root=tmp_path)
    assert capsys.readouterr().out.split() == [str(tmp_path / "a"), str(tmp_path / "gone")]
