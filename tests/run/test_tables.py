"""Tables of results: 80 columns, the best in bold, and captions that say what numbers are."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.cells import cell_len
from rich.console import Console

from faithbench.records.schema import PrecisionFacts, Record, SpanFacts
from faithbench.run.tables import caption, results_tables

LONG = "lrp-mask:thresholds=paper,mask=syntactic,released=true,precision=float32,seed=12345"


def make_record(
    aopc: float | None, lodds: float, *, model: str = "bundled:sst2", seconds: float | None = 0.0325
) -> Record:
    facts = {"version": 1, "family": "faithfulness", "n": 1821, "skipped": 0}
    spread = None if aopc is None else (aopc - 0.1, aopc + 0.14)
    given: dict[str, Any] = {
        "schema": 3,
        "task": {
            "name": "sst2",
            "version": 1,
            "kind": "classification",
            "split": "test",
            "n": 1821,
            "source": "folder",
            "data_sha256": "ab",
            "data_checked": True,
            "rationale": "proxy",
        },
        "model": {
            "name": model,
            "revision": None,
            "weights_sha256": "cd",
            "dtype": "float32",
            "accuracy": 0.8924,
            "truncated": 0,
            "labels": ("negative", "positive"),
        },
        "explainer": {
            "name": "random",
            "package": "faithbench",
            "version": "0.1.0",
            "settings": {},
            "assets": {},
        },
        "seeds": (0,),
        "protocol": {"version": 1, "operator": "mask", "erasure_token": "[MASK]"},
        "metrics": {
            "aopc": {**facts, "higher_is_better": True, "mean": aopc, "ci95": spread},
            "lodds": {**facts, "higher_is_better": False, "mean": lodds, "ci95": None},
        },
        "rows": {"file": "x.rows.jsonl", "sha256": "ef"},
        "cost": {
            "rows_asked": 18,
            "distinct_rows": 9,
            "forwards_per_example": 2.0,
            "backwards_per_example": 1.0,
            "forward_equivalents_per_example": 4.0,
        },
        "timing": {
            "alone": 10,
            "seconds_median": seconds,
            "seconds_ci95": None if seconds is None else (0.03, 0.035),
            "peak_memory_bytes": None if seconds is None else 12_345_678,
            "seconds_total": 60.0,
        },
        "environment": {
            "packages": {},
            "python": "3.11",
            "platform": "Linux",
            "device": "cpu",
            "threads": 2,
        },
        "source": {"commit": None, "dirty": None},
    }
    return Record.model_validate(given)


def shown(what: Any, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(what)
    return console.file.getvalue()


def table_of(*records: tuple[str, Record]) -> str:
    return "\n".join(shown(table) for table in results_tables(records))


def cells_of(text: str, name: str) -> list[str]:
    """The cells of a line, which are two blanks or more apart."""
    line = next(line for line in text.splitlines() if line.startswith(name))
    return re.split(r" {2,}", line.strip())


def test_table_fits_80_columns_with_long_names() -> None:
    names = [LONG, "random", "lrp-rollout", "integrated-gradients:baseline=zero,steps=50", "gae"]
    text = table_of(*((name, make_record(0.4331, -11.2871)) for name in names))
    lines = text.splitlines()
    assert max(cell_len(line) for line in lines) <= 80
    assert "sst2 (folder, test, n = 1821)" in text
    # Four explainers across, the fifth below; names fold and numbers stay whole.
    assert cells_of(text, "AOPC ↑") == ["AOPC ↑", *["0.433 ±.120"] * 4]
    assert cells_of(text, "LOdds ↓") == ["LOdds ↓", *["-11.287"] * 4]
    assert cells_of(text, "seconds") == ["seconds ↓", *["0.033 ±.0025"] * 4]
    assert cells_of(text, "peak_memory") == ["peak_memory ↓", *["12 MB"] * 4]
    assert cells_of(text, "forwards") == ["forwards ↓", *["2"] * 4]
    assert cells_of(text, "backwards") == ["backwards ↓", *["1"] * 4]
    assert cells_of(text, "forward_equivalents") == ["forward_equivalents ↓", *["4"] * 4]
    assert [line.split()[-1] for line in lines if line.startswith("AOPC")][1] == "±.120"
    assert "gae" in text and "random" in text


def test_table_without_a_mean_or_a_time() -> None:
    one, other = make_record(None, -0.624, seconds=None), make_record(0.2, -0.6)
    text = table_of(("random", one), ("gae", other))
    assert cells_of(text, "AOPC ↑") == ["AOPC ↑", "-", "0.200 ±.120"]
    assert cells_of(text, "seconds") == ["seconds ↓", "-", "0.033 ±.0025"]
    assert cells_of(text, "peak_memory") == ["peak_memory ↓", "-", "12 MB"]
    # A metric that was asked for and has no value anywhere says so: a dash is not 0.
    assert cells_of(table_of(("random", one)), "AOPC") == ["AOPC ↑", "-"]


def test_best_of_each_metric_is_bold() -> None:
    records = [("a", make_record(0.4, -0.5)), ("b", make_record(0.2, -0.7))]
    (table,) = results_tables(records)
    first, second = ([cell.style for cell in list(c.cells)[1:3]] for c in table.columns[1:])
    assert first == ["bold", ""] and second == ["", "bold"]


def test_the_best_is_that_of_all_blocks() -> None:
    records = [(str(i), make_record(0.1 * i, -0.5)) for i in range(6)]
    styles = [
        cell.style
        for table in results_tables(records)
        for column in table.columns[1:]
        for cell in list(column.cells)[1:2]
    ]
    assert styles == ["", "", "", "", "", "bold"]


def test_the_caption_says_what_the_numbers_are() -> None:
    record = make_record(0.2, -0.6, model="my[best]model")
    text = " ".join(shown(caption(record)).split())
    assert text.startswith("model my[best]model, accuracy 0.892; ± is half the 95% interval")
    moved = PrecisionFacts(inputs=64, largest_shift=0.0123, mean_shift=0.001, changed_predictions=1)
    half = record.model_copy(
        update={"model": record.model.model_copy(update={"precision": moved, "dtype": "bfloat16"})}
    )
    assert "; bfloat16 moves f by 0.012 at most (64 inputs); " in " ".join(
        shown(caption(half)).split()
    )


def test_the_caption_counts_what_was_cut() -> None:
    record = make_record(0.2, -0.6)
    cut = record.model_copy(
        update={
            "model": record.model.model_copy(update={"truncated": 3}),
            "task": record.task.model_copy(update={"spans": SpanFacts(whole=4, cut=2, lost=5)}),
        }
    )
    text = " ".join(shown(caption(cut)).split())
    assert "; 3 texts were cut, with 7 rationale spans; " in text
    assert "cut" not in shown(caption(record))


@pytest.mark.parametrize(("drop", "said"), [(0.25, "25.0% fewer"), (-0.5, "50.0% more")])
def test_the_caption_says_what_rationales_hold(drop: float, said: str) -> None:
    made = make_record(0.2, -0.6)
    record = made.model_copy(update={"model": made.model.model_copy(update={"tpr_drop": drop})})
    assert f"it finds {said} labels (tpr_drop)" in " ".join(shown(caption(record)).split())
