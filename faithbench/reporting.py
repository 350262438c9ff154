"""Turn the rows of a finished cell into its record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import faithbench
from faithbench.cells import Cell
from faithbench.metrics import Metric
from faithbench.plausibility import tpr_drop
from faithbench.provenance import environment, source_state
from faithbench.records import (
    CostFacts,
    ExplainerFacts,
    MetricFacts,
    ModelFacts,
    ProtocolFacts,
    Record,
    RowsFacts,
    SpanFacts,
    TaskFacts,
    TimingFacts,
)
from faithbench.rows import Row
from faithbench.stats import summarise

PROTOCOL = 1


def make_record(
    *,
    cell: Cell,
    rows: Sequence[Row],
    timing: TimingFacts,
    rows_file: tuple[str, str],
    truncated: int,
    threads: int,
    spans: SpanFacts | None = None,
    rationale_share: float | None = None,
    encoder: str | None = None,
) -> Record:
    """Summarise rows and add where they come from."""
    job, chosen = cell.job, cell.chosen
    data, model, n = job.data, job.model, len(rows)
    erasure_token = "" if job.operator == "delete" else model.erasure_token(job.operator)[0]
    forwards = sum(row.forwards for row in rows) / n
    backwards = sum(row.backwards for row in rows) / n
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
            rationale_share=None if rationale_share is None else round(rationale_share, 9),
            spans=spans,
        ),
        model=ModelFacts(
            name=model.public_name,
            revision=model.revision,
            weights_sha256=model.weights_sha256,
            dtype=str(model.dtype).removeprefix("torch."),
            accuracy=round(sum(row.right for row in rows) / n, 6),
            truncated=truncated,
            labels=model.labels,
            tpr_drop=_tpr_drop(rows),
            precision=job.precision,
        ),
        explainer=ExplainerFacts(
            name=chosen.name,
            package=chosen.package,
            version=chosen.version,
            settings=dict(chosen.settings),
            assets=cell.assets,
            largest_gap=max((abs(row.gap) for row in rows if row.gap is not None), default=None),
        ),
        seeds=cell.seeds,
        protocol=ProtocolFacts(
            version=PROTOCOL,
            operator=job.operator,
            erasure_token=erasure_token,
            long=job.long,
            encoder=encoder,
        ),
        metrics={
            metric.name: _metric_facts(metric, rows, data.rationale == "proxy")
            for metric in job.metrics
            if metric.name in rows[0].values
        },
        rows=RowsFacts(file=rows_file[0], sha256=rows_file[1]),
        cost=CostFacts(
            rows_asked=sum(row.rows_asked for row in rows),
            distinct_rows=sum(row.distinct_rows for row in rows),
            forwards_per_example=round(forwards, 6),
            backwards_per_example=round(backwards, 6),
            forward_equivalents_per_example=round(forwards + 2 * backwards, 6),
        ),
        timing=timing,
        environment=environment(str(model.device), threads),
        source=source_state(Path(faithbench.__file__).parents[1]),
    )


def _tpr_drop(rows: Sequence[Row]) -> float | None:
    """Compare how often the label is found with and without the rationale's words."""
    pairs = [
        (row.right, row.right_without_rationale)
        for row in rows
        if row.right_without_rationale is not None
    ]
    drop = tpr_drop([before for before, _ in pairs], [after for _, after in pairs])
    return None if drop is None else round(drop, 9)


def _metric_facts(metric: Metric, rows: Sequence[Row], proxy: bool) -> MetricFacts:
    mean, interval, n, skipped = summarise([row.values[metric.name] for row in rows])
    return MetricFacts(
        version=metric.version,
        family=metric.family,
        higher_is_better=metric.higher_is_better,
        mean=mean,
        ci95=interval,
        n=n,
        skipped=skipped,
        proxy=proxy and metric.family == "plausibility",
    )
