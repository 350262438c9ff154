"""Published records completed: new metrics in, everything else as it was, changed ones left."""

from __future__ import annotations

import gzip
import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.registry import is_control
from faithbench.leaderboard.complete import (
    _is_named_after,
    _selected,
    complete_records,
    due_metrics,
    due_revision,
)
from faithbench.leaderboard.plan import Plan, PlannedRun, run_plan
from faithbench.records.identity import identity_of
from faithbench.records.record import read, write
from faithbench.records.rows import ResultRow, to_header, to_line
from faithbench.records.rows_file import read_keyed_rows
from faithbench.records.schema import Record, RowsFacts

OVERLAPS = ("iou_semantic", "iou_lexical", "iou_labels")
RUN = PlannedRun(
    name="one", task="sst2", limit=6, explainers=("random", "input-x-gradient"), seeds=2
)


def quiet(*_: object) -> None:
    return


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two explainers on bundled texts, which have rationales by people: `human` takes part."""
    folder = tmp_path_factory.mktemp("published")
    records = folder / "records"
    run_plan(
        Plan(runs=(RUN,)), data=None, results=folder / "results", records=records, only=(),
        say=quiet, progress=quiet,
    )  # fmt: skip
    return records


def changed(
    path: Path,
    row_of: Callable[[ResultRow], ResultRow],
    record_of: Callable[[Record], Record] = lambda record: record,
) -> Path:
    """Write a published record with other rows and facts, under the name that it then has."""
    record = record_of(read(path))
    key, old = read_keyed_rows(path.with_name(record.rows.file))
    rows = [row_of(row) for row in old]
    data = gzip.compress(to_header(key) + b"".join(map(to_line, rows)), mtime=0)
    path.unlink()
    path.with_name(record.rows.file).unlink()
    stem = f"{path.stem[:-9]}-{identity_of(record, rows).digest[:8]}"
    facts = RowsFacts(file=f"{stem}.rows.jsonl.gz", sha256=hashlib.sha256(data).hexdigest())
    path.with_name(facts.file).write_bytes(data)
    write(record.model_copy(update={"rows": facts}), path.with_name(f"{stem}.json"))
    return path.with_name(f"{stem}.json")


@pytest.fixture
def aged(published: Path, tmp_path: Path) -> Path:
    """The same records as an earlier version had them: raw overlaps, controls that never move."""
    folder = tmp_path / "records"
    shutil.copytree(published, folder)
    for path in sorted(folder.rglob("*.json")):
        control = is_control(read(path).explainer.name)

        def row_of(row: ResultRow, control: bool = control) -> ResultRow:
            seeds = {name: (0.5,) * len(row.by_seed[name]) for name in OVERLAPS if row.by_seed}
            values = dict.fromkeys(OVERLAPS, 0.5) | ({"max_sensitivity": 0.0} if control else {})
            return msgspec.structs.replace(
                row, values=row.values | values, by_seed=row.by_seed | seeds
            )

        def record_of(record: Record) -> Record:
            facts = {n: record.metrics[n].model_copy(update={"version": 1}) for n in OVERLAPS}
            still = record.metrics["max_sensitivity"].model_copy(update={"mean": 0.0, "n": 6})
            facts |= {"max_sensitivity": still} if is_control(record.explainer.name) else {}
            return record.model_copy(update={"metrics": record.metrics | facts})

        changed(path, row_of, record_of)
    return folder


def complete(folder: Path, *only: str) -> list[str]:
    lines: list[str] = []
    complete_records(
        folder, data=None, results=folder.with_name("complete"), only=only, say=lines.append,
        progress=quiet,
    )  # fmt: skip
    return lines


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_old_records_become_what_a_run_would_publish_now(published: Path, aged: Path) -> None:
    """Names, rows and records, to the last byte: timing and provenance are those of the run."""
    before = content(aged)
    assert not set(before) & set(content(published)), "versions are a part of the name"
    lines = complete(aged)
    assert content(aged) == content(published)
    assert sum("as it is a control" in line for line in lines) == 2
    assert sum("0 of 6 explanations differ" in line for line in lines) == 3
    assert complete(aged) == [
        "all records have the current version of all metrics of words and scores, and the cost of "
        "their explainer's current revision"
    ]
    # A completion that was stopped before it removed old records goes on with its results.
    for name, data in before.items():
        (aged / name).write_bytes(data)
    result = next(aged.with_name("complete").rglob("random-*.json"))
    stamp = result.stat().st_mtime_ns
    complete(aged)
    assert content(aged) == content(published) and result.stat().st_mtime_ns == stamp


def test_a_record_of_an_older_revision_gets_the_cost_of_today(tmp_path: Path) -> None:
    """Everything else stays, to the last byte; `leaderboard run` then misses nothing."""
    planned = PlannedRun(name="one", task="sst2", limit=6, explainers=("attention",), seeds=1)
    records = tmp_path / "records"

    def run() -> list[str]:
        lines: list[str] = []
        run_plan(
            Plan(runs=(planned,)), data=None, results=tmp_path / "results", records=records,
            only=(), say=lines.append, progress=quiet,
        )  # fmt: skip
        return lines

    run()
    path = next(records.rglob("attention-*.json"))
    before, rows = read(path), read_keyed_rows(path.with_name(read(path).rows.file))[1]
    assert (before.explainer.revision, before.cost.forward_equivalents_per_example) == (2, 1)

    def first(record: Record) -> Record:
        explainer = record.explainer.model_copy(update={"revision": 1})
        cost = record.cost.model_copy(
            update={"backwards_per_example": 1.0, "forward_equivalents_per_example": 3.0}
        )
        return record.model_copy(update={"explainer": explainer, "cost": cost})

    aged = changed(path, lambda row: msgspec.structs.replace(row, backwards=1), first)
    assert aged != path
    lines = complete(records)
    assert any("1 records lack the cost of revision 2" in line for line in lines)
    assert any("completed as attention-" in line for line in lines)
    after = read(path)
    assert after.model_copy(update={"timing": before.timing}) == before
    assert after.timing.seconds_median is not None
    assert read_keyed_rows(path.with_name(after.rows.file))[1] == rows and not aged.exists()
    assert run() == ["one: 0 of 2 explainers to run"]


def test_a_record_whose_name_means_other_settings_by_now_is_left(published: Path) -> None:
    """A default of `lrp` has changed: its records are made anew, not brought up to date."""
    record = read(next(published.rglob("input-x-gradient-*.json")))
    settings: dict[str, bool | int | float | str] = {"precision": "float64"}
    explainer = record.explainer.model_copy(update={"name": "lrp", "settings": settings})
    old = record.model_copy(update={"explainer": explainer})
    assert due_revision(old) == 2
    selected = _selected(old)
    assert selected is not None and selected.label == "lrp:precision=float64"
    assert not _is_named_after(Path("lrp-01234567.json"), selected)
    assert _is_named_after(Path("lrp-precision=float64-01234567.json"), selected)


def test_what_has_changed_since_is_left_as_it_is(aged: Path) -> None:
    changed(
        next(aged.rglob("input-x-gradient-*.json")),
        lambda row: msgspec.structs.replace(row, scores=tuple(1.01 * s for s in row.scores)),
    )
    changed(
        next(aged.rglob("human-*.json")),
        lambda row: msgspec.structs.replace(row, probability=row.probability / 2),
    )
    changed(
        next(aged.rglob("random-*.json")),
        lambda row: row,
        lambda record: record.model_copy(
            update={"explainer": record.explainer.model_copy(update={"package": "theirs"})}
        ),
    )
    gradient = {n: d for n, d in content(aged).items() if "gradient" in n}
    lines = dict(
        line.rsplit("/", maxsplit=1)[-1].split(": ", maxsplit=1) for line in complete(aged)
    )
    told = {name.rsplit("-", maxsplit=1)[0]: line for name, line in lines.items()}
    assert told["input-x-gradient"] == ("left as it is, 6 of 6 explanations changed: run it again")
    assert told["human"] == "left as it is, the model predicts something else now: run it again"
    assert told["random"] == "left as it is, its explainer does not come with faithbench"
    assert gradient.items() <= content(aged).items()
    assert all(read(p).metrics["iou_lexical"].version == 1 for p in aged.rglob("*.json"))


def test_what_a_record_lacks(published: Path) -> None:
    record = read(next(published.rglob("random-*.json")))
    assert due_metrics(record) == ()
    kept = {n: f for n, f in record.metrics.items() if n not in ("auprc", "seed_agreement")}
    lacking = record.model_copy(update={"metrics": kept})
    assert {metric.name for metric in due_metrics(lacking)} == {"auprc", "seed_agreement"}
    alone = lacking.model_copy(
        update={"seeds": (0,), "task": record.task.model_copy(update={"rationale": "none"})}
    )
    assert due_metrics(alone) == ()


def test_a_record_of_faithfulness_alone_lacks_nothing(published: Path) -> None:
    record = read(next(published.rglob("*.json")))
    alone = {"aopc": record.metrics["aopc"]}
    assert due_metrics(record.model_copy(update={"metrics": alone})) == ()


def test_names_and_folders_are_checked(aged: Path, tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="no task or folder of records named 'sst3'"):
        complete(aged, "sst3")
    with pytest.raises(FaithbenchError, match="does not exist; check --records"):
        complete(tmp_path / "none")
