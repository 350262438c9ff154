"""Is an explainer as good on sentences that the board has not as on those that it has?

Scores of known sentences can be carried along, found by a search as long as one likes. So the
AOPC in a submission's record is set beside that on other sentences. An explainer can tell them
apart, which does not help it: its record was made before. On each sentence, its AOPC is taken
relative to that of leave-one-out, because some sentences are easier to empty than others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from random import Random
from statistics import fmean

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import temporary_folder
from faithbench.core.types import Example, Progress
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.tasks import Task
from faithbench.data.words import word_spans
from faithbench.explainers.selection import Selected, find_explainers
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.run.request import wanted_metrics
from faithbench.stats.pairwise import rank_sum
from faithbench.stats.signed_rank import signed_rank
from faithbench.submissions.entry import Entry
from faithbench.submissions.layout import files_of
from faithbench.submissions.measure import Setup, ask_scores, load_setup
from faithbench.submissions.record_checks import read_submitted
from faithbench.submissions.replay import replay
from faithbench.submissions.rules import PACKAGE, SEED, SEEDS, digests_of, known_model
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.messages import Confined

LEVEL_LOWER = 0.001
"""One-sided p value below which an explainer is lower on held-out sentences."""
LEVEL_GAIN = 0.01
"""One-sided p value below which there is a gain over random orders on held-out sentences."""
FEWEST = 20
"""Number of sentences, of either kind, below which nothing can be said."""

Aopc = dict[str, float]
"""AOPC by example."""


@dataclass(frozen=True)
class Bars:
    """What others reach on the same sentences, by example: leave-one-out, and random orders."""

    leave_one_out: Aopc
    random: Aopc


@dataclass(frozen=True)
class Trial:
    """Held-out sentences in a setup, and what others reach on them and on the bundled ones."""

    setup: Setup
    held_out: Bars
    bundled: Bars


@dataclass(frozen=True)
class Held:
    """Mean gains in AOPC over random orders, and one-sided p values.

    `p_lower` is that of an AOPC that stands lower beside leave-one-out's on held-out sentences
    than on the record's, and `p_gain` that of a gain over random orders on held-out ones.
    """

    recorded: float
    held_out: float
    p_lower: float
    p_gain: float

    @property
    def keeps(self) -> bool:
        """Return whether the explainer may be as good on held-out sentences."""
        return self.p_lower >= LEVEL_LOWER

    @property
    def gains(self) -> bool:
        """Return whether the explainer is better than random orders on held-out sentences."""
        return self.p_gain < LEVEL_GAIN


def new_trial(
    task: Task, own: Collection[str], folder: Path | None, count: int, seed: int, progress: Progress
) -> Trial:
    """Draw held-out sentences, and measure leave-one-out and random orders on these and the own.

    `own` are the names of the board's sentences, all bundled ones where there are none.
    """
    bundled = load_dataset(task, source="bundled")
    own_ids = set(own) or {example.id for example in bundled.examples}
    known = tuple(example for example in bundled.examples if example.id in own_ids)
    drawn = held_out_sentences(bundled, folder, count, seed)
    name, _ = known_model(task, "bundled", None)
    setup, on_board = load_setup(drawn, name), load_setup(replace(bundled, examples=known), name)
    return Trial(setup, bars_of(setup, progress), bars_of(on_board, progress))


def held_out_sentences(bundled: Dataset, folder: Path | None, count: int, seed: int) -> Dataset:
    """Return sentences that no author has: of a folder of data, or spliced of bundled ones.

    Those of the folder that are bundled, too, are left out.
    """
    random = Random(seed)
    if folder is None:
        return replace(bundled, examples=tuple(_spliced(bundled.examples, count, random)))
    data = load_dataset(bundled.task, source="folder", folder=folder)
    seen = {(example.text, example.text_b) for example in bundled.examples}
    others = [example for example in data.examples if (example.text, example.text_b) not in seen]
    if len(others) < FEWEST:
        raise FaithbenchError(
            f"data of {bundled.task.name} in {folder} hold {len(others)} sentences that are not "
            f"bundled, and {FEWEST} are needed; give a folder of more with --data"
        )
    return replace(data, examples=tuple(random.sample(others, min(count, len(others)))))


def _spliced(examples: Sequence[Example], count: int, random: Random) -> Iterator[Example]:
    """Join first halves of texts to second halves of others, as often as is asked for."""
    pairs = list(permutations(examples, 2))
    for number, (first, second) in enumerate(random.sample(pairs, min(count, len(pairs)))):
        text_b = first.text_b and second.text_b and _join(first.text_b, second.text_b)
        text = _join(first.text, second.text)
        yield replace(
            first, id=f"spliced-{number}", text=text, text_b=text_b, rationale=None, answers=()
        )


def _join(first: str, second: str) -> str:
    """Return the first half of a text's words, and the second half of another's."""
    ends = []
    for text in (first, second):
        spans = word_spans(text)
        ends.append(spans[len(spans) // 2][0] if spans else 0)
    return first[: ends[0]] + second[ends[1] :]


def bars_of(setup: Setup, progress: Progress) -> Bars:
    """Measure leave-one-out and random orders."""
    easy, chance = aopc_of(
        find_explainers("leave-one-out,random", rationale=False), setup, progress
    )
    return Bars(easy, chance)


def aopc_of(explainers: Collection[Selected], setup: Setup, progress: Progress) -> list[Aopc]:
    """Return the AOPC of each explainer, by example, as a run of submissions gives it."""
    metrics = wanted_metrics("aopc", setup.data, several_seeds=True)
    with temporary_folder() as results:
        job = Job(
            setup.data, setup.model, tuple(explainers), metrics, results, seed=SEED, seeds=SEEDS
        )
        return [
            {row.id: value for row in outcome.rows if (value := row.values["aopc"]) is not None}
            for outcome in run(job, progress)
        ]


def held_out(
    folder: Path,
    entry: Entry,
    trial: Trial,
    limits: Limits,
    on_confined: Callable[[Confined], None],
    progress: Progress,
) -> Held:
    """Ask an untrusted explainer in its sandbox, and compare with its record."""
    task = trial.setup.data.task
    recorded = recorded_aopc(folder, entry, task)
    scores, _ = ask_scores(folder, entry, trial.setup, limits, on_confined, progress)
    replayed = replay(scores, SEED, digests_of(folder, entry, task.name))
    asked = Selected(entry.name, replayed, PACKAGE, stated=entry.settings)
    (others,) = aopc_of([asked], trial.setup, progress)
    return compared(recorded, trial.bundled, others, trial.held_out)


def recorded_aopc(folder: Path, entry: Entry, task: Task) -> Aopc:
    """Return the AOPC that the record of an explainer has, on bundled data and model."""
    on = (task.name, "bundled", known_model(task, "bundled", None)[0])
    for file in files_of(folder):
        if file.startswith("records/") and file.endswith(".json"):
            submitted = read_submitted(folder, file, entry)
            record = submitted.record
            same_code = record.explainer.assets == digests_of(folder, entry, task.name)
            if same_code and on == (record.task.name, record.task.source, record.model.name):
                values = {row.id: row.values.get("aopc") for row in submitted.rows}
                return {name: value for name, value in values.items() if value is not None}
    raise FaithbenchError(
        f"has no record of this explainer.py on bundled {task.name}; first give "
        f"`faithbench submission run FOLDER --task {task.name} --source bundled`"
    )


def compared(recorded: Aopc, bundled: Bars, others: Aopc, held_out: Bars) -> Held:
    """Compare what an explainer reaches in its record and on held-out sentences."""
    known = [name for name in recorded if name in bundled.leave_one_out]
    new = [name for name in others if name in held_out.leave_one_out]
    if min(len(known), len(new)) < FEWEST:
        raise FaithbenchError(
            f"has {len(known)} sentences in its record and {len(new)} others to compare with, "
            f"and {FEWEST} of each are needed; run it without --limit"
        )
    # Ranks would count last bits, which differ between batches and machines; so they are rounded.
    lower = rank_sum(
        [round(recorded[name] - bundled.leave_one_out[name], 3) for name in known],
        [round(others[name] - held_out.leave_one_out[name], 3) for name in new],
    )
    gained = signed_rank([others[name] for name in new], [held_out.random[name] for name in new])
    return Held(
        fmean(recorded[name] - bundled.random[name] for name in known),
        fmean(others[name] - held_out.random[name] for name in new),
        _one_sided(lower.p, lower.effect),
        _one_sided(gained.p, gained.effect),
    )


def _one_sided(p: float | None, effect: float) -> float:
    """Return the p value of a positive effect; 1 where there is nothing to test."""
    if p is None:
        return 1.0
    return p / 2 if effect > 0 else 1 - p / 2
