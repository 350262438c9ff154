"""Messages between faithbench and a worker: closed, strict, and with fixed names on the wire."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from faithbench.submissions.sandbox.messages import (
    Confined,
    Failed,
    Question,
    Ready,
    Request,
    Scores,
)

QUESTION = {"id": "a", "text": "good film", "text_b": None, "target": 1}
REQUEST = {
    "file": "explainer.py", "explainer": "x", "settings": {"scale": 2.0, "deep": True},
    "model": "bundled:sst2", "revision": None, "labels": ["no", "yes"],
    "kind": "classification", "evidence": "text", "model_sha256": "ab",
    "examples": [QUESTION], "seeds": [0, 1, 2], "readable": ["/m"],
    "seconds": 600, "memory_mb": 4096, "file_mb": 64,
}  # fmt: skip


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (Question, QUESTION),
        (Request, REQUEST),
        (Confined, {"holds": ["600 s"], "missing": ["no network"]}),
        (Ready, {"ready": True}),
        (Scores, {"id": "a", "scores": [[1.0, -2.5], [0.0, 1e-9]]}),
        (Failed, {"error": "boom"}),
    ],
)
def test_each_message_survives_the_wire_and_takes_no_other_key(message, content) -> None:
    parsed = message.model_validate_json(json.dumps(content), strict=True)
    assert json.loads(parsed.model_dump_json()) == content
    with pytest.raises(ValidationError, match="extra_forbidden"):
        message.model_validate_json(json.dumps({**content, "extra": 1}), strict=True)


def test_a_question_has_neither_label_nor_rationale() -> None:
    assert set(Question.model_fields) == {"id", "text", "text_b", "target"}


@pytest.mark.parametrize(
    "text",
    [
        '{"id": "a", "scores": []}',
        '{"id": "a", "scores": [[NaN]]}',
        '{"id": "a", "scores": [[1e31]]}',
        '{"id": "a", "scores": [["1"]]}',
        '{"id": 1, "scores": [[1.0]]}',
        '{"scores": [[1.0]]}',
    ],
)
def test_scores_are_finite_numbers_of_a_named_example(text: str) -> None:
    with pytest.raises(ValidationError):
        Scores.model_validate_json(text, strict=True)


def test_a_worker_is_ready_or_says_nothing() -> None:
    with pytest.raises(ValidationError):
        Ready.model_validate_json('{"ready": false}', strict=True)
