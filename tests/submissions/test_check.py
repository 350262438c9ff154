"""Checks of a submission: a measured one is fine, and every change of it is found and named."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import faithbench
from faithbench.submissions.check import Checks, check_submission
from tests.support.submissions import N

Change = Callable[[dict[str, Any]], object]
Copy = Callable[[], Path]


@pytest.fixture
def checks(tmp_path: Path) -> Checks:
    return Checks(None, tmp_path / "cache")


@pytest.fixture(scope="module")
def in_full(tmp_path_factory: Any) -> Checks:
    return Checks(None, Path(tmp_path_factory.mktemp("cache")), N, with_model=True)


def record_of(folder: Path) -> Path:
    (path,) = folder.glob("records/*/*/*.json")
    return path


def change_record(folder: Path, change: Change) -> None:
    path = record_of(folder)
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


def change_row(folder: Path, change: Change, place: int = 0) -> None:
    """Change a row, and the record's digest of them: a forger would do no less."""
    path = record_of(folder).with_suffix(".rows.jsonl")
    lines = path.read_text().splitlines()
    row = json.loads(lines[place + 1])
    change(row)
    lines[place + 1] = json.dumps(row)
    data = "".join(f"{line}\n" for line in lines).encode()
    path.write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    change_record(folder, lambda record: record["rows"].update(sha256=digest))


def faults(folder: Path, checks: Checks) -> str:
    found = [str(fault) for fault in check_submission(folder, checks).faults]
    assert all("\n" not in line and len(line) < 600 for line in found)
    return "\n".join(found)


def test_what_was_measured_is_fine(scored: Path, checks: Checks, in_full: Checks) -> None:
    assert check_submission(scored, checks).faults == ()
    assert check_submission(scored, in_full).faults == ()
    assert check_submission(scored, checks).records == 1


@pytest.mark.parametrize(
    ("part", "key", "value", "said"),
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
        ("model", "weights_sha256", "0" * 64, "path: its content belongs at"),
        ("explainer", "name", "lrp-mask", "explainer.name: found 'lrp-mask', expected 'my-w'"),
        ("explainer", "package", "faithbench", "explainer.package"),
        ("explainer", "settings", {"a": 1}, "explainer.settings"),
        ("explainer", "assets", {}, "explainer.assets"),
        ("protocol", "version", 2, "protocol.version"),
        ("protocol", "operator", "delete", "protocol.operator"),
        ("cost", "forwards_per_example", 0.0, "cost"),
        ("cost", "rows_asked", 1, "cost"),
        ("timing", "seconds_median", 1e-9, "timing.seconds_median"),
        ("environment", "python", "x" * 101, "environment.python: has more than 100"),
        ("environment", "platform", "<\u202e>", "environment.platform: has the control"),
        ("rows", "sha256", "0" * 64, "its record says"),
        ("rows", "file", "../other.rows.jsonl", "bare file name"),
        ("rows", "file", "other.rows.jsonl", "rows.file is 'other.rows.jsonl'"),
    ],
)
def test_a_changed_record_is_found(
    copy: Copy, checks: Checks, part: str, key: str, value: object, said: str
) -> None:
    folder = copy()
    change_record(folder, lambda record: record[part].update({key: value}))
    found = check_submission(folder, checks).faults
    assert found
    assert re.search(said, "\n".join(map(str, found)))


@pytest.mark.parametrize(
    ("change", "said"),
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
def test_a_changed_sum_is_found(copy: Copy, checks: Checks, change: Change, said: str) -> None:
    folder = copy()
    change_record(folder, change)
    assert said in faults(folder, checks)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r.update(id="other"), "is missing (of 4 examples)"),
        (lambda r: r.update(label=1 - r["label"]), ".label"),
        (lambda r: r.update(right=not r["right"]), ".right"),
        (lambda r: r.update(probability=1.5), "probability: found one outside 0 to 1"),
        (lambda r: r.update(forwards=0), ".forwards: found 0, expected None"),
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
def test_a_changed_row_is_found(copy: Copy, checks: Checks, change: Change, said: str) -> None:
    folder = copy()
    change_row(folder, change)
    assert said in faults(folder, checks)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda r: r["tokens"].__setitem__(0, "x"), ".tokens: found"),
        (lambda r: r.update(scores=[1.0] * len(r["scores"])), ".scores: found"),
    ],
)
def test_a_row_of_other_scores_is_found(
    copy: Copy, in_full: Checks, change: Change, said: str
) -> None:
    folder = copy()
    change_row(folder, change)
    assert said in faults(folder, in_full)


@pytest.mark.parametrize("name", ["auprc", "lodds"])
def test_a_value_that_adds_up_is_still_measured_again(
    copy: Copy, checks: Checks, in_full: Checks, name: str
) -> None:
    from faithbench.metrics.registry import METRICS
    from faithbench.records.rows_file import read_rows
    from faithbench.records.summary import metric_facts

    folder = copy()
    change_row(folder, lambda row: row["values"].update({name: 0.777}))
    rows = read_rows(record_of(folder).with_suffix(".rows.jsonl"))
    facts = metric_facts(METRICS[name], rows, proxy=False)
    change_record(
        folder, lambda record: record["metrics"].update({name: facts.model_dump(mode="json")})
    )
    assert faults(folder, checks) == ""
    said = faults(folder, in_full)
    assert f"rows[{rows[0].id}].values.{name}: found 0.777, expected" in said


def test_data_that_are_not_here_are_asked_for(copy: Copy, checks: Checks) -> None:
    folder = copy()
    entry = folder / "entry.toml"
    entry.write_text(entry.read_text().replace('"bundled"', '"folder"'))
    change_record(folder, lambda record: record["task"].update(source="folder"))
    assert "no data folder, give --data" in faults(folder, checks)


def test_other_files_make_another_record(copy: Copy, checks: Checks) -> None:
    folder = copy()
    path = folder / "scores" / "sst2.jsonl"
    path.write_text(path.read_text().replace("1.0", "2.0"))
    said = faults(folder, checks)
    assert "explainer.assets: found {'scores/sst2.jsonl'" in said


def test_a_record_elsewhere_is_found(copy: Copy, checks: Checks) -> None:
    folder = copy()
    path = record_of(folder)
    for old in (path, path.with_suffix(".rows.jsonl")):
        old.rename(old.with_name(old.name.replace(path.stem, "my-w-00000000")))
    moved = record_of(folder)
    change_record(folder, lambda record: record["rows"].update(file=f"{moved.stem}.rows.jsonl"))
    said = faults(folder, checks)
    assert (
        f"path: its content belongs at records/sst2-bundled/{path.parent.name}/{path.name}" in said
    )


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("scores/agnews.jsonl", "", "is not named in entry.toml"),
        ("explainer.py", "", "explainer.py: file: does not belong to attributions"),
        ("records/a-b/c-d/x.rows.jsonl", "", "is without its record"),
        ("records/a-b/c-d/x.json", "{}", "has no schema|cannot|schema"),
        ("records/a-b/c-d/x.json", "[" * 99_999, "not valid JSON|nested"),
        ("records/a-b/c-d/x.json", "\x80\x04pickle", "not valid JSON|schema"),
        ("records/a-b/c-d/x.json", " " * 300_000, "has more than 200000 bytes"),
        ("x.pkl", "", "does not belong there"),
    ],
)
def test_stray_files_are_found(copy: Copy, checks: Checks, path: str, text: str, said: str) -> None:
    folder = copy()
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_text(text)
    assert re.search(said, faults(folder, checks))


def test_checking_writes_nothing(copy: Copy, checks: Checks) -> None:
    folder = copy()
    change_record(folder, lambda record: record["task"].update(n=9))
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    check_submission(folder, checks)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_without_a_model_nothing_heavy_is_loaded(scored: Path, tmp_path: Path) -> None:
    code = f"""
import sys
from pathlib import Path
from faithbench.submissions.check import Checks, check_submission
print(check_submission(Path({str(scored)!r}), Checks(None, Path({str(tmp_path)!r}))))
print(sorted({{"torch", "transformers", "scipy.stats", "sklearn"}} & set(sys.modules)))
"""
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(faithbench.__file__).parents[1])},
    )  # fmt: skip
    assert found.stdout.splitlines() == ["Checked(records=1, faults=())", "[]"]
