"""Checks of a submission's record that need no model: all but the values themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import Dataset
from faithbench.data.kinds import KINDS
from faithbench.metrics.kinds import Measure, Metric
from faithbench.metrics.registry import case_metrics
from faithbench.records.identity import identity_of, place_of, run_key
from faithbench.records.record import read
from faithbench.records.rows import ResultRow
from faithbench.records.rows_file import read_bytes, read_keyed_rows
from faithbench.records.schema import PROTOCOL, Record
from faithbench.records.summary import accuracy_of, cost_facts, metric_facts, tpr_drop_of
from faithbench.run.job import Job
from faithbench.run.request import wanted_metrics
from faithbench.submissions.entry import Entry, refuse_invisible
from faithbench.submissions.faults import Fault, close, mismatch, unequal_fields
from faithbench.submissions.rules import PACKAGE, SEED, SEEDS, digests_of

MAX_RECORD_BYTES = 200_000
MAX_VALUES = 8_000_000
"""Number of values in a file of rows at most: each takes up to 40 bytes of memory."""
_MAX_VALUE = 1e6  # some metrics have no bound, but those are log-odds, far below this
_MAX_TEXT = 100
_CURVE_POINTS = 9  # without the top 10, 20, ..., 90% of the tokens


@dataclass(frozen=True)
class SubmittedRecord:
    """A record of a submission, with its rows and the key of the run that wrote them.

    `file` is its path below the submission's folder.
    """

    folder: Path
    file: str
    entry: Entry
    record: Record
    rows: tuple[ResultRow, ...]
    key: str


def read_submitted(folder: Path, file: str, entry: Entry) -> SubmittedRecord:
    """Read a record with its rows, whose file has the same name but for the ending."""
    path = folder / file
    if path.stat().st_size > MAX_RECORD_BYTES:
        raise FaithbenchError(f"has more than {MAX_RECORD_BYTES} bytes; a record has far fewer")
    record = read(path)
    # The name is part of the record, so it could point to the rows of another submission.
    expected = f"{path.stem}.rows.jsonl"
    if record.rows.file != expected:
        raise FaithbenchError(
            f"rows.file is {record.rows.file!r:.60}, expected {expected!r}; "
            "a record's rows are next to it, under the same name"
        )
    data = read_bytes(path.with_name(expected), record.rows.sha256)
    if data.count(b",") > MAX_VALUES:  # commas part values: there are hardly more than these
        raise FaithbenchError(
            f"rows file {expected} has more than {MAX_VALUES} values; measure fewer examples"
        )
    key, rows = read_keyed_rows(path.with_name(expected), record.rows.sha256)
    if not rows:
        raise FaithbenchError(
            f"rows file {expected} holds no example; measure the submission again"
        )
    return SubmittedRecord(folder, file, entry, record, rows, key)


def check_record(submitted: SubmittedRecord, data: Dataset) -> Iterator[Fault]:
    """Check that names, versions, ids and sums are what a run on these data would write."""
    file, record, rows = submitted.file, submitted.record, submitted.rows
    for part, expected in _expected_facts(submitted, data).items():
        yield from unequal_fields(file, part, getattr(record, part), expected)
    seconds = record.timing.seconds_total
    if (seconds is None) != (submitted.entry.kind == "attributions") or (seconds or 0) < 0:
        yield Fault(file, "timing.seconds_total", f"found {seconds}, which no run here measured")
    yield from _check_texts(file, record)
    several = len(record.seeds) > 1
    seeds = tuple(range(SEED, SEED + (SEEDS if several else 1)))
    yield from unequal_fields(file, "", record, {"cost": cost_facts(rows), "seeds": seeds})
    metrics = [
        metric for metric in wanted_metrics("all", data, several_seeds=several) if metric.in_rows
    ]
    faults = [*_check_rows(file, data, rows, metrics, len(seeds))]
    yield from faults
    if not faults:  # summaries of wrong rows would only repeat the faults
        yield from _check_summaries(file, data, record, rows, metrics)


def check_place(submitted: SubmittedRecord) -> Iterator[Fault]:
    """Check that a record is at the path its content implies, and that its rows belong to it."""
    record, label = submitted.record, submitted.entry.name
    identity = identity_of(record, submitted.rows).digest
    path = f"records/{place_of(record, label, identity)}.json"
    if submitted.file != path:
        yield Fault(submitted.file, "path", f"its content belongs at {path}")
    expected = _key_of_run(identity, label, record.environment.device)
    if submitted.key != expected:
        yield Fault(record.rows.file, "key", mismatch(submitted.key, expected))


def _key_of_run(identity: str, label: str, device: str) -> str:
    """Return the key that a run of one submission, with default settings, gives to its rows."""
    return run_key(identity, labels=[label], chunk=Job.chunk, budget=Job.budget, device=device)


def _expected_facts(
    submitted: SubmittedRecord, data: Dataset
) -> Mapping[str, Mapping[str, object]]:
    """Return what each part of the record must say, as far as it follows from files and rows.

    Scores are replayed, so of passes, gaps, single times and memory nothing is known.
    """
    entry, rows, task = submitted.entry, submitted.rows, data.task
    return {
        "task": {
            "version": task.version,
            "kind": task.kind,
            "n": len(rows),
            "data_sha256": data.sha256,
            "data_checked": data.checked,
            "rationale": data.rationale,
        },
        "explainer": {
            "name": entry.name,
            "package": PACKAGE,
            "version": "",
            "settings": entry.settings,
            "assets": digests_of(submitted.folder, entry, task.name),
            "largest_gap": None,
            "revision": 1,
        },
        "protocol": {"version": PROTOCOL, "operator": "mask", "long": "truncate"},
        "model": {
            "labels": task.labels,
            "dtype": "float32",
            "precision": None,
            "accuracy": accuracy_of(rows),
            "tpr_drop": tpr_drop_of(rows),
        },
        "timing": {
            "alone": 0,
            "seconds_median": None,
            "seconds_ci95": None,
            "peak_memory_bytes": None,
        },
    }


def _check_rows(
    file: str, data: Dataset, rows: Sequence[ResultRow], metrics: Sequence[Metric], seeds: int
) -> Iterator[Fault]:
    """Check that the rows are those of the task's examples, each once, and within range."""
    ids, expected = [row.id for row in rows], [example.id for example in data.examples]
    if ids != expected:
        missing = [name for name in expected if name not in set(ids)]
        problem = f"example {missing[0]!r} is missing" if missing else "not in the task's order"
        yield Fault(file, "rows.id", f"{problem} (of {len(expected)} examples)")
        return
    for row, example in zip(rows, data.examples, strict=True):
        field = f"rows[{row.id}]"
        unknown = {"forwards": None, "backwards": None, "elsewhere": 0.0, "gap": None}
        facts = {"label": example.label, **unknown}
        yield from unequal_fields(file, field, row, facts)
        right = KINDS[data.task.kind].is_right(row.target, example)
        if right is not None:
            yield from unequal_fields(file, field, row, {"right": right})
        if not all(0 <= probability <= 1 for probability in (row.probability, *row.curve)):
            yield Fault(file, f"{field}.probability", "found one outside 0 to 1")
        if len(row.more_scores) != seeds - 1:
            yield Fault(file, f"{field}.more_scores", mismatch(len(row.more_scores), seeds - 1))
        if row.distinct_rows > row.rows_asked:
            yield Fault(file, f"{field}.distinct_rows", "more than were asked for")
        yield from _check_values(file, field, row, metrics, seeds)


def _check_values(
    file: str, field: str, row: ResultRow, metrics: Sequence[Metric], seeds: int
) -> Iterator[Fault]:
    """Check that a row has a value for every metric, in its range, and as its seeds imply."""
    names = {metric.name for metric in metrics}
    if set(row.values) != names:
        odd = sorted(set(row.values) ^ names)
        yield Fault(file, f"{field}.values", f"{odd[0]!r} is missing, or not asked for")
        return
    for name in sorted(set(row.by_seed) - names):
        yield Fault(file, f"{field}.by_seed", f"{name!r} is not asked for")
    for metric in metrics:
        value, where = row.values[metric.name], f"{field}.values.{metric.name}"
        by_seed = row.by_seed.get(metric.name, ())
        for each in (value, *by_seed):
            yield from _check_range(file, where, metric, each)
        if len(by_seed) != (seeds if seeds > 1 and metric.per_seed else 0):
            yield Fault(file, f"{field}.by_seed.{metric.name}", mismatch(len(by_seed), seeds))
        # Rows keep 9 decimals, of the mean and of each value it is taken over.
        elif by_seed and not close(value, _mean_of_present(by_seed), 2e-9):
            problem = mismatch(value, _mean_of_present(by_seed))
            yield Fault(file, where, f"is not the mean of its seeds, {problem}")
        if isinstance(metric, Measure) and value is not None:
            yield Fault(file, where, "cannot be measured for replayed scores")
    yield from _check_curve(file, field, row, metrics)


def _check_curve(
    file: str, field: str, row: ResultRow, metrics: Sequence[Metric]
) -> Iterator[Fault]:
    """Check the value of the metric that the curve belongs to: the mean fall of probability."""
    if len(row.curve) != _CURVE_POINTS:
        yield Fault(file, f"{field}.curve", mismatch(len(row.curve), _CURVE_POINTS))
        return
    mean_fall = row.probability - sum(row.curve) / _CURVE_POINTS
    for metric in case_metrics(metrics):
        if metric.keeps_curve and not close(row.values[metric.name], mean_fall, 1e-8):
            where = f"{field}.values.{metric.name}"
            yield Fault(file, where, "does not follow from probability and curve")


def _check_range(file: str, field: str, metric: Metric, value: float | None) -> Iterator[Fault]:
    try:
        metric.checked(value)
    except FaithbenchError:
        yield Fault(file, field, f"found {value}, its range is {metric.low} to {metric.high}")
    if value is not None and abs(value) > _MAX_VALUE:
        yield Fault(file, field, f"found {value}, which no probability of a model gives")


def _check_summaries(
    file: str, data: Dataset, record: Record, rows: Sequence[ResultRow], metrics: Sequence[Metric]
) -> Iterator[Fault]:
    """Check the mean, interval and counts of each metric against the rows."""
    proxy = data.rationale == "proxy"
    expected = {metric.name: metric_facts(metric, rows, proxy=proxy) for metric in metrics}
    if set(record.metrics) != set(expected):
        odd = sorted(set(record.metrics) ^ set(expected))
        yield Fault(file, "metrics", f"{odd[0]!r} is missing, or not known here")
        return
    for name, facts in expected.items():
        yield from unequal_fields(file, f"metrics.{name}", record.metrics[name], dict(facts))


def _check_texts(file: str, record: Record) -> Iterator[Fault]:
    """Check that texts which nothing else decides are short, and hold no invisible character."""
    environment = record.environment
    texts: Mapping[str, object] = {
        **environment.packages,
        **{f"environment.packages.{name}": name for name in environment.packages},
        "environment.python": environment.python,
        "environment.platform": environment.platform,
        "environment.device": environment.device,
        "source.commit": record.source.commit,
    }
    for field, text in texts.items():
        if text is None:
            continue
        try:
            refuse_invisible(str(text))
        except ValueError as error:
            yield Fault(file, field[:60], str(error))
        if len(str(text)) > _MAX_TEXT:
            yield Fault(file, field[:60], f"has more than {_MAX_TEXT} characters")


def _mean_of_present(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None
