"""From a submission's scores to its records: the same run that every explainer gets."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from faithbench.core.files import temporary_folder
from faithbench.core.types import Encoding, Progress
from faithbench.data.dataset import Dataset
from faithbench.explainers.selection import Selected
from faithbench.models.encoding import encode
from faithbench.models.model import Model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.finish import Outcome
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.run.request import wanted_metrics
from faithbench.submissions.entry import Entry
from faithbench.submissions.replay import Replay, replay
from faithbench.submissions.rules import PACKAGE, SEED, SEEDS, digests_of
from faithbench.submissions.sandbox.client import ask_explainer
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.messages import Confined
from faithbench.submissions.score_files import aligned_scores


@dataclass(frozen=True)
class Setup:
    """What a submission is measured on: the examples and the model, and what it reads of them."""

    data: Dataset
    session: Session
    encodings: tuple[Encoding, ...]

    @property
    def model(self) -> Model:
        """The model that is explained."""
        return self.session.model


def setup_of(data: Dataset, model: Model) -> Setup:
    """Put examples and model together."""
    encodings = tuple(encode(model, e, data.task.evidence) for e in data.examples)
    return Setup(data, Session(model), encodings)


def run_explainer(
    folder: Path,
    entry: Entry,
    bench: Setup,
    limits: Limits,
    on_confined: Callable[[Confined], None],
    progress: Progress,
) -> Outcome:
    """Let a stranger's explainer speak apart, measure what it said here, and write the record."""
    said = predictions(bench.session.engine, bench.encodings)
    scores, seconds = ask_explainer(
        folder,
        entry,
        bench.model,
        bench.data,
        bench.encodings,
        [prediction.target for prediction in said],
        range(SEED, SEED + SEEDS),
        limits,
        on_confined,
        progress,
    )
    digests = digests_of(folder, entry, bench.data.task.name)
    return _measured(folder, entry, bench, replay(scores, SEED, digests, seconds), progress)


def score_attributions(folder: Path, entry: Entry, bench: Setup, progress: Progress) -> Outcome:
    """Measure a file of attributions, and write the record."""
    task = bench.data.task.name
    scores = aligned_scores(folder, bench.data.task, entry.unit or "tokens", bench.encodings)
    given = {name: (own,) for name, own in scores.items()}
    found = replay(given, SEED, digests_of(folder, entry, task))
    return _measured(folder, entry, bench, found, progress)


def _measured(
    folder: Path, entry: Entry, bench: Setup, scores: Replay, progress: Progress
) -> Outcome:
    """Run all metrics on scores, and put the record in the place of an older one."""
    chosen = Selected(entry.name, scores, PACKAGE, stated=entry.settings)
    metrics = wanted_metrics("all", bench.data, several_seeds=scores.stochastic)
    with temporary_folder() as results:
        job = Job(bench.data, bench.model, (chosen,), metrics, results, seed=SEED, seeds=SEEDS)
        (outcome,) = run(job, progress)
        target = folder / "records" / outcome.path.parent.relative_to(results)
        # One record per task, source and model: an older one is of other files or examples.
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        path = target / outcome.path.name
        rows = outcome.record.rows.file
        shutil.copyfile(outcome.path.with_name(rows), target / rows)
        shutil.copyfile(outcome.path, path)
    return Outcome(chosen, outcome.record, path, outcome.rows)
