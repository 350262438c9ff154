"""Reading data from a folder, the hub and the package, and why one of them is not taken."""

from __future__ import annotations

import gzip
import hashlib
import warnings
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset, sources
from faithbench.data.sources import hub
from faithbench.data.tasks import load_task
from tests.support.builders import ROWS, complaint, make_task, put

pytestmark = pytest.mark.usefixtures("alone")


def test_unreadable_and_empty_files(tmp_path: Path) -> None:
    path = put(tmp_path, ROWS, packed=True)
    path.write_bytes(path.read_bytes()[:-9])
    assert f"cannot read {path} as JSON lines" in complaint(make_task(), folder=tmp_path)
    path.write_bytes(gzip.compress(b""))
    assert "split 'test' of mini from folder holds no rows" in complaint(
        make_task(), folder=tmp_path
    )


def test_limit_takes_by_digest_keeps_order_and_nests(tmp_path: Path) -> None:
    put(tmp_path, [{"id": f"r{n}", "text": "t", "label": n % 2} for n in range(100)])
    ids = [f"r{n}" for n in range(100)]
    ranked = sorted(ids, key=lambda name: hashlib.sha256(f"limit:{name}".encode()).hexdigest())

    def taken(limit: int) -> list[str]:
        found = load_dataset(make_task(), folder=tmp_path, limit=limit)
        return [example.id for example in found.examples]

    assert taken(10) == sorted(ranked[:10], key=ids.index)
    assert set(taken(10)) < set(taken(30))
    assert taken(1000) == ids
    assert "limit of 0 examples" in complaint(make_task(), folder=tmp_path, limit=0)


def test_sources_asked_by_name_say_why_not(tmp_path: Path) -> None:
    task = make_task()
    said = complaint(task, source="hub")
    assert "the hub is not reachable and owner/mini is not in the local cache" in said
    assert "other sources of this task: folder" in said
    assert "no data folder, give --data or set FAITHBENCH_DATA" in complaint(task, source="folder")
    assert "the task has no bundled source" in complaint(task, source="bundled")
    assert "no data source named 'hubb'; did you mean 'hub'?" in complaint(task, source="hubb")
    assert "folder: no split 'dev', it has test, train" in complaint(
        task, source="folder", split="dev", folder=tmp_path
    )
    said = complaint(task)
    assert "folder: " in said and "hub: " in said
    assert "bundled" not in said, "what the task does not have is no reason"


def test_a_folder_that_is_given_is_never_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = load_task("sst2")
    said = complaint(task, folder=tmp_path)
    assert f"no file {tmp_path / 'sst2' / 'test.jsonl.gz'}" in said
    assert "other sources of this task: hub, bundled" in said
    # The environment only offers a folder: what it lacks may come from elsewhere.
    monkeypatch.setenv("FAITHBENCH_DATA", str(tmp_path))
    assert load_dataset(task, limit=1).source == "bundled"
    put(tmp_path, ROWS)
    assert load_dataset(make_task()).source == "folder"


def test_sources_for_the_doctor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, ROWS)
    assert sources(make_task(), tmp_path) == {
        "folder": "yes",
        "hub": "the hub is not reachable and owner/mini is not in the local cache",
        "bundled": "the task has no bundled source",
    }
    monkeypatch.setattr(hub, "hub_reachable", lambda: True)
    assert sources(make_task(), None)["hub"] == "yes"
    assert sources(make_task(), None)["folder"].startswith("no data folder")


def test_a_hub_that_fails_gives_way_to_the_bundled_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise FaithbenchError("cannot load glue")

    monkeypatch.setattr(hub, "hub_reachable", lambda: True)
    monkeypatch.setattr(hub, "_load", fail)
    task = load_task("sst2")
    with pytest.warns(UserWarning) as caught:
        found = load_dataset(task, limit=3)
    assert [str(warning.message) for warning in caught] == [
        "task sst2 takes its bundled data, as the hub failed: cannot load glue"
    ]
    assert caught[0].filename == __file__, "the warning points at the caller"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert found == load_dataset(task, source="bundled", limit=3)
        assert complaint(task, source="hub") == "cannot load glue"
        assert complaint(make_task()) == "cannot load glue", "nothing is bundled"
        assert complaint(task, split="train") == "cannot load glue", "nor is this split"
        assert "no file" in complaint(task, folder=tmp_path), "a folder given is not passed over"
