"""Checks of a record that measure again: values that add up must also be the model's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from faithbench.core.types import Case, Outputs
from faithbench.metrics.registry import METRICS, case_metrics
from faithbench.records.rows_file import read_rows
from faithbench.records.summary import metric_facts
from faithbench.submissions import model_checks
from faithbench.submissions.check import Checks
from faithbench.submissions.entry import read_entry
from faithbench.submissions.measure import Setup
from faithbench.submissions.model_checks import check_measured, sampled_indices
from faithbench.submissions.record_checks import SubmittedRecord, read_submitted
from tests.support.submissions import (
    Change,
    Copy,
    N,
    change_record,
    change_row,
    faults_of,
    record_of,
)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["tokens"].__setitem__(0, "x"), ".tokens: found"),
        (lambda r: r.update(scores=[1.0] * len(r["scores"])), ".scores: found"),
    ],
)
def test_a_row_of_other_scores_is_found(
    copy: Copy, checks_with_model: Checks, change: Change, message: str
) -> None:
    folder = copy()
    change_row(folder, change)
    assert message in faults_of(folder, checks_with_model)


@pytest.mark.parametrize("name", ["auprc", "lodds"])
def test_a_value_that_adds_up_is_still_measured_again(
    copy: Copy, checks: Checks, checks_with_model: Checks, name: str
) -> None:
    folder = copy()
    change_row(folder, lambda row: row["values"].update({name: 0.777}))
    rows = read_rows(record_of(folder).with_suffix(".rows.jsonl"))
    facts = metric_facts(METRICS[name], rows, proxy=False)
    change_record(
        folder, lambda record: record["metrics"].update({name: facts.model_dump(mode="json")})
    )
    assert faults_of(folder, checks) == ""
    message = faults_of(folder, checks_with_model)
    assert f"rows[{rows[0].id}].values.{name}: found 0.777, expected" in message


@pytest.fixture
def submitted(scored: Path) -> SubmittedRecord:
    record = record_of(scored).relative_to(scored).as_posix()
    return read_submitted(scored, record, read_entry(scored))


def changed(submitted: SubmittedRecord, **fields: object) -> SubmittedRecord:
    """Change fields of the first row."""
    first, *others = submitted.rows
    return replace(submitted, rows=(msgspec.structs.replace(first, **fields), *others))


def found(submitted: SubmittedRecord, setup: Setup, cache: Path) -> list[str]:
    return [fault.field for fault in check_measured(submitted, setup, N, cache)]


def test_only_a_difference_beyond_float32_is_a_fault(
    submitted: SubmittedRecord, small_setup: Setup, tmp_path: Path
) -> None:
    first = submitted.rows[0]
    near = changed(
        submitted,
        probability=first.probability * (1 - 5e-5),
        curve=tuple(point * (1 - 5e-5) for point in first.curve),
    )
    assert found(near, small_setup, tmp_path) == []
    far = changed(
        submitted,
        probability=first.probability * (1 - 2e-4),
        curve=(first.curve[0] * (1 - 3e-4), *first.curve[1:]),
    )
    assert found(far, small_setup, tmp_path) == [
        f"rows[{first.id}].probability",
        f"rows[{first.id}].curve[0]",
    ]


def test_each_metric_has_its_own_tolerance(
    submitted: SubmittedRecord, small_setup: Setup, tmp_path: Path
) -> None:
    values = submitted.rows[0].values
    field = f"rows[{submitted.rows[0].id}].values"
    shifts = {"tau_loo": (5e-5, 2e-3), "lodds": (5e-5, 2e-3), "auprc": (1e-9, 1e-7)}
    for name, (within, beyond) in shifts.items():
        near = changed(submitted, values={**values, name: values[name] - within})
        assert found(near, small_setup, tmp_path) == []
        far = changed(submitted, values={**values, name: values[name] - beyond})
        assert found(far, small_setup, tmp_path) == [f"{field}.{name}"]


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"target": 2}, "target"),
        ({"rows_asked": 1}, "rows_asked"),
        ({"distinct_rows": 1}, "distinct_rows"),
        ({"right_without_rationale": None}, "right_without_rationale"),
    ],
)
def test_facts_of_the_model_are_measured_again(
    submitted: SubmittedRecord,
    small_setup: Setup,
    tmp_path: Path,
    fields: dict[str, object],
    field: str,
) -> None:
    name = f"rows[{submitted.rows[0].id}].{field}"
    assert found(changed(submitted, **fields), small_setup, tmp_path) == [name]


def test_no_example_is_measured_on_other_tokens(
    submitted: SubmittedRecord, small_setup: Setup, tmp_path: Path
) -> None:
    first = submitted.rows[0]
    forged = changed(submitted, tokens=("x", *first.tokens[1:]), probability=0.1)
    assert found(forged, small_setup, tmp_path) == [f"rows[{first.id}].tokens"]


def test_a_sample_of_none_leaves_out_the_erasure_metrics_only(
    submitted: SubmittedRecord, small_setup: Setup, tmp_path: Path
) -> None:
    forged = changed(submitted, probability=0.1, rows_asked=1)
    fields = [fault.field for fault in check_measured(forged, small_setup, 0, tmp_path)]
    assert fields == [f"rows[{submitted.rows[0].id}].probability"]


def test_several_seeds_are_measured_one_by_one(
    measured_under_seeds: Path, checks_with_model: Checks
) -> None:
    assert faults_of(measured_under_seeds, checks_with_model) == ""


def test_one_shift_of_every_row_is_found(
    submitted: SubmittedRecord, small_setup: Setup, tmp_path: Path
) -> None:
    rows = tuple(
        msgspec.structs.replace(
            row, values={**row.values, "tau_loo": row.values["tau_loo"] - 0.0499}
        )
        for row in submitted.rows
    )
    fields = found(replace(submitted, rows=rows), small_setup, tmp_path)
    assert fields == [f"rows[{row.id}].values.tau_loo" for row in rows]


def test_ranks_that_the_last_bits_decide_may_differ() -> None:
    (tau,) = [metric for metric in case_metrics(METRICS.values()) if metric.name == "tau_loo"]
    case = Case(
        np.array([3.0, 2.0, 1.0]), np.arange(3), 0.0, np.array([3.0, 2.0, 1.0]), np.arange(3)
    )
    apart = Outputs(np.log([0.2, 0.5, 0.9]), np.ones(3, dtype=bool))
    close = Outputs(np.log([0.2, 0.5, 0.500001]), np.ones(3, dtype=bool))
    assert model_checks._rounding_of(tau)(case, apart) == 0
    # One pair of three turned round: from 1 to 1/3.
    assert model_checks._rounding_of(tau)(case, close) == pytest.approx(2 / 3)


def test_the_sample_follows_from_the_record_and_the_secret(
    submitted: SubmittedRecord, copy: Copy
) -> None:
    many = replace(submitted, rows=submitted.rows * 50)
    first = sampled_indices(many, 8, "secret")
    assert len(set(first)) == 8 and sampled_indices(many, 8, "secret") == first
    assert sampled_indices(many, 8, "other") != first and sampled_indices(many, 8, "") != first
    folder = copy()
    change_record(folder, lambda record: record["environment"].update(python="3.11.99"))
    assert sampled_indices(replace(many, folder=folder), 8, "secret") != first
    assert sampled_indices(submitted, 9, "") == [0, 1, 2, 3]


def test_a_metric_that_nothing_measures_again_may_have_no_values(
    submitted: SubmittedRecord, small_setup: Setup, tmp_path: Path
) -> None:
    values = {**submitted.rows[0].values, "max_sensitivity": 0.5}
    assert found(changed(submitted, values=values), small_setup, tmp_path) == [
        "metrics.max_sensitivity"
    ]
