"""The leaderboard's commands: what they print, how they fail, what they do not load."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from faithbench.cli.leaderboard import (
    build_leaderboard,
    check_leaderboard,
    publish_records,
    upgrade_leaderboard,
)
from faithbench.core.errors import FaithbenchError
from faithbench.records.passed import (
    PassedCheck,
    accepted_submissions,
    content_digest,
    write_passed,
)
from tests.support.commands import LIGHT, fresh
from tests.support.records import stored_json
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("lime", "random", "deep"):
        store(Path("results") / "sst2-bundled" / "tiny-000000", f"{name}-11111111", {"aopc": UP})
    return tmp_path


def test_publish_build_and_check(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records, submissions, out = (
        Path("leaderboard/records"),
        Path("submissions"),
        Path("leaderboard"),
    )
    publish_records(results=Path("results"), records=records, attributions=2)
    assert capsys.readouterr().out.splitlines()[-1] == (
        "3 records of results in leaderboard/records: 6 changed"
    )
    build_leaderboard(records=records, submissions=submissions, out=out)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "leaderboard/README.md"
    assert lines[-1] == "1 table from 3 records in leaderboard: 10 files changed"
    check_leaderboard(records=records, submissions=submissions, out=out)
    assert capsys.readouterr().out == "1 table from 3 records in leaderboard: up to date\n"
    (out / "index.html").unlink()
    with pytest.raises(FaithbenchError, match="1 files in leaderboard are not what the records"):
        check_leaderboard(records=records, submissions=submissions, out=out)
    assert capsys.readouterr().out == "leaderboard/index.html: missing\n"


def test_records_of_an_older_schema_are_upgraded(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    records, submissions = Path("results"), Path("submissions")
    path = records / "sst2-bundled" / "tiny-000000" / "lime-11111111.json"
    today = path.read_bytes()
    path.write_text(json.dumps(stored_json(path) | {"schema": 2}))
    inside = Path("records") / "sst2-bundled" / "tiny-000000"
    shutil.copytree(path.parent, submissions / "mine" / inside)
    passed = Path("passed.json")
    check = PassedCheck(
        content=content_digest(submissions / "mine"), records=(f"{inside}/{path.name}",)
    )
    write_passed(passed, {"mine": check})
    upgrade_leaderboard(records=records, submissions=submissions, passed=passed)
    name = "sst2-bundled/tiny-000000/lime-11111111.json"
    assert capsys.readouterr().out.splitlines() == [
        f"results/{name}: now {name}",
        f"submissions/mine/records/{name}: now {name}",
        "2 records upgraded",
    ]
    assert path.read_bytes() == (submissions / "mine" / inside / path.name).read_bytes() == today
    assert accepted_submissions(submissions, passed).left_out == ()


@pytest.fixture
def built(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """A board of two tables: three explainers on sst2, and one on imdb."""
    store(Path("results") / "imdb-folder" / "tiny-000000", "lime-22222222", {"aopc": UP},
          task={"name": "imdb", "source": "folder"})  # fmt: skip
    build_leaderboard(records=Path("results"), out=Path("board"))
    capsys.readouterr()
    return Path("board")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("command", [build_leaderboard, check_leaderboard])
def test_a_mistyped_records_folder_is_refused(built: Path, command: Callable[..., None]) -> None:
    before = contents(built)
    with pytest.raises(FaithbenchError, match="no records folder result; check --records"):
        command(records=Path("result"), out=built)
    assert contents(built) == before


def test_vanished_records_are_listed_and_need_yes(
    built: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(built)
    shutil.rmtree("results/imdb-folder")
    with pytest.raises(FaithbenchError) as caught:
        build_leaderboard(records=Path("results"), out=built)
    assert str(caught.value) == (
        "1 record that the board in board was made from cannot be found in results and "
        "submissions; restore them, check --records and --submissions, or build without them "
        "with --yes"
    )
    listed = [
        "records/imdb-folder/tiny-000000/lime-22222222.json: missing",
        "board/tables/imdb.tex: to be removed",
        "board/tasks/imdb.md: to be removed",
    ]
    assert capsys.readouterr().out.splitlines() == listed
    assert contents(built) == before
    with pytest.raises(FaithbenchError) as checked:
        check_leaderboard(records=Path("results"), out=built)
    assert "restore them" in str(checked.value) and "build" not in str(checked.value)
    assert capsys.readouterr().out.splitlines() == listed[:1]
    build_leaderboard(records=Path("results"), out=built, yes=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == listed and lines[-1].startswith("1 table from 3 records in board: ")
    assert not (built / "tasks/imdb.md").exists() and len(set(lines)) == len(lines)
    build_leaderboard(records=Path("results"), out=built)
    assert capsys.readouterr().out == "1 table from 3 records in board: nothing changed\n"


def test_new_and_changed_records_need_no_yes(built: Path) -> None:
    folder = Path("results/sst2-bundled/tiny-000000")
    store(folder, "gradient-44444444", {"aopc": UP})
    for path in folder.glob("lime-11111111*"):
        path.unlink()
    store(folder, "lime-33333333", {"aopc": UP[::-1]})
    build_leaderboard(records=Path("results"), out=built)
    assert b"lime-33333333" in (built / "leaderboard.json").read_bytes()


def test_files_go_only_with_yes_if_the_former_board_cannot_be_read(built: Path) -> None:
    shutil.rmtree("results/imdb-folder")
    (built / "leaderboard.json").write_text("<<<<<<< HEAD")
    with pytest.raises(FaithbenchError, match="2 files would be removed, and board/leaderboard"):
        build_leaderboard(records=Path("results"), out=built)
    assert (built / "tasks/imdb.md").exists()
    with pytest.raises(FaithbenchError, match=r"board/leaderboard\.json would be overwritten"):
        build_leaderboard(records=Path("results"), out=built, yes=True)
    build_leaderboard(records=Path("results"), out=built, yes=True, overwrite=True)
    assert not (built / "tasks/imdb.md").exists()


def test_tables_stay_where_they_were_put(built: Path) -> None:
    assert not (built / "data").exists()
    build_leaderboard(records=Path("results"), out=built, tables="beside")
    page = (built / "index.html").read_bytes()
    assert sorted(path.name for path in (built / "data").iterdir()) == ["imdb.json", "sst2.json"]
    build_leaderboard(records=Path("results"), out=built)
    check_leaderboard(records=Path("results"), out=built)
    assert (built / "index.html").read_bytes() == page
    build_leaderboard(records=Path("results"), out=built, tables="inside")
    assert list((built / "data").iterdir()) == [] and (built / "index.html").read_bytes() != page


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("leaderboard publish --attributions 2", 0),
        ("leaderboard build --records results", 0),
        ("leaderboard check --records results", 1),
        ("leaderboard build", 1),
    ],
)
def test_no_command_loads_torch(folder: Path, words: str, code: int) -> None:
    process = subprocess.run(
        [sys.executable, "-c", LIGHT, *words.split()],
        env=fresh(folder), cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    heavy = process.stdout.splitlines()[-1]
    assert heavy.endswith(f"code: {code}"), process.stderr
    for name in ("torch", "transformers", "datasets", "captum", "peft"):
        assert f"'{name}'" not in heavy
    assert ("Error: " in process.stderr) == bool(code) and "Traceback" not in process.stderr
