"""Which submissions need measuring: those whose files, examples or weights have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.submissions import status
from faithbench.submissions.scaffold import new_submission
from faithbench.submissions.status import NeededRecord, needed_records
from tests.support.submissions import Copy, N, change_record, record_of


def current(folder: Path, limit: int | None = N) -> list[bool]:
    return [needed.current for needed in needed_records(folder, "sst2", limit)]


def test_a_record_of_these_very_files_is_not_made_again(
    scored: Path, measured_under_seeds: Path
) -> None:
    assert [*needed_records(scored, "imdb", None)] == [
        NeededRecord(scored, "attributions", "sst2", current=True)  # on their own task
    ]
    assert [*needed_records(measured_under_seeds, "sst2", N)] == [
        NeededRecord(measured_under_seeds, "plugin", "sst2", current=True)
    ]


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


@pytest.mark.parametrize("change", [{"split": "dev"}, {"source": "hub"}, {"name": "agnews"}])
def test_a_record_of_other_data_does_not_count(copy: Copy, change: dict[str, str]) -> None:
    folder = copy()
    change_record(folder, lambda record: record["task"].update(change))
    assert current(folder) == [False]


def test_an_unreadable_record_is_measured_again(copy: Copy) -> None:
    folder = copy()
    record_of(folder).write_text("{")
    assert current(folder) == [False]


def test_other_weights_are_measured_again(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status, "sha256_of_weights", lambda _: "0" * 64)
    assert current(scored) == [False]


def test_a_plugin_without_a_record_needs_one(tmp_path: Path) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    assert [*needed_records(folder, "sst2", N)] == [NeededRecord(folder, "plugin", "sst2", False)]


def test_attributions_of_other_sources_are_left_alone(tmp_path: Path) -> None:
    folder = new_submission(tmp_path, "my-w", "attributions")
    entry = folder / "entry.toml"
    entry.write_text(entry.read_text().replace('source = "bundled"', 'source = "folder"'))
    assert [*needed_records(folder, "sst2", N)] == []


def test_a_stray_file_is_refused(tmp_path: Path) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    (folder / "x.pkl").write_text("")
    with pytest.raises(FaithbenchError, match="does not belong there"):
        next(needed_records(folder, "sst2", N))
