"""The hub through its real client, offline: a dataset and a model laid out in its cache."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data import hub
from faithbench.data import hub_rows as hub_data
from faithbench.data.dataset import load_dataset, sources
from faithbench.data.hub_rows import our_rows
from faithbench.data.tasks import load_task
from faithbench.models.model import load_model
from faithbench.testing.tiny import tiny_model, tiny_tokenizer
from tests.support.builders import REVISION, complaint, make_task
from tests.support.tasks import put_hub, use_hub_cache


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
        "owner/mini has no column 'body', it has sentence, label, idx; "
        "mend hub.columns of task mini"
    )


def test_a_model_by_name_and_revision(cache: Path) -> None:
    folder = cache / "models--owner--tiny" / "snapshots" / REVISION
    folder.mkdir(parents=True)
    made = tiny_model()
    made.network.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    assert (folder / "model.safetensors").is_file()
    found = load_model("owner/tiny", labels=("no", "yes"), revision=REVISION, device="cpu")
    assert (found.name, found.revision) == ("owner/tiny", REVISION)
    there = {name: value.sum().item() for name, value in found.network.state_dict().items()}
    for name, value in made.network.state_dict().items():
        assert there[name] == pytest.approx(value.sum().item(), rel=1e-5, abs=1e-5)


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
        monkeypatch.setattr(hub, "_LONGEST", 0.5)
        hub.forget()
        yield
    hub.forget()


@pytest.mark.usefixtures("silent_hub")
def test_a_hub_that_hangs_is_given_up(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Undone after the test, with what prepare_offline() sets.
    monkeypatch.setenv("HF_HUB_OFFLINE", "")
    begun = time.monotonic()
    assert hub.hub_reachable() and hub.hub_hangs()
    assert complaint(make_task(), source="hub") == (
        "cannot load owner/mini at 01234567 from the hub (ConnectionError: the hub does not "
        "answer, and no copy is in the local cache); try again, or use another source: folder"
    )
    assert time.monotonic() - begun < 5


def test_the_cache_is_asked_by_path_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert not hub_data.dataset_cached("owner/mini", None, REVISION)
    folder = tmp_path / "hub" / "datasets--owner--mini" / "snapshots" / REVISION
    folder.mkdir(parents=True)
    assert not hub_data.dataset_cached("owner/mini", None, REVISION), "an empty one is none"
    (folder / "README.md").write_text("x")
    assert hub_data.dataset_cached("owner/mini", None, REVISION)


def rows(task: Any, found: dict[str, Any], names: list[str] | None = None) -> list[dict[str, Any]]:
    return list(our_rows(task, "test", 3, found, names or []))


def test_snli_leaves_out_pairs_without_a_label() -> None:
    task = load_task("snli")
    pair = {"premise": "A dog runs.", "hypothesis": "It moves."}
    assert [row["label"] for row in rows(task, pair | {"label": 0})] == [1]
    assert task.labels[1] == "entailment"
    assert [row["label"] for row in rows(task, pair | {"label": 2})] == [0]
    assert rows(task, pair | {"label": -1}) == []


def test_news20_takes_two_groups_of_twenty() -> None:
    task = load_task("news20")
    post = {"text": "The goalie.", "label": 10, "label_text": "rec.sport.hockey"}
    assert rows(task, post) == [{"id": "news20-test-3", "text": "The goalie.", "label": 1}]
    assert rows(task, post | {"label_text": "sci.space"}) == []
    assert rows(task, post | {"text": "\n"}) == []


def test_labels_by_name_where_the_names_agree() -> None:
    found = {"idx": 8, "sentence": "x", "label": 0}
    assert rows(make_task(), found, ["yes", "no"])[0]["label"] == 1
    assert rows(make_task(), found, ["a", "b"])[0]["label"] == 0
    assert rows(make_task(), found)[0]["id"] == "mini-test-8"


def test_squad_with_and_without_answers() -> None:
    task = load_task("squad2")
    row = {"id": "q1", "context": "Ada wrote it.", "question": "Who?"}
    answers = {"text": ["Ada", "Ada wrote"], "answer_start": [0, 0]}
    (found,) = rows(task, row | {"answers": answers})
    assert found == {
        "id": "squad2-test-q1",
        "text": "Ada wrote it.",
        "text_b": "Who?",
        "answers": [{"start": 0, "text": "Ada"}, {"start": 0, "text": "Ada wrote"}],
        "label": "answerable",
    }
    (found,) = rows(task, row | {"answers": {"text": [], "answer_start": []}})
    assert (found["answers"], found["label"]) == ([], "no_answer")
    with pytest.raises(FaithbenchError, match=r"squad_v2, row 3: not of the form 'squad' \(zip"):
        rows(task, row | {"answers": {"text": ["Ada"], "answer_start": []}})


def test_cloze_makes_a_row_of_each_sentence_with_a_candidate() -> None:
    task = load_task("cbt-ne")
    found = rows(
        task,
        {
            "sentences": ["Ann saw Tom , and Ann ran .", "Annie slept .", "Tom sang ."],
            "question": "XXXXX came back .",
            "answer": "Ann",
            "options": ["Ann", "Tom"],
        },
    )
    assert [(row["id"], row["label"], row["rationale"]) for row in found] == [
        ("cbt-ne-test-3-0", 1, [[0, 3], [18, 21]]),
        ("cbt-ne-test-3-2", 0, None),
    ]
    assert {row["text_b"] for row in found} == {"XXXXX came back ."}
    with pytest.raises(FaithbenchError, match="not of the form 'cloze'"):
        rows(task, {"sentences": None, "question": "q", "answer": "Ann", "options": ["Ann"]})
