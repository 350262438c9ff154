"""FRESH: train classifiers on rationales alone, and see how well they do (Jain et al. 2020).

A support model's explanation says which words of a text are kept; a fresh classifier is trained on
those of train, and scored on those of test. The higher its macro-F1, the more of what decides is
in the rationales. `fresh` is the whole of it; whatever is finished is found again in its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from pathlib import Path

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import check_writable, digest_of, slug
from faithbench.core.parallel import map_in_processes
from faithbench.core.types import Encoding, Progress, quiet
from faithbench.data.dataset import Dataset
from faithbench.data.kinds import KINDS
from faithbench.data.kinds.classification import class_scores
from faithbench.data.tasks import Task
from faithbench.data.words import word_spans
from faithbench.explainers.protocol import needs_training, taught
from faithbench.explainers.selection import Selected, select_explainers
from faithbench.models.encoding import encode
from faithbench.models.evaluation import outcomes
from faithbench.models.files.weights import read_card
from faithbench.models.model import Model, load_model
from faithbench.records.store import StoredRecord
from faithbench.run.backends import choose_backend, default_jobs
from faithbench.run.request import model_for
from faithbench.stats.pairwise import paired_tests, two_sample_t
from faithbench.stats.signed_rank import PairedTest
from faithbench.training.card import is_finished
from faithbench.training.explained_split import explained
from faithbench.training.fit import fit
from faithbench.training.fresh.extraction import Extraction, rationale
from faithbench.training.fresh.random_words import random_words
from faithbench.training.fresh.records import write_record
from faithbench.training.recipe import Recipe, Splits, load_splits

CONTROLS = ("full", "random")
FULL = "full text"


@dataclass(frozen=True)
class FreshRequest:
    """What a user asks of `faithbench fresh`.

    `models` are support models, None for the task's own. `recipe` is that of the classifiers,
    which start from `base`; they are trained under the seeds 0 to `seeds` - 1. `controls` are
    trained beside them: on whole texts (`full`), and on as many words drawn at random. `limits`
    are the most examples of train, dev and test. Scores and classifiers are kept in `out`.
    """

    task: Task
    explainer: str
    how: Extraction
    out: Path
    records: Path
    recipe: Recipe
    models: tuple[str | None, ...] = (None,)
    seeds: int = 3
    controls: tuple[str, ...] = CONTROLS
    base: str | None = None
    folder: Path | None = None
    source: str = "auto"
    limits: tuple[int | None, int | None, int | None] = (None, None, None)
    device: str = "auto"
    jobs: int | None = None
    plugins: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Arm:
    """One kind of input to learn from: its splits under each seed, and where they come from.

    `scored` is what the support model's explainer said of test; None for whole texts.
    """

    label: str
    support: str
    by_seed: tuple[Splits, ...]
    scored: StoredRecord | None = None


@dataclass(frozen=True)
class ArmScore:
    """The scores of an arm: macro-F1 by seed, and per test example the share of right seeds.

    `words` is the mean number of words in a test input.
    """

    label: str
    support: str
    macro_f1: tuple[float, ...]
    right: tuple[float, ...]
    words: float
    record: Path | None = None

    @property
    def mean(self) -> float:
        """The mean of macro-F1 over the seeds."""
        return float(np.mean(self.macro_f1))

    @property
    def deviation(self) -> float | None:
        """The standard deviation over the seeds; None for one seed."""
        return float(np.std(self.macro_f1, ddof=1)) if len(self.macro_f1) > 1 else None


@dataclass(frozen=True)
class ArmTest:
    """Two arms, by their places in the report: p of a t-test over seeds, and a test of examples.

    The latter pairs the test examples, right or wrong: McNemar for one seed, signed ranks of the
    shares of right seeds for several.
    """

    first: int
    second: int
    over_seeds: float | None
    over_examples: PairedTest


@dataclass(frozen=True)
class FreshReport:
    """All arms of a study, those of explainers first, and the tests between them."""

    arms: tuple[ArmScore, ...]
    tests: tuple[ArmTest, ...]
    sizes: tuple[int, int, int]


def fresh(request: FreshRequest, progress: Progress = quiet) -> FreshReport:
    """Explain, extract, train and score; a killed call continues where it stopped."""
    _check(request)
    for folder, option in ((request.out, "--out"), (request.records, "--records")):
        check_writable(folder, option)
    progress("loading the data", 0, 0)
    splits = load_splits(
        request.task, source=request.source, folder=request.folder, limits=request.limits
    )
    chosen = select_explainers(request.explainer, request.plugins, rationale=_is_marked(splits))
    arms: list[Arm] = []
    for number, name in enumerate(request.models):
        controls = (random_words(),) if number == 0 and "random" in request.controls else ()
        arms += _explained_arms(request, splits, name, (*chosen, *controls), progress)
    # Those of explainers first, then the random one, which comes from the first support model.
    arms.sort(key=lambda arm: arm.label == random_words().label)
    if "full" in request.controls:
        arms.append(Arm(FULL, "", (splits,) * request.seeds))
    predicted = _predictions(request, arms, progress)
    scores = tuple(
        _scored(request, splits, arm, of_arm) for arm, of_arm in zip(arms, predicted, strict=True)
    )
    sizes = [len(data.examples) for data in (splits.train, splits.dev, splits.test)]
    return FreshReport(scores, _tests(scores), (sizes[0], sizes[1], sizes[2]))


def _check(request: FreshRequest) -> None:
    task = request.task
    if not KINDS[task.kind].has_classes:
        raise FaithbenchError(
            f"task {task.name} is of kind {task.kind}, and faithbench fresh trains classifiers; "
            "choose a classification or pair task"
        )
    for control in request.controls:
        if control not in CONTROLS:
            raise unknown("control", control, CONTROLS)
    if len(set(request.models)) < len(request.models):
        raise FaithbenchError("a support model is named twice; give each --model once")


def _explained_arms(
    request: FreshRequest,
    splits: Splits,
    name: str | None,
    chosen: Sequence[Selected],
    progress: Progress,
) -> list[Arm]:
    """Explain all splits with one support model, and cut them down to its rationales."""
    task = request.task
    name, revision = model_for(task, splits.test, name)
    progress(f"loading the support model {name}", 0, 0)
    model = load_model(
        name, labels=task.labels, kind=task.kind, revision=revision, device=request.device
    )
    # Of train the rows that are asked for: a classifier gets no others either.
    chosen = [
        replace(one, explainer=taught(one.explainer, splits.train, model))
        if needs_training(one.explainer)
        else one
        for one in chosen
    ]
    backend = choose_backend(request.jobs, str(model.device))
    folder = request.out / "scores"
    cut: list[dict[str, list[Dataset]]] = []
    for data in (splits.train, splits.dev, splits.test):
        records = explained(model, data, chosen, folder, request.seeds, backend, progress)
        progress(f"extracting rationales of {data.split}", 0, 0)
        encodings = [encode(model, example, task.evidence) for example in data.examples]
        cut.append(
            {one.label: _cut(model, data, encodings, records[one.label], request) for one in chosen}
        )
    # The last ones are those of test.
    return [_arm(model, one, records[one.label], cut) for one in chosen]


def _is_marked(splits: Splits) -> bool:
    return all(data.rationale == "human" for data in (splits.train, splits.dev, splits.test))


def _arm(
    model: Model, selected: Selected, scored: StoredRecord, cut: Sequence[dict[str, list[Dataset]]]
) -> Arm:
    by_split = [of_split[selected.label] for of_split in cut]
    by_seed = tuple(Splits(*each) for each in zip(*by_split, strict=True))
    return Arm(selected.label, model.public_name, by_seed, scored)


def _cut(
    model: Model,
    data: Dataset,
    encodings: Sequence[Encoding],
    stored: StoredRecord,
    request: FreshRequest,
) -> list[Dataset]:
    """Return the rationales of a split under each seed; without chance they are all the same."""
    unknown_id = model.tokenizer.unk_token_id
    under_seeds = []
    for seed in range(len(stored.record.seeds)):
        examples = tuple(
            rationale(
                encoding,
                np.array((row.scores, *row.more_scores)[seed], dtype=np.float64),
                request.how,
                unknown_id,
            )
            for encoding, row in zip(encodings, stored.rows, strict=True)
        )
        digest = digest_of([[e.id, e.text, e.text_b, e.label] for e in examples])
        under_seeds.append(replace(data, examples=examples, sha256=digest, rationale="none"))
    return under_seeds if len(under_seeds) > 1 else under_seeds * request.seeds


@dataclass(frozen=True)
class Training:
    """One classifier to train: what it is called, its data and recipe, and its folder."""

    label: str
    splits: Splits
    recipe: Recipe
    folder: Path


def training_of(request: FreshRequest, arm: Arm, seed: int) -> Training:
    """Return the training of an arm under a seed; its folder is named by all that decides it."""
    splits, recipe = arm.by_seed[seed], replace(request.recipe, seed=seed)
    data = [[d.split, d.sha256, len(d.examples)] for d in vars(splits).values()]
    facts = [request.task.name, request.task.version, data, asdict(recipe), request.base]
    name = slug("-".join(filter(None, (arm.label, Path(arm.support).name))))
    folder = request.out / "models" / f"{name}-{digest_of(facts)[:8]}"
    return Training(f"{arm.label}, seed {seed}", splits, recipe, folder)


def _predictions(
    request: FreshRequest, arms: Sequence[Arm], progress: Progress
) -> list[list[list[int]]]:
    """Train what is not trained yet, and return predicted classes of test, by arm and seed."""
    seeds = range(request.seeds)
    trainings = [training_of(request, arm, seed) for arm in arms for seed in seeds]
    work = partial(_train, request=request)
    jobs = _processes(request)
    if jobs is not None and jobs > 1:
        progress(f"training {len(trainings)} classifiers in {jobs} processes", 0, 0)
        every = map_in_processes(partial(work, progress=quiet), trainings, jobs)
    else:
        every = [work(one, progress=_named(progress, one.label)) for one in trainings]
    return [every[start : start + len(seeds)] for start in range(0, len(every), len(seeds))]


def _processes(request: FreshRequest) -> int | None:
    """Return the number of processes that train; None where one drives another device."""
    return request.jobs or default_jobs(request.device)


def _named(progress: Progress, name: str) -> Progress:
    return lambda what, done, total: progress(f"{name}: {what}", done, total)


def _train(training: Training, request: FreshRequest, progress: Callable[..., None]) -> list[int]:
    """Train one classifier unless it is there, and return the classes that it predicts of test."""
    before = torch.get_num_threads()
    # On the CPU every process has one thread, so that the weights do not depend on their number.
    torch.set_num_threads(before if _processes(request) is None else 1)
    try:
        if not is_finished(training.folder):
            fit(
                training.splits,
                training.recipe,
                training.folder,
                progress,
                base=request.base,
                device=request.device,
            )
        task, test = request.task, training.splits.test
        model = load_model(
            str(training.folder), labels=task.labels, kind=task.kind, device=request.device
        )
        classes: list[int] = outcomes(model, test, progress)
    finally:
        torch.set_num_threads(before)
    return classes


def _scored(
    request: FreshRequest, splits: Splits, arm: Arm, predicted: Sequence[Sequence[int]]
) -> ArmScore:
    """Score an arm's classifiers on test, and write the record of its explainer."""
    labels = request.task.labels
    gold = [example.label for example in splits.test.examples]
    macro_f1 = tuple(class_scores(seed, gold, len(labels))["macro_f1"] for seed in predicted)
    right = (np.array(predicted) == np.array(gold)).mean(axis=0)
    path = None
    if arm.scored is not None:
        cards = [read_card(training_of(request, arm, seed).folder) for seed in range(request.seeds)]
        path = write_record(
            request.records, arm.label, arm.scored, request.how, splits, cards[0], predicted
        )
    inputs = [e for each in arm.by_seed for e in each.test.examples]
    evidence = request.task.evidence
    counts = [
        len(word_spans(e.text)) * (evidence != "text_b")
        + len(word_spans(e.text_b or "")) * (evidence != "text")
        for e in inputs
    ]
    return ArmScore(
        arm.label, arm.support, macro_f1, tuple(right.tolist()), float(np.mean(counts)), path
    )


def _tests(arms: Sequence[ArmScore]) -> tuple[ArmTest, ...]:
    """Test each explainer's arm against random words, and support models against each other."""
    random = random_words().label
    pairs = []
    for (i, first), (j, second) in combinations(enumerate(arms), 2):
        explains = first.support and first.label != random
        if explains and second.label in (first.label, random):
            pairs.append((i, j))
    over_examples = paired_tests([arm.right for arm in arms], pairs)
    return tuple(
        ArmTest(i, j, two_sample_t(arms[i].macro_f1, arms[j].macro_f1), test)
        for (i, j), test in zip(pairs, over_examples, strict=True)
    )
