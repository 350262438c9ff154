"""Datasets of the hub: its real client, offline, on made caches; and rows of each layout."""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import pytest

from faithbench.data import hub as reachability
from faithbench.data.dataset import load_dataset, sources
from faithbench.data.sources import hub
from faithbench.data.sources.hub import dataset_cached
from tests.support.builders import REVISION, complaint, make_task
from tests.support.tasks import put_hub, use_hub_cache

COMMIT = "8d51e7e4887a4caaa95b3fbebbf53c0490b58bbb"

pytestmark = pytest.mark.usefixtures("alone")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("FAITHBENCH_DATA", raising=False)
    return use_hub_cache(tmp_path, monkeypatch)


def test_a_dataset_by_name_and_revision(cache: Path) -> None:
    task = make_task()
    assert sources(task)["hub"] == (
        "the hub is not reachable and owner/mini is not in the local cache"
    )
    put_hub(task, cache)
    assert sources(task)["hub"] == "yes"
    found = load_dataset(task)
    assert (found.source, found.checked, len(found.examples)) == ("hub", True, 11)
    assert [example.id for example in found.examples[:2]] == ["mini-test-0", "mini-test-1"]
    assert found.examples[0].text == "A good film 0."
    again = load_dataset(task, limit=2)
    assert (len(again.examples), again.sha256) == (2, found.sha256)


def test_another_revision_is_not_taken_for_it(cache: Path) -> None:
    put_hub(make_task(), cache)
    source = make_task().hub
    assert source is not None
    other = make_task(hub=source.model_dump() | {"revision": "f" * 40})
    assert "owner/mini is not in the local cache" in complaint(other, source="hub")


def test_an_unpinned_one_is_found_by_the_name_of_its_branch(cache: Path) -> None:
    source = make_task().hub
    assert source is not None
    for revision in (None, "refs/convert/parquet"):
        name = f"owner/{'main' if revision is None else 'converted'}"
        changes = {"revision": revision, "dataset": name}
        task = make_task(name=name[6:], hub=source.model_dump() | changes)
        put_hub(task, cache)
        found = load_dataset(task, source="hub")
        assert (found.checked, len(found.examples)) == (False, 11)


def test_a_split_or_column_the_dataset_lacks(cache: Path) -> None:
    put_hub(make_task(), cache)
    source = make_task().hub
    assert source is not None
    lacking = make_task(hub=source.model_dump() | {"splits": {"test": "secret"}})
    said = complaint(lacking, source="hub")
    assert said.startswith("cannot load owner/mini at 01234567 from the hub (ValueError: Unknown")
    assert "use another source: folder" in said and "\n" not in said
    columns = {"text": "body", "label": "label"}
    said = complaint(make_task(hub=source.model_dump() | {"columns": columns}), source="hub")
    assert said == (
        "owner/mini has no column 'body', it has sentence, label, idx; fix hub.columns of task mini"
    )


@pytest.fixture
def silent_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A hub that takes every connection and never says a word."""
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "")
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    held = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=lambda: held.append(server.accept()), daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setattr(reachability, "_LONGEST", 0.5)
        reachability.forget()
        yield
    reachability.forget()


@pytest.mark.usefixtures("silent_hub")
def test_a_hub_that_hangs_is_given_up(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Undone after the test, with what prepare_offline() sets.
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "")
    begun = time.monotonic()
    assert reachability.hub_reachable() and reachability.hub_hangs()
    assert complaint(make_task(), source="hub") == (
        "cannot load owner/mini at 01234567 from the hub (ConnectionError: the hub does not "
        "answer, and no copy is in the local cache); try again, or use another source: folder"
    )
    assert time.monotonic() - begun < 5


def test_the_cache_is_asked_by_path_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path / "datasets"))
    assert not dataset_cached("owner/mini", None, REVISION)
    folder = tmp_path / "hub" / "datasets--owner--mini" / "snapshots" / REVISION
    folder.mkdir(parents=True)
    assert not dataset_cached("owner/mini", None, REVISION), "an empty one is none"
    (folder / "README.md").write_text("x")
    assert dataset_cached("owner/mini", None, REVISION)


def test_cached_only_when_the_newest_copy_is_the_pinned_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_DATASETS_CACHE", str(tmp_path))
    assert not dataset_cached("owner/MultiRC", None, COMMIT)
    ours = tmp_path / "owner___multi_rc" / "default" / "0.0.0" / COMMIT
    ours.mkdir(parents=True)
    assert dataset_cached("owner/MultiRC", None, COMMIT)
    assert not dataset_cached("owner/MultiRC", "other", COMMIT)
    newer = ours.with_name("f" * 40)
    newer.mkdir()
    os.utime(ours, (1, 1))
    assert not dataset_cached("owner/MultiRC", None, COMMIT)


def test_the_cache_is_found_from_hf_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HF_DATASETS_CACHE", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HOME", str(tmp_path))
    (tmp_path / "datasets" / "owner___mini" / "default" / "0.0.0" / COMMIT).mkdir(parents=True)
    assert dataset_cached("owner/mini", None, COMMIT)


# A table in the place of what `datasets` loads


def hub_table(monkeypatch: pytest.MonkeyPatch, names: list[str] | None = None) -> list[Any]:
    """Put a small table in the place of the hub, and return the list of calls made to it."""
    import datasets

    monkeypatch.setattr(hub, "hub_reachable", lambda: True)
    # Else it would switch the libraries offline for every test that follows.
    monkeypatch.setattr(hub, "prepare_offline", lambda: None)
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


def hub_with(**columns: str) -> dict[str, Any]:
    source = make_task().hub
    assert source is not None
    return source.model_dump() | {"columns": {**source.columns, **columns}}
