"""Reading data from a folder, the hub and the package, and why one of them is not taken."""

from __future__ import annotations

import gzip
import hashlib
import warnings
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.data import dataset as data
from faithbench.data import hub_rows as hub_data
from faithbench.data.dataset import Dataset, load_dataset, sources
from faithbench.data.tasks import load_task
from tests.support.builders import REVISION, ROWS, complaint, make_task, put


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No data folder, no hub and no cache, whatever the machine has."""
    monkeypatch.delenv("FAITHBENCH_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "cache"))


def test_a_folder_read_row_by_row(tmp_path: Path) -> None:
    path = put(tmp_path, ROWS, packed=True)
    found = load_dataset(make_task(), folder=tmp_path)
    assert found.examples == (
        Example("a", "good film", 1, rationale=((0, 4),)),
        Example("b", "dull film", 0),
        Example("c", "fine, warm film", 1, rationale=((0, 4), (6, 10))),
    )
    assert (found.source, found.split, found.rationale) == ("folder", "test", "proxy")
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.checked is False  # nothing is pinned


def test_plain_file_and_other_split(tmp_path: Path) -> None:
    put(tmp_path, ROWS[:1], stem="learn")
    found = load_dataset(make_task(), split="train", folder=tmp_path, source="folder")
    assert [example.id for example in found.examples] == ["a"]


def test_unreadable_and_empty_files(tmp_path: Path) -> None:
    path = put(tmp_path, ROWS, packed=True)
    path.write_bytes(path.read_bytes()[:-9])
    assert f"cannot read {path} as JSON lines" in complaint(make_task(), folder=tmp_path)
    path.write_bytes(gzip.compress(b""))
    assert "split 'test' of mini from folder holds no rows" in complaint(
        make_task(), folder=tmp_path
    )


def test_checksums(tmp_path: Path) -> None:
    path = put(tmp_path, ROWS, packed=True)
    good = hashlib.sha256(path.read_bytes()).hexdigest()
    pinned = {"name": "mini", "splits": {"test": "test"}, "sha256": {"test": good}}
    assert load_dataset(make_task(folder=pinned), folder=tmp_path).checked is True
    put(tmp_path, ROWS[:2], packed=True)
    bad = hashlib.sha256(path.read_bytes()).hexdigest()
    said = complaint(make_task(folder=pinned), folder=tmp_path)
    for part in (str(path), f"expected sha256 {good}", f"found {bad}", "--allow-changed-data"):
        assert part in said
    changed = load_dataset(make_task(folder=pinned), folder=tmp_path, allow_changed=True)
    assert (changed.checked, changed.sha256, len(changed.examples)) == (False, bad, 2)


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
    monkeypatch.setattr(data, "hub_reachable", lambda: True)
    assert sources(make_task(), None)["hub"] == "yes"
    assert sources(make_task(), None)["folder"].startswith("no data folder")


def hub_table(monkeypatch: pytest.MonkeyPatch, names: list[str] | None = None) -> list[Any]:
    """Put a small table in the place of the hub, and return the list of calls made to it."""
    import datasets

    monkeypatch.setattr(data, "hub_reachable", lambda: True)
    # Else it would switch the libraries offline for every test that follows.
    monkeypatch.setattr(hub_data, "prepare_offline", lambda: None)
    monkeypatch.setattr(hub_data, "hub_reachable", lambda: True)
    table = datasets.Dataset.from_dict(
        {"idx": [5, 9], "sentence": ["dull film ", "good film "], "label": [0, 1]}
    )
    if names:
        table = table.cast_column("label", datasets.ClassLabel(names=names))
    calls: list[Any] = []

    def load(*args: Any, **kwargs: Any) -> Any:
        calls.append((args, kwargs))
        return table

    monkeypatch.setattr(datasets, "load_dataset", load)
    return calls


@pytest.mark.parametrize(
    ("names", "labels"),
    [(None, [0, 1]), (["no", "yes"], [0, 1]), (["yes", "no"], [1, 0]), (["-", "+"], [0, 1])],
)
def test_the_hub_read_under_our_names(
    monkeypatch: pytest.MonkeyPatch, names: list[str] | None, labels: list[int]
) -> None:
    calls = hub_table(monkeypatch, names)
    found = load_dataset(make_task())
    assert calls == [(("owner/mini", None), {"split": "validation", "revision": REVISION})]
    assert [example.id for example in found.examples] == ["mini-test-5", "mini-test-9"]
    assert [example.label for example in found.examples] == labels
    assert (found.source, found.rationale, found.checked) == ("hub", "none", True)


def test_the_hub_s_digest_is_that_of_canonical_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    hub_table(monkeypatch)
    rows = (
        '{"id": "mini-test-5", "label": 0, "text": "dull film "}\n'
        '{"id": "mini-test-9", "label": 1, "text": "good film "}\n'
    )
    expected = hashlib.sha256(rows.encode()).hexdigest()
    assert load_dataset(make_task()).sha256 == expected
    assert load_dataset(make_task(), limit=1).sha256 == expected


def test_the_hub_s_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    hub_table(monkeypatch)
    assert "owner/mini, row 1: field 'label': expected 0 to 0" in complaint(
        make_task(kind="qa", labels=["one"], hub=hub_with(text_b="sentence"))
    )
    said = complaint(make_task(hub=hub_with(text="body")))
    assert "owner/mini has no column 'body', it has idx, sentence, label" in said
    assert "hub: no split 'train', it has test" in complaint(
        make_task(), source="hub", split="train"
    )

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise ConnectionError("cut\noff")

    monkeypatch.setattr(datasets, "load_dataset", fail)
    said = complaint(make_task())
    assert "cannot load owner/mini at 01234567 from the hub (ConnectionError: cut off)" in said
    assert "use another source: folder" in said


def test_a_hub_that_fails_gives_way_to_the_bundled_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise FaithbenchError("cannot load glue")

    monkeypatch.setattr(data, "hub_reachable", lambda: True)
    monkeypatch.setattr(data, "hub_rows", fail)
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


def hub_with(**columns: str) -> dict[str, Any]:
    source = make_task().hub
    assert source is not None
    return source.model_dump() | {"columns": {**source.columns, **columns}}


def test_the_bundled_sentences() -> None:
    found: Dataset = load_dataset(load_task("sst2"), source="bundled")
    labels = [example.label for example in found.examples]
    assert len(labels) >= 120
    assert abs(labels.count(0) - labels.count(1)) <= 0.1 * len(labels)
    assert all(example.rationale for example in found.examples)
    assert all(example.id.startswith("bundled-sst2-") for example in found.examples)
    assert (found.source, found.rationale, found.checked) == ("bundled", "human", True)
