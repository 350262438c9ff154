"""Which submissions need measuring: those whose files, examples or weights have changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.records.passed import PassedCheck, content_digest
from faithbench.submissions import status
from faithbench.submissions.check import Checks
from faithbench.submissions.scaffold import new_submission
from faithbench.submissions.status import NeededRecord, needed_records, passed_check
from tests.support.submissions import Copy, N, change_record, record_of


def passed(folder: Path) -> dict[str, PassedCheck]:
    """Record what lies in a folder as measured here."""
    paths = [path.relative_to(folder).as_posix() for path in folder.glob("records/*/*/*.json")]
    return {folder.name: PassedCheck(content=content_digest(folder), records=tuple(paths))}


def current(folder: Path, limit: int | None = N) -> list[bool]:
    needed = needed_records(folder, "sst2", limit, None, passed(folder))
    return [record.current for record in needed]


def test_a_record_of_these_very_files_is_not_made_again(
    scored: Path, measured_under_seeds: Path
) -> None:
    assert [*needed_records(scored, "imdb", None, None, passed(scored))] == [
        NeededRecord(scored, "attributions", "sst2", "bundled", "test", None, N, current=True)
    ]  # on their own task
    known = passed(measured_under_seeds)
    assert [*needed_records(measured_under_seeds, "sst2", N, None, known)] == [
        NeededRecord(
            measured_under_seeds, "plugin", "sst2", "bundled", "test", None, N, current=True
        )
    ]


def test_what_was_not_measured_here_is_measured_again(copy: Copy) -> None:
    folder = copy()
    (needed,) = needed_records(folder, "sst2", N, None, {})
    assert not needed.current
    known = passed(folder)
    (folder / "README.md").write_text("changed since\n")
    (needed,) = needed_records(folder, "sst2", N, None, known)
    assert not needed.current


def test_other_records_that_came_along_are_measured_again_too(
    measured_under_seeds: Path, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(measured_under_seeds, tmp_path / "my-x"))
    needed = [*needed_records(folder, "imdb", 2, None, {})]
    assert [(record.task, record.source, record.limit) for record in needed] == [
        ("imdb", "bundled", 2),
        ("sst2", "bundled", N),
    ]
    change_record(folder, lambda record: record["task"].update(source="folder"))
    assert [record.task for record in needed_records(folder, "imdb", 2, None, {})] == ["imdb"]


def test_other_scores_or_examples_are_measured_again(copy: Copy) -> None:
    folder = copy()
    path = folder / "scores" / "sst2.jsonl"
    before = path.read_text()
    path.write_text(before.replace("1.0", "1.5", 1))
    assert current(folder) == [False]
    path.write_text("".join(before.splitlines(keepends=True)[:-1]))
    assert current(folder) == [False]
    path.write_text(before)
    assert current(folder) == [True]


def test_another_limit_is_measured_again_for_plugins(measured_under_seeds: Path) -> None:
    assert current(measured_under_seeds, N - 1) == [False]


def test_only_what_passes_its_check_is_recorded(copy: Copy, checks: Checks) -> None:
    folder = copy()
    path = record_of(folder).relative_to(folder).as_posix()
    check = passed_check(folder, [path, "records/a/b/gone.json"], checks)
    assert check == PassedCheck(content=content_digest(folder), records=(path,))
    change_record(folder, lambda record: record["task"].update(n=9))
    with pytest.raises(FaithbenchError, match=r"measured, but its check fails: .* found 9"):
        passed_check(folder, [path], checks)


@pytest.mark.parametrize("change", [{"split": "dev"}, {"source": "hub"}, {"name": "agnews"}])
def test_a_record_of_other_data_does_not_count(copy: Copy, change: dict[str, str]) -> None:
    folder = copy()
    change_record(folder, lambda record: record["task"].update(change))
    assert current(folder) == [False]


def test_an_unreadable_record_is_measured_again(copy: Copy) -> None:
    folder = copy()
    record_of(folder).write_text("{")
    assert current(folder) == [False]


def test_another_model_is_measured_again(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "sha256_of_model", lambda _: "0" * 64)
    assert current(scored) == [False]


def test_a_plugin_without_a_record_needs_one(tmp_path: Path) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    assert [*needed_records(folder, "sst2", N, None, {})] == [
        NeededRecord(folder, "plugin", "sst2", "bundled", "test", None, N, current=False)
    ]


def test_attributions_of_other_sources_are_left_alone(tmp_path: Path) -> None:
    folder = new_submission(tmp_path, "my-w", "attributions")
    entry = folder / "entry.toml"
    entry.write_text(entry.read_text().replace('source = "bundled"', 'source = "folder"'))
    assert [*needed_records(folder, "sst2", N, None, {})] == []


def test_a_stray_file_is_refused(tmp_path: Path) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    (folder / "x.pkl").write_text("")
    with pytest.raises(FaithbenchError, match="does not belong there"):
        next(needed_records(folder, "sst2", N, None, {}))
