"""From a request to a job: explainers that learn from the training split are taught there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import faithbench as fb
from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.run.request import Request, make_job
from tests.support.builders import make_task, put
from tests.support.jobs import TEXTS, content

LEARNING = "salience:kind=tfidf,salience:kind=chi2"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path, [{"id": f"e{i}", "text": t, "label": i % 2} for i, t in enumerate(TEXTS[:6])])
    rows = [{"id": f"t{i}", "text": t, "label": i % 2} for i, t in enumerate(TEXTS[6:])]
    put(tmp_path, rows, stem="learn")
    return tmp_path


@pytest.fixture
def task() -> Any:
    return make_task(labels=["class 0", "class 1"])


def test_the_record_names_the_training_split(folder: Path, task: Any, tiny_model: Any) -> None:
    train = load_dataset(task, split="train", folder=folder)
    assert len(train.examples) == 7
    found = fb.evaluate(
        task, f"salience,{LEARNING}", model=tiny_model(), data=folder, metrics="aopc"
    )
    assert {label: record.explainer.assets for label, record in found.records.items()} == {
        "salience": {},
        "salience:kind=tfidf": {"train (folder, 7 rows)": train.sha256},
        "salience:kind=chi2": {"train (folder, 7 rows)": train.sha256},
    }
    first, second = (found[f"salience:kind={kind}"].rows for kind in ("tfidf", "chi2"))
    assert any(a.scores != b.scores for a, b in zip(first, second, strict=True))


def test_several_processes_give_the_same_bytes(folder: Path, task: Any, tiny_model: Any) -> None:
    written = []
    for jobs in (1, 2):
        results = folder / f"jobs-{jobs}"
        fb.evaluate(
            task, LEARNING, model=tiny_model(), data=folder, metrics="aopc", batch=2,
            jobs=jobs, results=results,
        )  # fmt: skip
        written.append(content(results))
    assert len(written[0]) > 4 and written[0] == written[1]


def test_a_changed_training_split_is_another_record(
    folder: Path, task: Any, tiny_model: Any
) -> None:
    request = Request(
        LEARNING + ",salience", task, tiny_model(), folder, metrics="aopc", results=folder / "out"
    )
    before = make_job(request)
    put(folder, [{"id": "t", "text": "good film", "label": 0}], stem="learn")
    after = make_job(request)
    same = [a.identity == b.identity for a, b in zip(before.cells, after.cells, strict=True)]
    assert same == [False, False, True]


def test_without_a_training_split_it_is_one_line(folder: Path, task: Any, tiny_model: Any) -> None:
    (folder / "mini" / "learn.jsonl").unlink()
    with pytest.raises(FaithbenchError) as caught:
        fb.evaluate(task, LEARNING, model=tiny_model(), data=folder)
    said = str(caught.value)
    assert said.startswith(
        "explainer 'salience:kind=tfidf' learns from the training split: cannot read split 'train'"
    )
    assert "learn.jsonl" in said and "\n" not in said
    # Who needs none does not ask for it.
    fb.evaluate(task, "salience", model=tiny_model(), data=folder, metrics="aopc")


def test_data_that_are_a_value_have_no_folder_to_look_in(
    folder: Path, task: Any, tiny_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FAITHBENCH_DATA", raising=False)
    data = load_dataset(task, folder=folder)
    with pytest.raises(FaithbenchError, match=r"learns from the training split: .* no data folder"):
        fb.evaluate(task, LEARNING, model=tiny_model(), data=data)
    monkeypatch.setenv("FAITHBENCH_DATA", str(folder))
    found = fb.evaluate(task, LEARNING, model=tiny_model(), data=data, metrics="aopc")
    assert "train (folder, 7 rows)" in found.records["salience:kind=chi2"].explainer.assets
