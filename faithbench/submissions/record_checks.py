"""What can be proved of a submission's record without its model: all but the values themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import Dataset
from faithbench.metrics.registry import Measure, Metric, case_metrics
from faithbench.records.identity import identity_of, place_of, run_key
from faithbench.records.rows import ResultRow
from faithbench.records.schema import PROTOCOL, Record
from faithbench.records.summary import accuracy_of, cost_facts, metric_facts, tpr_drop_of
from faithbench.run.request import wanted_metrics
from faithbench.submissions.entry import Entry, refuse_invisible
from faithbench.submissions.faults import Fault, close, differing, told
from faithbench.submissions.rules import PACKAGE, SEED, SEEDS, digests_of

CHUNK, BUDGET = 16, 2048  # of every run
_LARGEST = 1e6
_LONGEST = 100


def prove_record(
    folder: Path, file: str, entry: Entry, data: Dataset, record: Record, rows: Sequence[ResultRow]
) -> Iterator[Fault]:
    """Prove that names, versions, ids and sums are what they should be."""
    task = data.task
    yield from differing(file, "task", record.task, {
        "version": task.version, "kind": task.kind, "n": len(rows),
        "data_sha256": data.sha256, "data_checked": data.checked, "rationale": data.rationale,
    })  # fmt: skip
    yield from differing(file, "explainer", record.explainer, {
        "name": entry.name, "package": PACKAGE, "version": "", "settings": entry.settings,
        "assets": digests_of(folder, entry, task.name), "largest_gap": None,
    })  # fmt: skip
    yield from differing(file, "protocol", record.protocol, {
        "version": PROTOCOL, "operator": "mask", "long": "truncate",
    })  # fmt: skip
    yield from differing(file, "model", record.model, {
        "labels": task.labels, "dtype": "float32", "precision": None,
        "accuracy": accuracy_of(rows), "tpr_drop": tpr_drop_of(rows),
    })  # fmt: skip
    yield from differing(file, "timing", record.timing, {
        "alone": 0, "seconds_median": None, "seconds_ci95": None, "peak_memory_bytes": None,
    })  # fmt: skip
    seconds = record.timing.seconds_total
    if (seconds is None) != (entry.kind == "attributions") or (seconds or 0) < 0:
        yield Fault(file, "timing.seconds_total", f"found {seconds}, which no run here measured")
    yield from differing(file, "", record, {"cost": cost_facts(rows)})
    yield from _prove_texts(file, record)
    several = len(record.seeds) > 1
    seeds = tuple(range(SEED, SEED + (SEEDS if several else 1)))
    yield from differing(file, "", record, {"seeds": seeds})
    metrics = [
        metric for metric in wanted_metrics("all", data, several_seeds=several) if metric.in_rows
    ]
    faults = [*_prove_rows(file, data, rows, metrics, len(seeds))]
    yield from faults
    if not faults:  # or there is nothing to add up
        yield from _prove_means(file, data, record, rows, metrics)


def prove_place(
    file: str, entry: Entry, record: Record, rows: Sequence[ResultRow], key: str
) -> Iterator[Fault]:
    """Prove that a record lies where its content says, and that its rows belong to it."""
    digest = identity_of(record, rows).digest
    wanted = f"records/{place_of(record, entry.name, digest)}.json"
    if file != wanted:
        yield Fault(file, "path", f"its content belongs at {wanted}")
    expected = run_key(
        digest,
        labels=[entry.name],
        chunk=CHUNK,
        budget=BUDGET,
        device=record.environment.device,
    )
    if key != expected:
        yield Fault(record.rows.file, "key", told(key, expected))


def _prove_rows(
    file: str, data: Dataset, rows: Sequence[ResultRow], metrics: Sequence[Metric], seeds: int
) -> Iterator[Fault]:
    """Prove that the rows are those of the task's examples, each once, and within range."""
    ids, wanted = [row.id for row in rows], [example.id for example in data.examples]
    if ids != wanted:
        missing = [name for name in wanted if name not in set(ids)]
        said = f"example {missing[0]!r} is missing" if missing else "not the task's, in its order"
        yield Fault(file, "rows.id", f"{said} (of {len(wanted)} examples)")
        return
    for row, example in zip(rows, data.examples, strict=True):
        place = f"rows[{row.id}]"
        yield from differing(file, place, row, {
            "label": example.label, "forwards": None, "backwards": None, "gap": None,
        })  # fmt: skip
        if isinstance(row.target, int):
            yield from differing(file, place, row, {"right": row.target == example.label})
        if not 0 <= row.probability <= 1 or any(not 0 <= f <= 1 for f in row.curve):
            yield Fault(file, f"{place}.probability", "found one outside 0 to 1")
        if len(row.more_scores) != seeds - 1:
            yield Fault(file, f"{place}.more_scores", told(len(row.more_scores), seeds - 1))
        if row.distinct_rows > row.rows_asked:
            yield Fault(file, f"{place}.distinct_rows", "more than were asked for")
        yield from _prove_values(file, place, row, metrics, seeds)


def _prove_values(
    file: str, place: str, row: ResultRow, metrics: Sequence[Metric], seeds: int
) -> Iterator[Fault]:
    """Prove that a row has every metric's value, within its range and as its seeds say."""
    names = {metric.name for metric in metrics}
    if set(row.values) != names:
        odd = sorted(set(row.values) ^ names)
        yield Fault(file, f"{place}.values", f"{odd[0]!r} is missing, or not asked for")
        return
    for metric in metrics:
        value, where = row.values[metric.name], f"{place}.values.{metric.name}"
        own = row.by_seed.get(metric.name, ())
        for one in (value, *own):
            try:
                metric.checked(one)
            except FaithbenchError:
                yield Fault(file, where, f"found {one}, its range is {metric.low} to {metric.high}")
            if one is not None and abs(one) > _LARGEST:
                yield Fault(file, where, f"found {one}, which no probability of a model gives")
        under_each = seeds > 1 and metric.per_seed
        if len(own) != (seeds if under_each else 0):
            yield Fault(file, f"{place}.by_seed.{metric.name}", told(len(own), seeds))
        elif own and not close(value, _mean(own), 2e-9):
            yield Fault(file, where, f"is not the mean of its seeds, {told(value, _mean(own))}")
        if isinstance(metric, Measure) and value is not None:
            yield Fault(file, where, "nobody here can have measured it")
    if len(row.curve) != 9:
        yield Fault(file, f"{place}.curve", told(len(row.curve), 9))
        return
    for metric in case_metrics(metrics):
        mean_fall = row.probability - sum(row.curve) / 9
        if metric.keeps_curve and not close(row.values[metric.name], mean_fall, 1e-8):
            where = f"{place}.values.{metric.name}"
            yield Fault(file, where, "does not follow from probability and curve")


def _prove_means(
    file: str, data: Dataset, record: Record, rows: Sequence[ResultRow], metrics: Sequence[Metric]
) -> Iterator[Fault]:
    """Prove each summary from the rows."""
    wanted = {
        metric.name: metric_facts(metric, rows, proxy=data.rationale == "proxy")
        for metric in metrics
    }
    if set(record.metrics) != set(wanted):
        odd = sorted(set(record.metrics) ^ set(wanted))
        yield Fault(file, "metrics", f"{odd[0]!r} is missing, or not known here")
        return
    for name, facts in wanted.items():
        yield from differing(file, f"metrics.{name}", record.metrics[name], dict(facts))


def _prove_texts(file: str, record: Record) -> Iterator[Fault]:
    """Prove that the words of a record that nothing else decides are short and visible."""
    facts: Mapping[str, object] = {
        **record.environment.packages,
        **{f"environment.packages.{name}": name for name in record.environment.packages},
        "environment.python": record.environment.python,
        "environment.platform": record.environment.platform,
        "environment.device": record.environment.device,
        "source.commit": record.source.commit,
    }
    for field, text in facts.items():
        if text is None:
            continue
        try:
            refuse_invisible(str(text))
        except ValueError as error:
            yield Fault(file, field[:60], str(error))
        if len(str(text)) > _LONGEST:
            yield Fault(file, field[:60], f"has more than {_LONGEST} characters")


def _mean(values: Sequence[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None
