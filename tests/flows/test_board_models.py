"""The bundled models are those that the board's records were made with."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.model import load_model
from faithbench.models.predictions import predictions
from faithbench.records.rows_file import read_rows

RECORDS = Path(__file__).parents[2] / "leaderboard" / "records" / "sst2-bundled"


@pytest.mark.slow
def test_probabilities_are_those_of_the_board() -> None:
    """Weights whose sixth digit moves change the scores of an ill-conditioned explainer wholly."""
    (path,) = RECORDS.glob("bundled-sst2-*/attention-*.rows.jsonl.gz")
    rows = {row.id: row for row in read_rows(path)}
    task = load_task("sst2")
    model = load_model("bundled:sst2", labels=task.labels, device="cpu")
    data = load_dataset(task, source="bundled", limit=len(rows))
    few = data.examples[:8]
    found = predictions(Engine(model), [encode(model, e, task.evidence, "truncate") for e in few])
    for example, prediction in zip(few, found, strict=True):
        assert prediction.target == rows[example.id].target
        expected = pytest.approx(rows[example.id].probability, abs=1e-6)
        assert math.exp(prediction.log_probability) == expected
