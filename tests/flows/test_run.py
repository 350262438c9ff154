"""A whole run: its numbers by hand, its files, and the same bytes twice."""

from __future__ import annotations

import json
import platform
import re
import socket
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import faithbench
from faithbench.core.errors import FaithbenchError
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from faithbench.run.backends import choose_backend
from faithbench.run.job import Job
from faithbench.run.loop import run
from tests.support.jobs import TEXTS, content, make_job, quiet, watched_sessions


@pytest.fixture
def job(tmp_path: Path, tiny_model: Any) -> Job:
    return make_job(tmp_path, tiny_model())


def probabilities(model: Any, ids: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        logits = model.network(input_ids=torch.tensor(ids[None])).logits
    return torch.softmax(logits, dim=-1)[0].numpy()


def test_record_says_what_was_done(job: Job) -> None:
    random, attention, relevance = run(job, quiet)
    record = random.record
    assert record.task.model_dump() == {
        "name": "mini",
        "version": 1,
        "kind": "classification",
        "split": "test",
        "n": 13,
        "source": "folder",
        "data_sha256": job.data.sha256,
        "data_checked": False,
        "rationale": "proxy",
        "rationale_share": None,
        "spans": {"whole": 0, "cut": 0, "lost": 0},
    }
    encoded = [
        job.model.tokenizer(text, truncation=True, max_length=64)["input_ids"] for text in TEXTS
    ]
    predicted = [probabilities(job.model, np.array(ids)).argmax() for ids in encoded]
    right = sum(int(p) == i % 2 for i, p in enumerate(predicted))
    assert 0 < right < 13
    assert record.model.model_dump() == {
        "name": "tiny-bert",
        "revision": None,
        "sha256": "bert-2",
        "weights_sha256": "bert-2",
        "dtype": "float64",
        "accuracy": round(right / 13, 6),
        "truncated": 1,
        "labels": ("class 0", "class 1"),
        "tpr_drop": None,
        "precision": None,
    }
    assert record.protocol.model_dump() == {
        "version": 1,
        "operator": "mask",
        "erasure_token": "[MASK]",
        "long": "truncate",
        "encoder": None,
    }
    assert record.seeds == (0,) and record.environment.threads == torch.get_num_threads()
    assert [o.record.explainer.name for o in (random, attention, relevance)] == [
        "random",
        "attention",
        "lrp-mask",
    ]
    assert relevance.record.explainer.settings["mask"] == "ones"
    # With mask=ones no head statistics are read.
    assert [o.record.explainer.assets for o in (random, relevance)] == [{}, {}]


def test_metrics_are_means_of_the_rows_and_costs_their_sums(job: Job) -> None:
    passes = {"random": 0.0, "attention": 1.0, "lrp-mask": 2.0}
    backwards = passes | {"attention": 0.0}
    tokens = [
        2,
        6,
        8,
        1,
        6,
        7,
        3,
        7,
        62,
        2,
        7,
        9,
        7,
    ]  # with [CLS] and [SEP], the ninth is cut to 64
    # Of n tokens, the top 10..90% are so many different sets; both metrics ask for each.
    distinct = sum(
        len({max(1, int(k * n / 100 + 0.5)) for k in range(10, 100, 10)}) for n in tokens
    )
    for outcome in run(job, quiet):
        record = outcome.record
        assert [len(row.tokens) for row in outcome.rows] == tokens
        for name, facts in record.metrics.items():
            values = [row.values[name] for row in outcome.rows]
            assert facts.mean == pytest.approx(np.mean(values), rel=1e-11)
            assert facts.ci95 is not None and facts.ci95[0] < facts.mean < facts.ci95[1]
            assert (facts.n, facts.skipped, facts.version) == (13, 0, 1)
        assert record.metrics["aopc"].higher_is_better is True
        assert record.metrics["lodds"].higher_is_better is False
        assert record.cost.rows_asked == 13 * 18
        assert record.cost.distinct_rows == distinct
        assert record.cost.forwards_per_example == passes[record.explainer.name]
        assert record.cost.backwards_per_example == backwards[record.explainer.name]
        assert record.timing.alone == 0 and record.timing.seconds_median is None
        assert record.timing.seconds_total > 0


def test_speed_is_measured_if_it_is_wanted(job: Job) -> None:
    for outcome in run(replace(job, metrics=find_metrics("aopc,speed")), quiet):
        timing = outcome.record.timing
        assert timing.alone == 6 and timing.seconds_ci95 is not None
        assert 0 < timing.seconds_ci95[0] <= timing.seconds_median <= timing.seconds_ci95[1]
        assert timing.peak_memory_bytes is None or timing.peak_memory_bytes >= 0
        assert list(outcome.record.metrics) == ["aopc"], "the clock stays out of the metrics"


def test_values_of_one_example_by_hand(job: Job) -> None:
    for outcome in run(job, quiet):
        row = outcome.rows[2]
        assert row.id == "e02" and row.tokens == tuple(TEXTS[2].split())
        ids = np.array(job.model.tokenizer(TEXTS[2])["input_ids"])
        full = probabilities(job.model, ids)[row.target]
        assert row.probability == pytest.approx(full, abs=1e-9)
        order = np.argsort(-np.array(row.scores), kind="stable")
        left = []
        for count in (1, 2, 2, 3, 4, 5, 6, 6, 7):  # 10..90% of 8 tokens, half rounded up
            erased = ids.copy()
            erased[1 + order[:count]] = job.model.tokenizer.mask_token_id
            left.append(probabilities(job.model, erased)[row.target])
        assert row.curve == pytest.approx(left, abs=1e-8)
        assert row.values["aopc"] == pytest.approx(np.mean(full - np.array(left)), abs=1e-8)
        assert row.values["lodds"] == pytest.approx(np.mean(np.log(left / full)), abs=1e-8)


def test_files_lie_where_the_outcome_says(job: Job) -> None:
    outcomes = run(job, quiet)
    folder = job.results / "mini-folder" / "tiny-bert-bert-2"
    expected = {".partial"}
    for outcome in outcomes:
        assert outcome.path.parent == folder and read(outcome.path) == outcome.record
        rows = folder / outcome.record.rows.file
        assert read_rows(rows, outcome.record.rows.sha256) == outcome.rows
        times = [json.loads(line) for line in _times(rows).read_text().splitlines()]
        assert [t["id"] for t in times] == [row.id for row in outcome.rows]
        assert sum(t["seconds"] for t in times) == outcome.record.timing.seconds_total
        expected |= {outcome.path.name, rows.name, _times(rows).name}
    assert {path.name for path in folder.iterdir()} == expected and len(expected) == 10
    assert list((folder / ".partial").iterdir()) == []
    stems = [re.sub(r"-[0-9a-f]{8}\.json$", "", o.path.name) for o in outcomes]
    assert stems == ["random", "attention", "lrp-mask-mask=ones"]


def _times(rows: Path) -> Path:
    return rows.with_name(rows.name.replace(".rows.jsonl", ".rows.times.jsonl"))


def test_other_settings_are_other_files(job: Job) -> None:
    first = {o.path for o in run(job, quiet)}
    fewer = replace(job.data, examples=job.data.examples[:4])
    for change in (
        {"seed": 1},
        {"operator": "delete"},
        {"metrics": find_metrics("aopc")},
        {"data": fewer},
    ):
        other = replace(job, explainers=find_explainers("random"), **change)
        (outcome,) = run(other, quiet)
        assert outcome.path not in first
    assert len(list(job.results.rglob("*.json"))) == 3 + 4


def test_nothing_written_names_this_machine(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "zaphod"
    folder = home / "my-model"
    folder.mkdir(parents=True)
    for name in ("USER", "LOGNAME", "USERNAME", "HOSTNAME"):
        monkeypatch.setenv(name, "zaphod")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setattr(socket, "gethostname", lambda: "heartofgold")
    monkeypatch.setattr(platform, "node", lambda: "heartofgold")
    outcomes = run(replace(job, model=replace(job.model, name=str(folder))), quiet)
    assert outcomes[0].record.model.name == "my-model"
    secrets = ["zaphod", "heartofgold", str(tmp_path), str(Path.home()), sys.prefix]
    secrets.append(str(Path(faithbench.__file__).parents[1]))
    paths = list(job.results.rglob("*"))
    assert len([path for path in paths if path.is_file()]) == 9
    for path in paths:
        text = path.relative_to(job.results).as_posix()
        text += path.read_text() if path.is_file() else ""
        assert [secret for secret in secrets if secret in text] == []
        assert re.findall(r'"(?:/|[A-Z]:\\)[^"]*"', text) == []


def test_same_job_gives_the_same_bytes(job: Job, tmp_path: Path) -> None:
    run(job, quiet)
    run(replace(job, results=tmp_path / "again"), quiet)
    first, again = content(job.results), content(tmp_path / "again")
    assert len(first) == 9 and first == again


def test_order_of_examples_changes_only_the_order(job: Job, tmp_path: Path) -> None:
    turned = replace(job.data, examples=job.data.examples[::-1])
    before = run(job, quiet)
    after = run(replace(job, data=turned, results=tmp_path / "turned"), quiet)
    for one, other in zip(before, after, strict=True):
        assert [row.id for row in one.rows] == [f"e{i:02}" for i in range(13)]
        assert other.rows == one.rows[::-1]
        assert other.record.metrics["aopc"].mean == one.record.metrics["aopc"].mean


def test_chunks_change_no_score(job: Job, tmp_path: Path) -> None:
    whole = run(replace(job, chunk=13, results=tmp_path / "whole"), quiet)
    alone = run(replace(job, chunk=1, results=tmp_path / "alone"), quiet)
    for one, other in zip(whole, alone, strict=True):
        assert [row.id for row in one.rows] == [row.id for row in other.rows]
        for a, b in zip(one.rows, other.rows, strict=True):
            assert (a.tokens, a.target, a.distinct_rows) == (b.tokens, b.target, b.distinct_rows)
            assert a.scores == pytest.approx(b.scores, rel=1e-6, abs=1e-9)
            assert a.values == pytest.approx(b.values, abs=1e-8)


def test_unwritable_results_are_found_before_any_work(job: Job, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    seen = []
    with (
        watched_sessions() as sessions,
        pytest.raises(FaithbenchError, match=r"cannot write results to .*; choose another folder"),
    ):
        run(replace(job, results=tmp_path / "file" / "results"), lambda *said: seen.append(said))
    assert sessions == [] and seen == []


def test_an_explainer_that_cannot_serve_says_so_before_any_work(job: Job) -> None:
    job = replace(job, explainers=find_explainers("random,attention-flow:max_tokens=3"))
    with (
        watched_sessions() as sessions,
        pytest.raises(FaithbenchError, match="takes at most 3; set max_tokens higher"),
    ):
        run(job, quiet)
    assert sessions == []
    assert not list(job.results.rglob("*.jsonl"))


def test_rows_are_remembered_within_a_chunk_only(job: Job) -> None:
    """Occlusion asks for the full input, which the prediction has computed already."""
    job = replace(job, explainers=find_explainers("occlusion,occlusion:output=log-probability"))
    with watched_sessions() as sessions:
        first, second = run(job, quiet)
    engine = sessions[0].engine
    assert engine._known == {}
    words = sum(len(row.tokens) for row in first.rows)
    assert [sum(row.forwards for row in o.rows) for o in (first, second)] == [words + 13] * 2
    assert engine.distinct < 0.7 * engine.asked
    assert second.record.timing.seconds_total > 0.3 * first.record.timing.seconds_total


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_names_the_step_the_explainer_and_the_example(job: Job, jobs: int) -> None:
    told: list[tuple[str, int, int]] = []
    with_sensitivity = replace(job, metrics=find_metrics("aopc,max_sensitivity"))
    run(with_sensitivity, lambda *step: told.append(step), choose_backend(jobs))
    assert told[0] == (f"13 examples x 3 explainers on {job.model.public_name}", 0, 0)
    steps = [(what.partition(", ")[0], done) for what, done, _ in told[1:]]
    assert steps[0] == ("warming up random", 0)
    explained = [done for what, done in steps if what == "explained"]
    assert explained[0] == 0 and sorted(np.diff(explained)) == [1, 3, 3, 3, 3]
    first = steps.index(("explained", 0))
    assert re.fullmatch(r"about [\d,]+ rows through the network", steps[first - 1][0])
    in_chunks = {what for what, _ in steps[first:]}
    name = "lrp-mask:mask=ones"
    some = r"e\d\d( and \d more)?"
    for step in ("random", "attention", name):
        assert [what for what in in_chunks if re.fullmatch(f"explaining {step} on {some}", what)]
    assert [what for what in in_chunks if re.fullmatch(f"perturbing attention on {some}", what)]
    assert in_chunks >= {"erasing tokens", "measuring attention"}
    if jobs == 1:
        explaining = [done for what, done in steps if what.startswith(f"explaining {name} on")]
        assert explaining == explained[:-1]
        assert [what for what, _, _ in told if what.endswith(" left")], "the time left is told"
    assert steps[-1] == ("measuring", 3)
