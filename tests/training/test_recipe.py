"""Train, dev and test of one source; a source without dev gives a part of train."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.kinds import KINDS
from faithbench.data.tasks import load_task, task_names
from faithbench.training.recipe import hold_out, load_splits, usual_metric
from tests.support.builders import make_task


def test_the_task_s_own_dev(tmp_path: Path) -> None:
    task = folder_task(tmp_path, {"train": 30, "dev": 7, "test": 5})
    splits = load_splits(task, folder=tmp_path)
    assert [len(part.examples) for part in vars(splits).values()] == [30, 7, 5]
    assert [part.split for part in vars(splits).values()] == ["train", "dev", "test"]


def test_limits_take_the_rows_that_a_run_takes(tmp_path: Path) -> None:
    task = folder_task(tmp_path, {"train": 30, "dev": 7, "test": 5})
    splits = load_splits(task, folder=tmp_path, limits=(10, 3, None))
    assert [len(part.examples) for part in vars(splits).values()] == [10, 3, 5]
    same = load_dataset(task, split="train", folder=tmp_path, limit=10)
    assert splits.train.examples == same.examples


def test_a_tenth_of_train_stands_in_for_dev(tmp_path: Path) -> None:
    task = folder_task(tmp_path, {"train": 400, "test": 5})
    splits = load_splits(task, folder=tmp_path, limits=(None, 20, None))
    assert splits.dev.split == "train (held out)"
    assert len(splits.dev.examples) == 20
    assert 340 <= len(splits.train.examples) <= 380
    texts = [{example.text for example in part.examples} for part in (splits.train, splits.dev)]
    assert not texts[0] & texts[1]
    assert splits.dev.sha256 == splits.train.sha256


def test_equal_texts_stay_together() -> None:
    """Questions on one document are all on one side, and every row is on one."""
    rows = tuple(Example(f"e{n}", f"document {n // 10}", 0, f"question {n}") for n in range(600))
    data = Dataset(make_task(hub=None), "folder", "train", rows, "", "none", False)
    train, dev = hold_out(data)
    assert sorted(e.id for e in (*train.examples, *dev.examples)) == sorted(e.id for e in rows)
    assert len(dev.examples) % 10 == 0
    assert 0 < len(dev.examples) < 150


def test_too_few_rows_to_hold_some_out(tmp_path: Path) -> None:
    task = folder_task(tmp_path, {"train": 1, "test": 5})
    with pytest.raises(FaithbenchError) as caught:
        load_splits(task, folder=tmp_path)
    assert str(caught.value) == (
        "task mini has no dev split, and 1 training rows are too few to set some aside; "
        "name a dev split in the task file"
    )


@pytest.mark.parametrize("name", task_names())
def test_scores_named_in_task_files_are_measured(name: str) -> None:
    task = load_task(name)
    known = KINDS[task.kind].scores
    assert usual_metric(task) in known
    for score in task.published:
        assert score.metric in known
        assert 0 < score.score < 1
        assert "20" in score.source, "a source has a year"


def test_the_usual_metric_is_the_task_file_s_or_that_of_its_kind() -> None:
    names = ("sst2", "semeval", "cola", "squad")
    assert {name: usual_metric(load_task(name)) for name in names} == {
        "sst2": "accuracy",
        "semeval": "macro_f1",
        "cola": "matthews",
        "squad": "f1",
    }


def folder_task(root: Path, sizes: dict[str, int]):
    (root / "mini").mkdir()
    for split, size in sizes.items():
        rows = [{"id": f"{split}{n}", "text": f"{split} {n}", "label": n % 2} for n in range(size)]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (root / "mini" / f"{split}.jsonl").write_text(lines)
    return make_task(hub=None, folder={"name": "mini", "splits": {name: name for name in sizes}})
