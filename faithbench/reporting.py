"""Turn the rows of a finished cell into its record."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path

import faithbench
from faithbench.data import Dataset
from faithbench.encoding import Long
from faithbench.erasure import Operator
from faithbench.metrics import Metric
from faithbench.models import Model
from faithbench.provenance import environment, source_state
from faithbench.records import (
    CostFacts,
    ExplainerFacts,
    MetricFacts,
    ModelFacts,
    PrecisionFacts,
    ProtocolFacts,
    Record,
    RowsFacts,
    SpanFacts,
    TaskFacts,
    TimingFacts,
)
from faithbench.rows import Row
from faithbench.selection import Chosen
from faithbench.stats import summarise

PROTOCOL = 1


def make_record(
    *,
    data: Dataset,
    model: Model,
    chosen: Chosen,
    assets: dict[str, str],
    metrics: Sequence[Metric],
    operator: Operator,
    seed: int,
    rows: Sequence[Row],
    seconds: Sequence[float],
    rows_file: tuple[str, str],
    truncated: int,
    threads: int,
    long: Long = "truncate",
    precision: PrecisionFacts | None = None,
    spans: SpanFacts | None = None,
) -> Record:
    """Summarise rows and add where they come from."""
    n = len(rows)
    erasure_token = "" if operator == "delete" else model.erasure_token(operator)[0]
    return Record(
        schema=1,
        task=TaskFacts(
            name=data.task.name,
            version=data.task.version,
            kind=data.task.kind,
            split=data.split,
            n=n,
            source=data.source,
            data_sha256=data.sha256,
            data_checked=data.checked,
            rationale=data.rationale,
            spans=spans,
        ),
        model=ModelFacts(
            name=public_name(model),
            revision=model.revision,
            weights_sha256=model.weights_sha256,
            dtype=str(model.dtype).removeprefix("torch."),
            accuracy=round(sum(row.right for row in rows) / n, 6),
            truncated=truncated,
            labels=model.labels,
            precision=precision,
        ),
        explainer=ExplainerFacts(
            name=chosen.name,
            package=chosen.package,
            version=chosen.version,
            settings=dict(chosen.settings),
            assets=assets,
            largest_gap=max((abs(row.gap) for row in rows if row.gap is not None), default=None),
        ),
        seed=seed,
        protocol=ProtocolFacts(
            version=PROTOCOL, operator=operator, erasure_token=erasure_token, long=long
        ),
        metrics={metric.name: _metric_facts(metric, rows) for metric in metrics},
        rows=RowsFacts(file=rows_file[0], sha256=rows_file[1]),
        cost=CostFacts(
            rows_asked=sum(row.rows_asked for row in rows),
            distinct_rows=sum(row.distinct_rows for row in rows),
            forwards_per_example=round(sum(row.forwards for row in rows) / n, 6),
            backwards_per_example=round(sum(row.backwards for row in rows) / n, 6),
        ),
        timing=TimingFacts(
            seconds_median=statistics.median(seconds) if seconds else None,
            seconds_total=sum(seconds),
        ),
        environment=environment(str(model.device), threads),
        source=source_state(Path(faithbench.__file__).parents[1]),
    )


def public_name(model: Model) -> str:
    """Return a model's name without any folder of this machine."""
    return Path(model.name).name if Path(model.name).is_dir() else model.name


def _metric_facts(metric: Metric, rows: Sequence[Row]) -> MetricFacts:
    mean, interval, n, skipped = summarise([row.values[metric.name] for row in rows])
    return MetricFacts(
        version=metric.version,
        family=metric.family,
        higher_is_better=metric.higher_is_better,
        mean=mean,
        ci95=interval,
        n=n,
        skipped=skipped,
    )
