"""What a run came to, for a notebook: tables, a data frame and comparisons of its explainers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.shown import Shown
from faithbench.records.comparison import Comparison, compare
from faithbench.records.schema import Record
from faithbench.run.finish import Outcome
from faithbench.run.job import Job
from faithbench.run.tables import ResultsTable

if TYPE_CHECKING:
    import pandas

    from faithbench.data.dataset import Dataset
    from faithbench.models.model import Model


@dataclass(frozen=True, repr=False)
class Evaluation(Shown):
    """Several explainers of one model on one data set, each with its record and its rows.

    `results` is the folder that the records were written to, or None if nothing was kept: the
    paths of the outcomes are then gone. `left_out` says of explainers that could not serve the
    model why, by their labels.
    """

    job: Job
    outcomes: tuple[Outcome, ...]
    results: Path | None
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def data(self) -> Dataset:
        """The examples that were explained."""
        return self.job.data

    @property
    def model(self) -> Model:
        """The model that was explained."""
        return self.job.model

    @property
    def labels(self) -> tuple[str, ...]:
        """The explainers: names, with the settings that are not the default."""
        return tuple(outcome.selected.label for outcome in self.outcomes)

    @property
    def records(self) -> Mapping[str, Record]:
        """The record of each explainer, by label."""
        return {outcome.selected.label: outcome.record for outcome in self.outcomes}

    def __getitem__(self, label: str) -> Outcome:
        """Return one explainer's outcome: `rows`, `record` and `path`."""
        for outcome in self.outcomes:
            if outcome.selected.label == label:
                return outcome
        raise unknown("explainer in this evaluation", label, self.labels)

    def table(self) -> ResultsTable:
        """Return the means of all metrics, with intervals, next to each other."""
        return ResultsTable(tuple(self.records.items()))

    def compare(self, metric: str) -> Comparison:
        """Test all pairs of explainers on one metric, paired by example, Holm over the pairs."""
        first = self.outcomes[0].record.metrics
        if metric not in first:
            raise unknown("metric in this evaluation", metric, first)
        if len(self.outcomes) < 2:
            raise FaithbenchError("compare needs two explainers or more; evaluate another one")
        table = {
            outcome.selected.label: [row.values[metric] for row in outcome.rows]
            for outcome in self.outcomes
        }
        return compare(metric, first[metric], table)

    def to_frame(self) -> pandas.DataFrame:
        """Return a line per explainer and example, with a column for each metric."""
        try:
            import pandas
        except ImportError as error:
            raise FaithbenchError(
                "to_frame needs pandas, which is not installed; install it, or read .records and "
                'the rows of each explainer, as in result["random"].rows'
            ) from error
        return pandas.DataFrame(
            [
                {
                    "explainer": outcome.selected.label,
                    "id": row.id,
                    "right": row.right,
                    "probability": row.probability,
                    **row.values,
                }
                for outcome in self.outcomes
                for row in outcome.rows
            ]
        )

    def __rich__(self) -> Group:
        """Return the table."""
        return self.table().__rich__()

    def _repr_html_(self) -> str:
        """Return the table for a notebook."""
        return self.table()._repr_html_()
