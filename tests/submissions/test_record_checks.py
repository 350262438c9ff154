"""Checks of a record without its model: every change of it is found and named."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from faithbench.records import rows_file
from faithbench.records.identity import identity_of, run_key
from faithbench.run.job import Job
from faithbench.submissions.check import Checks, check_submission
from faithbench.submissions.entry import read_entry
from faithbench.submissions.record_checks import check_place, read_submitted
from tests.support.submissions import (
    Change,
    Copy,
    N,
    change_record,
    change_row,
    faults_of,
    record_of,
    replace_rows,
    rows_of,
)


@pytest.mark.parametrize(
    ("part", "key", "value", "message"),
    [
        ("task", "name", "agnews", "entry.toml names no scores of agnews"),
        ("task", "name", "../../tasks/sst2.toml", "no task named"),
        ("task", "name", "nothing", "no task named"),
        ("task", "version", 2, "task.version: found 2, expected 1"),
        ("task", "n", 5, "task.n: found 5, expected 4"),
        ("task", "split", "dev", "entry.toml names no scores of sst2 bundled dev"),
        ("task", "source", "folder", "entry.toml names no scores of sst2 folder test"),
        ("task", "data_sha256", "0" * 64, "task.data_sha256"),
        ("task", "rationale", "none", "task.rationale"),
        ("model", "name", "/etc", "is not one that anyone can get"),
        ("model", "name", "../x", "is not one that anyone can get"),
        ("model", "labels", ["a", "b"], "model.labels"),
        ("model", "accuracy", 0.99, "model.accuracy"),
        ("model", "tpr_drop", 0.99, "model.tpr_drop"),
        ("model", "sha256", "0" * 64, "path: its content belongs at"),
        ("explainer", "name", "lrp-mask", "explainer.name: found 'lrp-mask', expected 'my-w'"),
        ("explainer", "package", "faithbench", "explainer.package"),
        ("explainer", "settings", {"a": 1}, "explainer.settings"),
        ("explainer", "assets", {}, "explainer.assets"),
        ("protocol", "version", 2, "protocol.version"),
        ("protocol", "operator", "delete", "protocol.operator"),
        ("cost", "forwards_per_example", 0.0, "cost"),
        ("cost", "rows_asked", 1, "cost"),
        ("cost", "elsewhere_per_example", 0.1, "cost"),
        ("timing", "seconds_median", 1e-9, "timing.seconds_median"),
        ("environment", "python", "x" * 101, "environment.python: has more than 100"),
        ("environment", "platform", "<\u202e>", "environment.platform: has the control"),
        ("rows", "sha256", "0" * 64, "its record says"),
        ("rows", "file", "../other.rows.jsonl", "bare file name"),
        ("rows", "file", "other.rows.jsonl", "rows.file is 'other.rows.jsonl'"),
    ],
)
def test_a_changed_record_is_found(
    copy: Copy, checks: Checks, part: str, key: str, value: object, message: str
) -> None:
    folder = copy()
    change_record(folder, lambda record: record[part].update({key: value}))
    found = check_submission(folder, checks).faults
    assert found
    assert re.search(message, "\n".join(map(str, found)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.update(extra=1), "unknown key 'extra'"),
        (lambda r: r.pop("cost"), "key 'cost'"),
        (lambda r: r.update(schema=99), "made by a newer faithbench"),
        (lambda r: r.update(seeds=[7]), "seeds: found"),
        (lambda r: r.update(seeds=[0, 1, 2]), "more_scores: found 0, expected 2"),
        (lambda r: r["metrics"].pop("aopc"), "'aopc' is missing, or not known here"),
        (lambda r: r["metrics"].update(best=r["metrics"]["aopc"]), "'best' is missing, or not"),
        (lambda r: r["metrics"]["aopc"].update(mean=0.99), "metrics.aopc.mean: found 0.99"),
        (lambda r: r["metrics"]["aopc"].update(version=2), "metrics.aopc.version"),
        (lambda r: r["metrics"]["aopc"].update(n=3, skipped=1), "metrics.aopc.n"),
        (lambda r: r["metrics"]["lodds"].update(higher_is_better=True), "higher_is_better"),
        (lambda r: r["metrics"]["auprc"].update(proxy=True), "metrics.auprc.proxy"),
        (lambda r: r["metrics"]["aopc"].update(ci95=[0.9, 1.0]), "metrics.aopc.ci95"),
    ],
)
def test_a_changed_sum_is_found(copy: Copy, checks: Checks, change: Change, message: str) -> None:
    folder = copy()
    change_record(folder, change)
    assert message in faults_of(folder, checks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r.update(id="other"), "is missing (of 4 examples)"),
        (lambda r: r.update(label=1 - r["label"]), ".label"),
        (lambda r: r.update(right=not r["right"]), ".right"),
        (lambda r: r.update(probability=1.5), "probability: found one outside 0 to 1"),
        (lambda r: r.update(forwards=0), ".forwards: found 0, expected None"),
        (lambda r: r.update(elsewhere=0.1), ".elsewhere: found 0.1, expected 0.0"),
        (lambda r: r.update(curve=[]), ".curve: found 0, expected 9"),
        (lambda r: r["values"].update(aopc=2.0), "values.aopc: found 2.0, its range is -1 to 1"),
        (lambda r: r["values"].update(aopc=0.9), "values.aopc: does not follow"),
        (lambda r: r["values"].update(lodds=-1e300), "which no probability of a model gives"),
        (lambda r: r["values"].pop("auprc"), "values: 'auprc' is missing"),
        (lambda r: r["values"].update(max_sensitivity=0.0), "cannot be measured for replayed"),
        (lambda r: r["values"].update(tau_loo=1.0), "metrics.tau_loo.mean"),
        (lambda r: r["by_seed"].update(aopc=[1.0, 1.0]), "by_seed.aopc"),
        (lambda r: r.update(more_scores=[r["scores"]]), "more_scores: found 1, expected 0"),
        (lambda r: r["scores"].pop(), "scores for"),
        (lambda r: r.update(scores=[float("nan")] * len(r["scores"])), "JSON is malformed"),
        (lambda r: r.update(distinct_rows=10**6), "more than were asked for"),
    ],
)
def test_a_changed_row_is_found(copy: Copy, checks: Checks, change: Change, message: str) -> None:
    folder = copy()
    change_row(folder, change)
    assert message in faults_of(folder, checks)


def test_other_files_make_another_record(copy: Copy, checks: Checks) -> None:
    folder = copy()
    path = folder / "scores" / "sst2.jsonl"
    path.write_text(path.read_text().replace("1.0", "2.0"))
    message = faults_of(folder, checks)
    assert "explainer.assets: found {'scores/sst2.jsonl'" in message


def test_a_record_elsewhere_is_found(copy: Copy, checks: Checks) -> None:
    folder = copy()
    path = record_of(folder)
    for old in (path, path.with_suffix(".rows.jsonl")):
        old.rename(old.with_name(old.name.replace(path.stem, "my-w-00000000")))
    moved = record_of(folder)
    change_record(folder, lambda record: record["rows"].update(file=f"{moved.stem}.rows.jsonl"))
    expected = f"records/sst2-bundled/{path.parent.name}/{path.name}"
    assert f"path: its content belongs at {expected}" in faults_of(folder, checks)


def test_the_defaults_of_a_run_are_those_of_its_job(
    scored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = record_of(scored).relative_to(scored).as_posix()
    submitted = read_submitted(scored, record, read_entry(scored))
    assert [*check_place(submitted)] == []
    monkeypatch.setattr(Job, "chunk", 7)
    monkeypatch.setattr(Job, "budget", 99)
    (fault,) = check_place(submitted)
    assert (fault.file, fault.field) == (submitted.record.rows.file, "key")
    identity = identity_of(submitted.record, submitted.rows).digest
    key = run_key(identity, labels=["my-w"], chunk=7, budget=99, device="cpu")
    assert fault.problem == f"found '{submitted.key}', expected '{key}'"
    assert [*check_place(replace(submitted, key=key))] == []


def test_rows_are_read_and_parsed_once(scored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed = []
    parse = rows_file.parse_rows
    monkeypatch.setattr(rows_file, "parse_rows", lambda *args: parsed.append(1) or parse(*args))
    record = record_of(scored).relative_to(scored).as_posix()
    submitted = read_submitted(scored, record, read_entry(scored))
    assert parsed == [1]
    assert len(submitted.rows) == N and len(submitted.key) == 64


def test_a_record_without_rows_is_refused(copy: Copy, checks: Checks) -> None:
    folder = copy()
    head, _ = rows_of(folder).read_bytes().split(b"\n", 1)
    replace_rows(folder, head + b"\n")
    assert "holds no example; measure the submission again" in faults_of(folder, checks)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r["by_seed"].pop("aopc"), "by_seed.aopc: found 0, expected 3"),
        (lambda r: r["by_seed"]["lodds"].pop(), "by_seed.lodds: found 2, expected 3"),
        (lambda r: r["by_seed"].update(lodds=[-1, -1, -1]), "lodds: is not the mean of its seeds"),
        (lambda r: r["by_seed"].update(aopc=[2, 0, 0]), "aopc: found 2.0, its range is -1 to 1"),
        (lambda r: r["by_seed"].update(max_sensitivity=[0, 0, 0]), "by_seed.max_sensitivity"),
        (lambda r: r["by_seed"].update(best=[1, 1, 1]), "by_seed: 'best' is not asked for"),
        (lambda r: r["more_scores"].pop(), "more_scores: found 1, expected 2"),
    ],
)
def test_values_under_several_seeds_must_agree(
    measured_under_seeds: Path, tmp_path: Path, checks: Checks, change: Change, message: str
) -> None:
    assert faults_of(measured_under_seeds, checks) == ""
    folder = Path(shutil.copytree(measured_under_seeds, tmp_path / measured_under_seeds.name))
    change_row(folder, change)
    assert message in faults_of(folder, checks)
