"""Measure a submission by the same run that every explainer gets, and write its record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import reason, replace_file, temporary_folder
from faithbench.core.text import readable
from faithbench.core.types import Encoding, Progress
from faithbench.data.dataset import Dataset
from faithbench.explainers.selection import Selected
from faithbench.models.encoding import encode
from faithbench.models.model import Model, load_model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.records.own_examples import MeasuredOn
from faithbench.records.record import read
from faithbench.records.store import record_files
from faithbench.run.finish import Outcome
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.run.request import wanted_metrics
from faithbench.submissions.entry import Entry
from faithbench.submissions.replay import Replay, replay
from faithbench.submissions.rules import PACKAGE, SEED, SEEDS, digests_of, known_model
from faithbench.submissions.sandbox.client import ask_explainer
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.messages import Confined
from faithbench.submissions.score_files import aligned_scores


@dataclass(frozen=True)
class Setup:
    """The examples and the model that a submission is measured on, and the encoded examples."""

    data: Dataset
    session: Session
    encodings: tuple[Encoding, ...]

    @property
    def model(self) -> Model:
        """The model that is explained."""
        return self.session.model


def load_setup(data: Dataset, name: str | None = None) -> Setup:
    """Load the model of a name, or the one that the task has for these data.

    It is on the CPU, as every submission is measured, and loaded once for all submissions.
    """
    ref, revision = known_model(data.task, data.source, name)
    model = _load_model(ref, revision, data.task.labels, data.task.kind)
    encodings = tuple(encode(model, e, data.task.evidence) for e in data.examples)
    return Setup(data, Session(model), encodings)


@cache
def _load_model(name: str, revision: str | None, labels: tuple[str, ...], kind: str) -> Model:
    return load_model(name, labels=labels, kind=kind, revision=revision, device="cpu")


def run_explainer(
    folder: Path,
    entry: Entry,
    setup: Setup,
    limits: Limits,
    on_confined: Callable[[Confined], None],
    progress: Progress,
) -> Outcome:
    """Run an untrusted explainer in a sandbox, measure its scores here, and write the record."""
    refuse_fewer(folder, setup)
    scores, seconds = ask_scores(folder, entry, setup, limits, on_confined, progress)
    digests = digests_of(folder, entry, setup.data.task.name)
    return _measure(folder, entry, setup, replay(scores, SEED, digests, seconds), progress)


def ask_scores(
    folder: Path,
    entry: Entry,
    setup: Setup,
    limits: Limits,
    on_confined: Callable[[Confined], None],
    progress: Progress,
) -> tuple[dict[str, tuple[tuple[float, ...], ...]], float]:
    """Return the scores of an untrusted explainer for the predicted targets, and the seconds."""
    predicted = predictions(setup.session.engine, setup.encodings)
    return ask_explainer(
        folder,
        entry,
        setup,
        targets=[prediction.target for prediction in predicted],
        seeds=range(SEED, SEED + SEEDS),
        limits=limits,
        on_confined=on_confined,
        progress=progress,
    )


def score_attributions(folder: Path, entry: Entry, setup: Setup, progress: Progress) -> Outcome:
    """Measure a file of attributions, and write the record."""
    refuse_fewer(folder, setup)
    task = setup.data.task
    scores = aligned_scores(folder, task, entry.unit or "tokens", setup.encodings)
    under_one_seed = {name: (of_example,) for name, of_example in scores.items()}
    replayed = replay(under_one_seed, SEED, digests_of(folder, entry, task.name))
    return _measure(folder, entry, setup, replayed, progress)


def refuse_fewer(folder: Path, setup: Setup) -> None:
    """Raise if a record of these data and this model has more examples than would replace it."""
    measured = MeasuredOn(
        setup.data.task.name, setup.data.source, setup.data.split, setup.model.public_name
    )
    for path, inside in record_files(folder / "records"):
        try:
            record = read(path)
        except FaithbenchError:
            continue  # the check names it
        if MeasuredOn.by(record) == measured and record.task.n > len(setup.encodings):
            raise FaithbenchError(
                f"has a record of {record.task.n} examples, which one of "
                f"{len(setup.encodings)} would replace; measure as many, or first remove "
                f"records/{readable(inside, 160)}"
            )


def _measure(
    folder: Path, entry: Entry, setup: Setup, scores: Replay, progress: Progress
) -> Outcome:
    """Run all metrics on scores, and replace the submission's older record by the new one."""
    selected = Selected(entry.name, scores, PACKAGE, stated=entry.settings)
    metrics = wanted_metrics("all", setup.data, several_seeds=scores.stochastic)
    with temporary_folder() as results:
        job = Job(setup.data, setup.model, (selected,), metrics, results, seed=SEED, seeds=SEEDS)
        (outcome,) = run(job, progress)
        target = folder / "records" / outcome.path.parent.relative_to(results)
        try:
            _replace_record(outcome, target)
        except OSError as error:
            raise FaithbenchError(
                f"was measured, but its record cannot be written to {target}: {reason(error)}; "
                "make room there, and measure it again"
            ) from error
    return Outcome(selected, outcome.record, target / outcome.path.name, outcome.rows)


def _replace_record(outcome: Outcome, target: Path) -> None:
    """Write a record with its rows to a folder, and remove whatever else is in it."""
    target.mkdir(parents=True, exist_ok=True)
    # Rows first: a kill may leave rows without a record, which the next one here removes.
    names = (outcome.record.rows.file, outcome.path.name)
    for name in names:
        replace_file(target / name, outcome.path.with_name(name).read_bytes())
    # One record per task, source and model: an older one was of other files or examples.
    for path in target.iterdir():
        if path.name not in names:
            path.unlink(missing_ok=True)
