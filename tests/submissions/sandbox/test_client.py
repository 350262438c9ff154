"""What a worker is given, and what it may send: the message that is due, with finite scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.models.files.weights import Located
from faithbench.submissions.entry import read_entry
from faithbench.submissions.measure import Setup
from faithbench.submissions.sandbox import client
from faithbench.submissions.sandbox.client import Collected
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.messages import Request
from faithbench.submissions.scaffold import new_submission

CONFINED = b'{"holds": ["20 s"], "missing": []}'
READY = b'{"ready": true}'


@pytest.fixture
def collected() -> Collected:
    made = Collected({"a": 2, "b": 1}, 3, lambda confined: None, lambda *_: None)
    made.take(CONFINED)
    made.take(READY)
    return made


def line(name: str, *scores: list[float]) -> bytes:
    return json.dumps({"id": name, "scores": scores}).encode()


def test_scores_are_kept(collected: Collected) -> None:
    collected.take(line("a", [1, -2.5]))
    collected.take(line("b", [0.1]))
    assert collected.scores == {"a": ((1.0, -2.5),), "b": ((0.1,),)}


def test_three_seeds_are_three_lists(collected: Collected) -> None:
    collected.take(line("b", [1.0], [2.0], [3.0]))
    assert collected.scores["b"] == ((1.0,), (2.0,), (3.0,))
    with pytest.raises(FaithbenchError, match="under 1 seeds for example 'a', where 3 are due"):
        collected.take(line("a", [1.0, 2.0]))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b'{"id": "a", "scores": [[NaN, 1.0]]}', "finite number"),
        (b'{"id": "a", "scores": [[1e999, 1.0]]}', "finite number"),
        (b'{"id": "a", "scores": [[1e200, 1.0]]}', "less than or equal to 10{30} "),
        (b'{"id": "a", "scores": [["1", 1.0]]}', "valid number"),
        (b'{"id": "a", "scores": [[null, 1.0]]}', "valid number"),
        (b'{"id": "a", "scores": []}', "at least 1 item"),
        (b'{"id": "a", "scores": [[1.0]], "aopc": 1.0}', "unknown key 'aopc'"),
        (b'{"id": "a", "scores": [[1.0]]}', "sent 1 scores for the 2 erasable tokens of .*'a'"),
        (b'{"id": "a", "scores": [[1.0, 2.0], [1.0]]}', "sent 1, 2 scores"),
        (b'{"id": "c", "scores": [[1.0]]}', "'c', which was not asked for"),
        (b'{"id": "a", "scores": [[1.0, 2.0], [1.0, 2.0]]}', "under 2 seeds"),
        (b"\x80\x04\x95\x10\x00pickle", "not a valid message"),
        (b"[" * 100_000, "not a valid message"),
        (b"", "not a valid message"),
        (b'{"error": "boom \\u001b[31m\\nx"}', r"stopped: boom \[31m x$"),
    ],
)
def test_anything_else_is_refused(collected: Collected, data: bytes, message: str) -> None:
    with pytest.raises(FaithbenchError, match=message) as caught:
        collected.take(data)
    assert len(str(caught.value)) < 500
    assert "\n" not in str(caught.value)
    assert not collected.scores


def test_an_example_has_its_scores_once(collected: Collected) -> None:
    collected.take(line("b", [1.0]))
    with pytest.raises(FaithbenchError, match="'b' twice"):
        collected.take(line("b", [2.0]))


def test_scores_cannot_come_first() -> None:
    made = Collected({"a": 1}, 3, lambda confined: None, lambda *_: None)
    with pytest.raises(FaithbenchError, match="not a valid message"):
        made.take(line("a", [1.0]))


def test_of_a_model_only_its_own_files_are_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        "base/config.json", "adapter/card.json", "adapter/test.jsonl", "adapter/x.jsonl.gz",
        "hub/models--a--b/refs/main", "hub/models--a--other/x",
        "hub/datasets--a--labels/test.jsonl",
    ]  # fmt: skip
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    local = Located(base=str(base), folder=base, adapter=adapter)
    assert client._files_of_model(local) == [base, adapter / "card.json"]
    assert client._files_of_model(Located("a/b")) == [tmp_path / "hub" / "models--a--b"]


def test_a_worker_gets_the_explainer_and_its_data_and_nothing_else(tmp_path: Path) -> None:
    folder, home = tmp_path / "my-x", tmp_path / "home"
    for name in ("explainer.py", "data/idf.json", "__pycache__/explainer.pyc", "entry.toml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    home.mkdir()
    assert client._copied(folder, home) == home / "submission" / "explainer.py"
    files = sorted(path.relative_to(home).as_posix() for path in home.rglob("*.*"))
    assert files == ["submission/data/idf.json", "submission/explainer.py"]


def test_a_request_holds_texts_and_targets_but_no_labels(
    tmp_path: Path, small_setup: Setup
) -> None:
    entry = read_entry(new_submission(tmp_path, "my-x", "plugin"))
    limits = Limits(seconds=9, memory_mb=512, file_mb=3)
    targets = [1, 0, 1, 0]
    request = client._request(tmp_path / "e.py", entry, small_setup, targets, range(3), limits)
    assert (request.explainer, request.kind, request.evidence) == ("my-x", "classification", "text")
    assert (request.seconds, request.memory_mb, request.file_mb) == (9, 512, 3)
    assert request.seeds == (0, 1, 2) and request.labels == ("negative", "positive")
    assert [question.target for question in request.examples] == targets
    texts = [example.text for example in small_setup.data.examples]
    assert [question.text for question in request.examples] == texts
    assert not [path for path in request.readable if ".jsonl" in path]
    # It is sent as JSON, and nothing in it is lost there.
    assert Request.model_validate_json(request.model_dump_json(), strict=True) == request
