"""A kind is one object: a toy one, of one file and one line, goes all the way to a record."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter, ValidationError

from faithbench.core.types import Encoding, Outputs, Target, TokenRow
from faithbench.data.dataset import load_dataset
from faithbench.data.kinds import KINDS, KindName
from faithbench.data.kinds.classification import CLASSIFICATION, Classification
from faithbench.data.kinds.kind import Prediction, Reader
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.models.engine import Engine
from faithbench.models.model import build_model
from faithbench.records.record import read
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.testing import tiny
from tests.support.builders import make_task, put
from tests.support.jobs import quiet

# --- what the one new file of a kind would hold -------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class MultiLabel(Classification):
    """Labels that do not exclude each other: each has a probability of its own."""

    def log_probabilities(self, logits: Any) -> Any:
        return -torch.nn.functional.softplus(-logits)  # ln sigmoid

    def predict(
        self, reader: Reader, encodings: Sequence[Encoding], labels: Sequence[str]
    ) -> list[Prediction]:
        usual = super().predict(reader, encodings, labels)
        # Right if the surest label is there; a real kind would read several gold labels.
        return [Prediction(p.target, p.log_probability, p.right) for p in usual]

    def evaluate(
        self,
        reader: Reader,
        inputs: Sequence[Sequence[TokenRow]],
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        labels: Sequence[str],
    ) -> Outputs:
        outputs = super().evaluate(reader, inputs, encodings, targets, labels)
        # The label is kept as long as it is likelier than not, whatever the others do.
        return Outputs(outputs.log_probability, outputs.log_probability > math.log(0.5))


MULTI_LABEL = MultiLabel(
    name="multi-label",
    texts=1,
    network="SequenceClassification",
    adapter_task="SEQ_CLS",
    model_noun="classifier",
    head_noun="classifier",
    scores=CLASSIFICATION.scores,
    usual_score="accuracy",
)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line that a new kind takes."""
    monkeypatch.setitem(KINDS, "multi-label", MULTI_LABEL)


def test_a_new_kind_goes_all_the_way_to_a_record(registered: None, tmp_path: Path) -> None:
    texts = ["good film", "the plot is dull and bad", "a very great film , and not dull"]
    put(tmp_path, [{"id": f"e{i}", "text": t, "label": i % 2} for i, t in enumerate(texts)])
    tiny_one = tiny.tiny_model("bert", 2)
    model = build_model(
        "tiny", tiny_one.network, tiny_one.tokenizer, labels=("a", "b"), kind=MULTI_LABEL
    )
    job = Job(
        data=load_dataset(make_task(kind="multi-label"), folder=tmp_path),
        model=model,
        explainers=find_explainers("occlusion,gradient"),
        metrics=find_metrics("aopc,flip_fraction"),
        results=tmp_path / "results",
        seeds=1,
    )
    first, second = run(job, quiet)
    record = read(first.path)
    assert record.task.kind == "multi-label"
    # By hand: occlusion is the fall of the sigmoid of the surest label.
    row = first.rows[0]
    ids = np.array(model.tokenizer("good film")["input_ids"])
    masked = ids.copy()
    masked[1] = model.tokenizer.mask_token_id
    logits = [
        model.network(input_ids=torch.tensor(one[None])).logits[0, row.target].item()
        for one in (ids, masked)
    ]
    full, without = (1 / (1 + math.exp(-logit)) for logit in logits)
    assert row.probability == pytest.approx(full, abs=1e-8)
    assert row.scores[0] == pytest.approx(full - without, rel=1e-6)
    assert set(second.rows[0].values) == {"aopc", "flip_fraction"}


def test_probabilities_of_labels_do_not_sum_to_one(registered: None) -> None:
    tiny_one = tiny.tiny_model("bert", 3)
    model = build_model(
        "tiny", tiny_one.network, tiny_one.tokenizer, labels=tuple("abc"), kind=MULTI_LABEL
    )
    row = (np.array([2, 5, 3]), np.zeros(3, dtype=np.int64))
    probabilities = np.exp(Engine(model).log_probabilities([row]))
    logits = model.network(input_ids=torch.tensor(row[0][None])).logits
    np.testing.assert_allclose(probabilities, torch.sigmoid(logits).numpy(), atol=1e-12)


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        ValidationError, match=r"should be 'classification', 'pair', 'qa', 'mult.*' or 'mult.*'"
    ):
        TypeAdapter(KindName).validate_python("tokens")
