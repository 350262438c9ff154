"""From rows to a record: every summary number by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.data.dataset import load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.records.record import dumps
from faithbench.records.rows import ResultRow
from faithbench.records.schema import Record, TimingFacts
from faithbench.run.finish import make_record
from faithbench.run.job import Cell, Job
from tests.support.builders import ROWS, make_task, put, row


@pytest.fixture
def make(tmp_path: Path, tiny_model: Any) -> Any:
    put(tmp_path, ROWS)
    job = Job(
        data=load_dataset(make_task(), folder=tmp_path),
        model=tiny_model(),
        explainers=find_explainers("lrp-mask:mask=ones,released=true"),
        metrics=find_metrics("aopc,lodds"),
        results=tmp_path,
        seed=7,
    )
    rows = [
        row("a", target=1, label=1, values={"aopc": 0.5, "lodds": -1.0}, forwards=1, backwards=1),
        row("b", target=1, label=0, values={"aopc": None, "lodds": -2.0}, forwards=2, backwards=0),
        row("c", target=0, label=0, values={"aopc": 0.1, "lodds": -4.5}, forwards=2, backwards=1),
    ]

    def build(rows: list[ResultRow] = rows, **changes: Any) -> Record:
        cell = Cell(replace(job, **changes), job.explainers[0])
        return make_record(
            cell=cell,
            rows=rows,
            timing=TimingFacts(seconds_total=0.9),
            rows_file=("x.rows.jsonl", "cd"),
            truncated=2,
            threads=4,
        )

    return build


def test_summary_by_hand(make: Any) -> None:
    record = make()
    aopc, lodds = record.metrics["aopc"], record.metrics["lodds"]
    # Means of two draws are .1, .3, .5 with chances 1/4, 1/2, 1/4: both tails exceed 2.5%.
    assert (aopc.mean, aopc.ci95, aopc.n, aopc.skipped) == (0.3, (0.1, 0.5), 2, 1)
    assert (lodds.mean, lodds.n, lodds.skipped) == (-2.5, 3, 0)
    assert (aopc.higher_is_better, lodds.higher_is_better) == (True, False)
    assert aopc.family == lodds.family == "faithfulness"
    assert record.model.accuracy == 0.666667
    assert record.model.truncated == 2
    assert record.cost.model_dump() == {
        "rows_asked": 27,
        "distinct_rows": 21,
        "forwards_per_example": 1.666667,
        "backwards_per_example": 0.666667,
        "elsewhere_per_example": None,
        "forward_equivalents_per_example": 3.0,
    }
    assert record.timing == TimingFacts(seconds_total=0.9)
    assert (record.task.n, record.seeds, record.environment.threads) == (3, (7,), 4)
    assert (record.rows.file, record.rows.sha256) == ("x.rows.jsonl", "cd")


def test_explainer_and_protocol(make: Any) -> None:
    record = make()
    assert record.explainer.name == "lrp-mask"
    # Those that were given, and those that were not.
    asked = {"mask": "ones", "thresholds": "calibrated", "released": True}
    assert asked.items() <= record.explainer.settings.items()
    tokens = [make(operator=o).protocol.erasure_token for o in ("mask", "pad", "delete")]
    assert tokens == ["[MASK]", "[PAD]", ""]
    assert record.protocol.version == 1


def test_the_true_positive_rate_falls_by_what_rationales_hold_up(make: Any) -> None:
    """Right on three of the four that have a rationale; without it on one: two thirds less."""
    before = [True, True, True, False, True]
    after = [True, False, False, False, None]
    rows = [
        row(f"e{i}", right=r, right_without_rationale=w)
        for i, (r, w) in enumerate(zip(before, after, strict=True))
    ]
    assert make(rows).model.tpr_drop == 0.666666667
    assert make().model.tpr_drop is None


def test_agreement_with_a_proxy_is_marked(make: Any) -> None:
    """The task's rationales are proxies: only agreement with them is another column."""
    rows = [row("a", values={"aopc": 0.5, "auprc": 0.25})]
    facts = make(rows, metrics=find_metrics("aopc,auprc,seconds")).metrics
    assert {name: found.proxy for name, found in facts.items()} == {"aopc": False, "auprc": True}


def test_public_name_strips_folders(make: Any, tmp_path: Path, tiny_model: Any) -> None:
    folder = tmp_path / "private" / "my-bert"
    folder.mkdir(parents=True)
    model = tiny_model()
    names = [str(folder), f"{folder}/", "bundled:sst2", "textattack/bert-base-uncased-SST-2"]
    assert [replace(model, name=name).public_name for name in names] == [
        "my-bert",
        "my-bert",
        "bundled:sst2",
        "textattack/bert-base-uncased-SST-2",
    ]
    text = dumps(make(model=replace(model, name=str(folder))))
    assert '"name": "my-bert"' in text and "private" not in text
