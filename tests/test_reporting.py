"""From rows to a record: every summary number by hand."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.data import load_dataset
from faithbench.metrics import find_metrics
from faithbench.records import Record, dumps
from faithbench.reporting import make_record, public_name
from faithbench.selection import find_explainers
from tests.builders import ROWS, make_task, put, row


@pytest.fixture
def make(tmp_path: Path, tiny_model: Any) -> Any:
    put(tmp_path, ROWS)
    data = load_dataset(make_task(), folder=tmp_path)
    rows = [
        row("a", target=1, label=1, values={"aopc": 0.5, "lodds": -1.0}, forwards=1, backwards=1),
        row("b", target=1, label=0, values={"aopc": None, "lodds": -2.0}, forwards=2, backwards=0),
        row("c", target=0, label=0, values={"aopc": 0.1, "lodds": -4.5}, forwards=2, backwards=1),
    ]

    def build(**changes: Any) -> Record:
        given: dict[str, Any] = {
            "data": data,
            "model": tiny_model(),
            "chosen": find_explainers("lrp-mask:mask=ones,seed=3")[0],
            "assets": {"heads": "ab"},
            "metrics": find_metrics("aopc,lodds"),
            "operator": "mask",
            "seed": 7,
            "rows": rows,
            "seconds": [0.5, 0.1, 0.3],
            "rows_file": ("x.rows.jsonl", "cd"),
            "truncated": 2,
            "threads": 4,
        }
        return make_record(**{**given, **changes})

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
    }
    assert record.timing.seconds_median == 0.3
    assert record.timing.seconds_total == pytest.approx(0.9)
    assert (record.task.n, record.seed, record.environment.threads) == (3, 7, 4)
    assert (record.rows.file, record.rows.sha256) == ("x.rows.jsonl", "cd")


def test_explainer_and_protocol(make: Any) -> None:
    record = make()
    assert record.explainer.name == "lrp-mask" and record.explainer.assets == {"heads": "ab"}
    # Those that were given, and those that were not.
    asked = {"mask": "ones", "seed": 3, "thresholds": "calibrated", "released": False}
    assert asked.items() <= record.explainer.settings.items()
    tokens = [make(operator=o).protocol.erasure_token for o in ("mask", "pad", "delete")]
    assert tokens == ["[MASK]", "[PAD]", ""]
    assert record.protocol.version == 1


def test_lost_times_are_counted_out(make: Any) -> None:
    assert make(seconds=[0.5, 0.1]).timing.model_dump() == {
        "seconds_median": 0.3,
        "seconds_total": 0.6,
    }
    assert make(seconds=[]).timing.model_dump() == {"seconds_median": None, "seconds_total": 0}


def test_public_name_strips_folders(make: Any, tmp_path: Path, tiny_model: Any) -> None:
    folder = tmp_path / "private" / "my-bert"
    folder.mkdir(parents=True)
    model = tiny_model()
    names = [str(folder), f"{folder}/", "bundled:sst2", "textattack/bert-base-uncased-SST-2"]
    assert [public_name(replace(model, name=name)) for name in names] == [
        "my-bert",
        "my-bert",
        "bundled:sst2",
        "textattack/bert-base-uncased-SST-2",
    ]
    text = dumps(make(model=replace(model, name=str(folder))))
    assert '"name": "my-bert"' in text and "private" not in text
