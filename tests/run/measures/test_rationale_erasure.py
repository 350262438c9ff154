"""What the network is asked beside erasure, against the network itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.data.dataset import load_dataset
from faithbench.data.rationales import rationale_tokens
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.run.measures.rationale_erasure import right_without_rationale
from tests.support.builders import make_task, put

TEXTS = [f"a {'very ' * i}good film , and not dull" for i in range(30)]


@pytest.fixture
def job(tmp_path: Path, tiny_model: Any) -> Job:
    rows = [
        {"id": f"e{i:02}", "text": text, "label": i % 2, "rationale": [[0, 8]] if i % 3 else None}
        for i, text in enumerate(TEXTS)
    ]
    put(tmp_path, rows)
    return Job(
        data=load_dataset(make_task(rationale="human"), folder=tmp_path),
        model=tiny_model(),
        explainers=find_explainers("input-x-gradient,first-tokens"),
        metrics=find_metrics("tpr_drop,max_sensitivity"),
        results=tmp_path / "results",
        chunk=7,
    )


def quiet(*_: object) -> None:
    return


def test_labels_found_without_the_rationale(job: Job) -> None:
    """Token by token: the marked ones replaced by [MASK], and the network asked."""
    encodings = [encode(job.model, example, "text") for example in job.data.examples]
    found = right_without_rationale(job, Engine(job.model), encodings)
    mask = job.model.tokenizer.mask_token_id
    for i, encoding in enumerate(encodings):
        if i % 3 == 0:
            assert found[i] is None
            continue
        ids = np.where(rationale_tokens(encoding), mask, encoding.ids)
        with torch.no_grad():
            logits = job.model.network(input_ids=torch.tensor(ids[None])).logits
        assert found[i] == (int(logits.argmax()) == i % 2)
    kept = [answer for answer in found if answer is not None]
    assert len(set(kept)) == 2, "a test of one answer would be none"
    other = replace(job, metrics=find_metrics("aopc"))
    assert right_without_rationale(other, Engine(job.model), encodings) == [None] * 30


def test_a_sample_is_shaken_and_the_record_says_so(job: Job) -> None:
    gradient, first = run(job, quiet)
    facts = gradient.record.metrics["max_sensitivity"]
    assert (facts.n, facts.skipped, facts.family) == (7, 23, "stability")
    values = [r.values["max_sensitivity"] for r in gradient.rows]
    assert values[0] is not None and values[-1] is not None  # the shortest and the longest
    assert all(value > 0 for value in values if value is not None)
    # What does not read the model cannot move: that is no virtue, and has no value.
    unread = first.record.metrics["max_sensitivity"]
    assert (unread.mean, unread.n, unread.skipped) == (None, 0, 30)
    again, _ = run(replace(job, results=job.results / "again", chunk=20), quiet)
    assert [r.values for r in again.rows] == [
        pytest.approx(r.values, rel=1e-6, abs=1e-8) if r.values["max_sensitivity"] else r.values
        for r in gradient.rows
    ]


def test_a_shaken_model_is_as_it_was(job: Job) -> None:
    before = {name: value.clone() for name, value in job.model.network.state_dict().items()}
    run(job, quiet)
    for name, value in job.model.network.state_dict().items():
        assert torch.equal(value, before[name])
