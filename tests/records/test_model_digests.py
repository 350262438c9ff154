"""Older records get the digest of their model where it is known, and keep the one they had."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.records.model_digests import MODEL_OF_WEIGHTS, add_model_digest
from faithbench.records.record import read
from tests.support.records import RECORD

WEIGHTS, MODEL = next(iter(MODEL_OF_WEIGHTS.items()))


@pytest.mark.parametrize(
    ("name", "weights", "expected"),
    [("bundled:agnews", WEIGHTS, MODEL), ("copy", WEIGHTS, None), ("bundled:x", "0" * 64, None)],
)
def test_a_record_of_schema_1(
    tmp_path: Path, name: str, weights: str, expected: str | None
) -> None:
    model = RECORD["model"] | {"name": name, "weights_sha256": weights}
    del model["sha256"]
    path = tmp_path / "r.json"
    path.write_text(json.dumps({**RECORD, "schema": 1, "model": model}))
    found = read(path).model
    assert (found.sha256, found.weights_sha256) == (expected, weights)
    assert found.digest == (expected or weights), "known by its weights where there is no more"


def test_what_is_no_record_is_left_to_the_schema(tmp_path: Path) -> None:
    assert add_model_digest({"model": 3}) == {"model": 3}
    path = tmp_path / "r.json"
    path.write_text(
        json.dumps({**RECORD, "schema": 1, "model": {"name": [], "weights_sha256": {}}})
    )
    with pytest.raises(FaithbenchError, match="key 'model"):
        read(path)
