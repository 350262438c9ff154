"""Turn the rows of a finished cell into its record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import faithbench
from faithbench.aggregates import (
    accuracy_of,
    cost_facts,
    largest_gap_of,
    metric_facts,
    tpr_drop_of,
)
from faithbench.cells import Cell
from faithbench.provenance import environment, source_state
from faithbench.records import (
    PROTOCOL,
    ExplainerFacts,
    ModelFacts,
    ProtocolFacts,
    Record,
    RowsFacts,
    SpanFacts,
    TaskFacts,
    TimingFacts,
)
from faithbench.rows import Row


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
            accuracy=accuracy_of(rows),
            truncated=truncated,
            labels=model.labels,
            tpr_drop=tpr_drop_of(rows),
            precision=job.precision,
        ),
        explainer=ExplainerFacts(
            name=chosen.name,
            package=chosen.package,
            version=chosen.version,
            settings=dict(chosen.settings),
            assets=cell.assets,
            largest_gap=largest_gap_of(rows),
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
            metric.name: metric_facts(metric, rows, proxy=data.rationale == "proxy")
            for metric in job.metrics
            if metric.name in rows[0].values
        },
        rows=RowsFacts(file=rows_file[0], sha256=rows_file[1]),
        cost=cost_facts(rows),
        timing=timing,
        environment=environment(str(model.device), threads),
        source=source_state(Path(faithbench.__file__).parents[1]),
    )
