"""Published records: all values, a few attributions, packed, and the same bytes each time."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from faithbench.cli.compare import compare as compare_command
from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.publish import kept_ids, publish_results
from faithbench.records.record import read, write
from faithbench.records.rows_file import read_rows
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]
CELL = Path("sst2-bundled") / "tiny-000000"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    folder = tmp_path / "results"
    store(folder / CELL, "lime-11111111", {"aopc": UP})
    store(folder / CELL, "random-22222222", {"aopc": UP[::-1]})
    return folder


def test_values_are_kept_and_most_attributions_dropped(results: Path, tmp_path: Path) -> None:
    target = tmp_path / "records"
    published = publish_results(results, target, attributions=3)
    assert published.count == 2 and len(published.changed) == 4
    path = target / CELL / "lime-11111111.json"
    record, old = read(path), read(results / CELL / "lime-11111111.json")
    assert record.rows.file == "lime-11111111.rows.jsonl.gz"
    assert record.model_copy(update={"rows": old.rows}) == old
    packed = path.with_name(record.rows.file)
    assert packed.read_bytes()[4:8] == b"\0\0\0\0", "no clock in the file"
    kept = read_rows(packed, record.rows.sha256)
    assert [row.values["aopc"] for row in kept] == UP
    assert {row.id for row in kept if row.tokens} == {"e0", "e3", "e6"}
    assert all(len(row.scores) == len(row.tokens) for row in kept)
    # The board is the same but for the examples to look at.
    before, after = (make_board(folder, ()).tables[0] for folder in (results, target))
    assert before.columns == after.columns and len(after.shown) == 3
    assert {example.id for example in after.shown} == {"e0", "e3", "e6"}


def test_a_second_time_nothing_changes(results: Path, tmp_path: Path) -> None:
    target = tmp_path / "records"
    publish_results(results, target)
    packed = target / CELL / "lime-11111111.rows.jsonl.gz"
    # The same bytes inside, packed by another hand.
    packed.write_bytes(gzip.compress(gzip.decompress(packed.read_bytes()), 1, mtime=5))
    again = publish_results(results, target)
    assert again.changed == (packed.with_name("lime-11111111.json"),), "its digest is another"
    assert publish_results(results, target).changed == ()
    store(results / CELL, "lime-11111111", {"aopc": UP[::-1]})
    assert len(publish_results(results, target).changed) == 2


def test_records_of_an_older_revision_are_removed(results: Path, tmp_path: Path) -> None:
    """Of the same explainer under the same conditions and seeds, and no others."""
    target = tmp_path / "records"
    publish_results(results, target)
    old = target / CELL / "lime-11111111.json"
    new = results / CELL / "lime-33333333.json"
    store(results / CELL, "lime-33333333", {"aopc": UP[::-1]})
    (results / CELL / "lime-11111111.json").unlink()
    revised(new, seeds=(1,))
    assert publish_results(results, target).removed == (), "other seeds are another record"
    revised(new, seeds=(0,))
    removed = publish_results(results, target).removed
    assert removed == (old, old.with_name("lime-11111111.rows.jsonl.gz"))
    assert sorted(path.name for path in (target / CELL).iterdir()) == [
        f"{stem}.{end}"
        for stem in ("lime-33333333", "random-22222222")
        for end in ("json", "rows.jsonl.gz")
    ]
    assert publish_results(results, target).removed == ()


def revised(path: Path, *, seeds: tuple[int, ...]) -> None:
    record = read(path)
    explainer = record.explainer.model_copy(update={"revision": 2})
    write(record.model_copy(update={"explainer": explainer, "seeds": seeds}), path)


def test_ids_are_spread_evenly() -> None:
    assert kept_ids([f"{i:02}" for i in range(10)], 4) == {"00", "03", "06", "09"}
    assert kept_ids(["b", "a"], 40) == {"a", "b"} and kept_ids(["a"], 0) == set()


def test_compare_reads_published_records(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    publish_results(results, tmp_path / "records", attributions=0)
    compare_command(
        explainers=["lime", "random"], task="sst2", results=tmp_path / "records", metric="aopc"
    )
    assert "lime 0.750, random 0.100" in capsys.readouterr().out


def test_a_missing_or_empty_results_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="does not exist; point --results at the folder"):
        publish_results(tmp_path / "none", tmp_path / "records")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FaithbenchError, match=r"no record in .*; run `faithbench run --results"):
        publish_results(tmp_path / "empty", tmp_path / "records")
