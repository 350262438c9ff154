"""Runs of every kind: answers, long documents, bounds, half precision, and chance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.core.erasure import top_count
from faithbench.core.seals import unseal
from faithbench.core.types import Answer, Example
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.model import load_model
from faithbench.records.record import read
from faithbench.records.schema import PrecisionFacts
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.testing import tiny
from tests.support.builders import make_task


def quiet(_what: str, _done: int, _total: int) -> None:
    return


def dataset(*examples: Example, **task: Any) -> Dataset:
    return Dataset(make_task(**task), "folder", "test", examples, "d" * 64, "none", False)


QUESTIONS = [
    Example(f"q{i}", text, 0, "the good film", answers=(Answer(4, text[4:8]),))
    for i, text in enumerate(
        ["the plot is dull and bad", "not very great film , and not dull", "and the films w1 w2 w3"]
    )
]


@pytest.fixture(scope="module")
def answerer() -> Any:
    return tiny.tiny_model(qa=True)


def test_answers_are_explained_and_measured(answerer: Any, tmp_path: Path) -> None:
    data = dataset(*QUESTIONS, kind="qa", labels=["answerable"], hub=None)
    explainers = find_explainers("occlusion,input-x-gradient,lrp-mask:mask=ones,random")
    job = Job(data, answerer, explainers, find_metrics("all"), tmp_path)
    for outcome in run(job, quiet):
        for row in outcome.rows:
            first, last = row.target
            encoding = encode(answerer, next(q for q in QUESTIONS if q.id == row.id))
            assert encoding.erasable[first] and encoding.erasable[last] and first <= last
            assert len(row.tokens) == int(encoding.erasable.sum()), "the answer has a score too"
            assert row.values["answer_recall_at_20"] == 1.0, "these texts have fewer than 20 tokens"
            assert row.values["tau_loo"] is not None
        assert outcome.record.model.accuracy == np.mean([row.right for row in outcome.rows])
        assert read(outcome.path).metrics["aopc"].n == 3


def test_an_answer_that_is_the_whole_text_leaves_nothing_to_erase(
    answerer: Any, tmp_path: Path
) -> None:
    example = Example("q", "good", 0, "the film", answers=(Answer(0, "good"),))
    data = dataset(example, kind="qa", labels=["answerable"], hub=None)
    job = Job(data, answerer, find_explainers("random"), find_metrics("all,naopc"), tmp_path)
    (outcome,) = run(job, quiet)
    (row,) = outcome.rows
    assert row.right and row.rows_asked == 0
    # What reads scores alone still has a value.
    found = {name: value for name, value in row.values.items() if value is not None}
    assert found == {"answer_recall_at_20": 1.0, "seed_agreement": 1.0}
    assert outcome.record.metrics["aopc"].skipped == 1


LONG = Example("long", " ".join(f"w{i % 10}" for i in range(150)), 1)
SHORT = Example("short", "the plot is dull and bad", 0)


def test_windows_score_every_token(tiny_model: Any, tmp_path: Path) -> None:
    model, metrics = tiny_model(), find_metrics("all")
    explainers = find_explainers("random,input-x-gradient")
    job = Job(dataset(LONG, SHORT), model, explainers, metrics, tmp_path, long="window")
    outcomes = run(job, quiet)
    cut = run(Job(dataset(LONG, SHORT), model, explainers, metrics, tmp_path), quiet)
    for outcome, short in zip(outcomes, cut, strict=True):
        assert outcome.record.protocol.long == "window" and short.record.protocol.long == "truncate"
        assert (outcome.record.model.truncated, short.record.model.truncated) == (0, 1)
        assert len(outcome.rows[0].tokens) == 150 > len(short.rows[0].tokens)
        assert outcome.rows[1] == short.rows[1], "a text that fits is read as before"
        assert outcome.path != short.path


def test_bounds_are_found_once_and_shared(tiny_model: Any, tmp_path: Path) -> None:
    model = tiny_model()
    job = Job(
        dataset(SHORT), model, find_explainers("random,first-tokens,occlusion"),
        find_metrics("aopc,naopc"), tmp_path,
    )  # fmt: skip
    outcomes = run(job, quiet)
    (file,) = tmp_path.glob("bounds-*.jsonl")
    ((_, low, high),) = [json.loads(line) for line in unseal(file.read_bytes()).lines]
    for outcome in outcomes:
        values = outcome.rows[0].values
        aopc, naopc = values["aopc"], values["naopc"]
        assert aopc is not None
        assert naopc == pytest.approx((aopc - low) / (high - low), abs=1e-6)
        assert -1e-9 <= naopc <= 1 + 1e-9


def test_the_record_says_how_far_half_precision_moves(tiny_model: Any, tmp_path: Path) -> None:
    moved = PrecisionFacts(inputs=2, largest_shift=0.01, mean_shift=0.005, changed_predictions=1)
    job = Job(
        dataset(SHORT), tiny_model(), find_explainers("random"), find_metrics("aopc"), tmp_path,
        precision=moved,
    )  # fmt: skip
    (outcome,) = run(job, quiet)
    assert read(outcome.path).model.precision == moved


def test_chance_gets_what_chance_should(tmp_path: Path) -> None:
    """On the bundled task, `random` agrees with rankings drawn by another generator.

    The expectation of AOPC over rankings is estimated from 8 draws per decile and text;
    the mean of `random` must lie within the 95% interval of the paired differences.
    """
    task = load_task("sst2")
    model = load_model("bundled:sst2", labels=task.labels)
    data = load_dataset(task, source="bundled", limit=20)
    metrics = find_metrics("aopc")
    (outcome,) = run(Job(data, model, find_explainers("random"), metrics, tmp_path), quiet)
    engine, draw = Engine(model), np.random.default_rng(5)
    token = model.erasure_id("mask")
    expected = []
    for example in data.examples:
        encoding = encode(model, example)
        places = np.flatnonzero(encoding.erasable)
        full = engine.log_probabilities([(encoding.ids, encoding.types)])[0]
        rows = []
        for percent in np.tile(np.arange(10, 100, 10), 8):
            ids = encoding.ids.copy()
            ids[draw.permutation(places)[: top_count(len(places), int(percent))]] = token
            rows.append((ids, encoding.types))
        answers = engine.log_probabilities(rows)[:, full.argmax()]
        expected.append(np.exp(full.max()) - np.exp(answers).mean())
        engine.forget()
    facts = outcome.record.metrics["aopc"]
    assert facts.ci95 is not None and facts.mean is not None
    paired = [row.values["aopc"] for row in outcome.rows]
    differences = np.array(paired) - np.array(expected)
    half = 1.96 * differences.std(ddof=1) / np.sqrt(len(differences))
    assert abs(differences.mean()) < half
    assert facts.ci95[0] < np.mean(expected) < facts.ci95[1]
