"""The front door: what `import faithbench as fb` offers, and what the commands are made of.

Nothing heavy is imported before a function needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithbench.core.errors import FaithbenchError, Interrupted

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from faithbench.core.types import Progress
    from faithbench.data.dataset import Dataset
    from faithbench.data.tasks import Task
    from faithbench.explainers.protocol import Explainer
    from faithbench.explainers.selection import Selected
    from faithbench.models.model import Model
    from faithbench.records.comparison import Comparison
    from faithbench.records.rows import ResultRow
    from faithbench.records.schema import Record
    from faithbench.run.evaluation import Evaluation
    from faithbench.run.forecast import Forecast
    from faithbench.run.job import Job
    from faithbench.run.one_text import Explanation
    from faithbench.run.request import Request
    from faithbench.run.shard import Shard
    from faithbench.submissions.pieces import ScoredPieces

    Scores = ArrayLike | ScoredPieces
    Given = Mapping[str, Scores] | Sequence[Scores]
    OneExplainer = str | Explainer | Selected | type[Any]
    Explainers = OneExplainer | Sequence[OneExplainer]


def list_tasks() -> dict[str, str]:
    """Return the titles of all tasks by name; `load_task` gives one in full."""
    from faithbench.data.tasks import load_task, task_names

    return {name: load_task(name).title for name in task_names()}


def list_explainers(family: str | None = None) -> dict[str, str]:
    """Return what each explainer does, by name: all, or those of a family.

    Explainers of installed plugins are the family `plugin`.
    """
    from faithbench.core.errors import unknown
    from faithbench.explainers.registry import EXPLAINERS, installed_plugins

    families = {"plugin", *(entry.family for entry in EXPLAINERS.values())}
    if family not in (None, *families):
        raise unknown("family of explainers", str(family), families)
    built_in = {
        name: entry.summary for name, entry in EXPLAINERS.items() if family in (None, entry.family)
    }
    plugins = sorted(installed_plugins(), key=lambda plugin: plugin.name)
    by_name = {plugin.name: plugin.origin for plugin in plugins}
    return built_in | (by_name if family in (None, "plugin") else {})


def list_metrics(family: str | None = None) -> dict[str, str]:
    """Return what each metric means, by name: all built-in ones, or those of a family."""
    from faithbench.core.errors import unknown
    from faithbench.metrics.kinds import FAMILIES
    from faithbench.metrics.registry import METRICS

    if family not in (None, *FAMILIES):
        raise unknown("family of metrics", str(family), FAMILIES)
    return {m.name: m.summary for m in METRICS.values() if family in (None, m.family)}


def load_dataset(
    task: str | Task,
    *,
    source: str = "auto",
    split: str = "test",
    folder: str | Path | None = None,
    limit: int | None = None,
    allow_changed: bool = False,
) -> Dataset:
    """Read one split of a task, from the first source that has it or the one asked for.

    `folder` holds data as <task>/<split>.jsonl.gz; `limit` takes at most that many examples,
    always the same ones.
    """
    from faithbench.data.dataset import load_dataset as load

    return load(
        _task(task),
        source=source,
        split=split,
        folder=None if folder is None else Path(folder),
        limit=limit,
        allow_changed=allow_changed,
    )


def load_model(
    name: str | None = None,
    task: str | Task | None = None,
    *,
    device: str = "auto",
    dtype: str = "float32",
) -> Model:
    """Load a model for a task, which says its labels and kind.

    `name` is `bundled:<task>`, a folder or a name on the hub. Without it the model is the one
    that the task names, the bundled one first; a bundled model needs no `task`.
    """
    if task is None:
        if name is None or not name.startswith("bundled:"):
            raise FaithbenchError(
                f"the labels of model {name!r} come from its task; give task='...' too"
            )
        task = name.removeprefix("bundled:")
    task = _task(task)
    from faithbench.models.model import load_model as load

    ref, revision = (name, None) if name else default_model(task)
    return load(
        ref, labels=task.labels, kind=task.kind, revision=revision, device=device, dtype=dtype
    )


def default_model(task: Task) -> tuple[str, str | None]:
    """Return the task's model: the bundled one if there is one, for it needs no download."""
    for source in ("bundled", *task.tables):
        ref = task.models.get(source)
        if ref is not None:
            return ref.name, ref.revision
    raise FaithbenchError(f"task {task.name} names no model; give one with --model")


def explain(
    model: Model,
    text: str,
    explainer: OneExplainer,
    text_b: str | None = None,
    task: str | Task | None = None,
    seed: int = 0,
) -> Explanation:
    """Explain what a model predicts for one text; the result shows itself.

    `text_b` is the second text of a pair, or the question. With a `task`, the texts are checked
    and its evidence is scored; without, both texts of a pair are, and the text of a question.
    """
    from faithbench.explainers.selection import select_explainers
    from faithbench.models.session import Session
    from faithbench.run.one_text import explain_text

    selected = select_explainers(explainer, rationale=False)
    if len(selected) != 1:
        names = ", ".join(entry.label for entry in selected)
        raise FaithbenchError(f"explain takes one explainer, found {names}; call it for each")
    if task is not None:
        task = _task(task)
        check_texts(task, text, text_b)
        evidence = task.evidence
    else:
        evidence = "text" if text_b is None or model.kind.has_answers else "both"
    with Session(model) as session:
        return explain_text(session, evidence, selected[0], text, text_b, seed)


def check_texts(task: Task, text: str, text_b: str | None) -> None:
    """Refuse texts that are not what a task asks about."""
    from faithbench.data.kinds import KINDS

    if not text.strip():
        raise FaithbenchError("the text is empty; give --text some words")
    if (text_b is None) != (KINDS[task.kind].texts == 1):
        advice = "give --text-b" if text_b is None else "leave out --text-b"
        raise FaithbenchError(f"task {task.name} is of kind {task.kind}; {advice}")


def evaluate(
    task: str | Task,
    explainers: Explainers,
    *,
    model: str | Model | None = None,
    data: str | Path | Dataset | None = None,
    source: str = "auto",
    split: str = "test",
    limit: int | None = None,
    metrics: str | Sequence[str] = "all",
    operator: str = "mask",
    device: str = "auto",
    dtype: str = "float32",
    seed: int = 0,
    seeds: int = 3,
    encoder: str | None = None,
    human: bool = True,
    batch: int = 16,
    long: str = "truncate",
    jobs: int | None = None,
    backend: str = "processes",
    results: str | Path | None = None,
    allow_changed_data: bool = False,
    fresh: bool = False,
    plugins: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> Evaluation:
    """Explain a task's examples and score the explanations, as `faithbench run` does.

    The options are those of the command. `task`, `model` and `data` may be values instead of
    names, and `explainers` may mix names and explainer objects. With `results`, records are
    written below that folder, and a stopped evaluation continues there when it is called again,
    unless it is to start `fresh`; without, nothing is left on the disk. An explainer that cannot
    serve the model is left out, and the result's `left_out` says why. `progress` is called with
    what is being done, how much of it is done, and how much there is.
    """
    from faithbench.core.types import quiet
    from faithbench.run.request import Request, make_job

    with _results_folder(results) as folder:
        request = Request(
            explainer=explainers,
            task=task,
            model=model,
            data=Path(data) if isinstance(data, str) else data,
            source=source,
            split=split,
            limit=limit,
            metrics=metrics if isinstance(metrics, str) else ",".join(metrics),
            operator=operator,
            device=device,
            dtype=dtype,
            seed=seed,
            seeds=seeds,
            encoder=encoder,
            human=human,
            batch=batch,
            long=long,
            results=folder,
            allow_changed_data=allow_changed_data,
            plugins=tuple(Path(path) for path in plugins),
        )
        job = make_job(request, progress or quiet)
        return _run(job, jobs, backend, results, progress or quiet, fresh=fresh)


def evaluate_request(
    request: Request, *, jobs: int | None, backend: str, fresh: bool = False, progress: Progress
) -> Evaluation:
    """Do what `evaluate` does, with the options gathered in a request."""
    from faithbench.run.request import make_job

    job = make_job(request, progress)
    return _run(job, jobs, backend, request.results, progress, fresh=fresh)


def forecast_request(
    request: Request, *, jobs: int | None, backend: str, progress: Progress
) -> Forecast:
    """Tell what the run of a request will take, by a trial of two seconds."""
    from faithbench.run.backends import choose_backend
    from faithbench.run.forecast import forecast
    from faithbench.run.request import make_job

    job = make_job(request, progress)
    return forecast(job, choose_backend(jobs, str(job.model.device), backend), progress)


def evaluate_shard(
    request: Request,
    shard: Shard,
    *,
    jobs: int | None,
    backend: str,
    fresh: bool = False,
    progress: Progress,
) -> tuple[Path, int]:
    """Compute one shard of a run; return its folder and the number of its examples."""
    from faithbench.run.backends import choose_backend
    from faithbench.run.loop import run_shard
    from faithbench.run.merge import finish_shard
    from faithbench.run.request import make_job

    job = make_job(request, progress)
    chosen = choose_backend(jobs, str(job.model.device), backend)
    served = run_shard(job, shard, progress, chosen, fresh=fresh)
    return served.results, finish_shard(served, shard, request)


def merge(
    folders: Sequence[str | Path],
    results: str | Path,
    *,
    data: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Make the records of a run from the folders of all its shards, as `faithbench merge` does.

    Without `data`, the folder of data is the one that the shards read.
    """
    from faithbench.core.types import quiet
    from faithbench.run.merge import gather_rows, read_shards, request_of
    from faithbench.run.request import make_job

    paths = [Path(folder) for folder in folders]
    facts = read_shards(paths)
    request = request_of(facts, None if data is None else Path(data), Path(results))
    say = progress or quiet
    job = gather_rows(make_job(request, say), facts, paths, say)
    return _run(job, jobs, "processes", results, say)


def score(
    attributions: Given,
    task: str | Task,
    *,
    name: str = "scores",
    unit: str = "tokens",
    against: Explainers = (),
    model: str | Model | None = None,
    data: str | Path | Dataset | None = None,
    source: str = "auto",
    split: str = "test",
    limit: int | None = None,
    metrics: str | Sequence[str] = "all",
    operator: str = "mask",
    device: str = "auto",
    dtype: str = "float32",
    seed: int = 0,
    seeds: int = 3,
    encoder: str | None = None,
    human: bool = True,
    jobs: int | None = None,
    backend: str = "processes",
    results: str | Path | None = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Measure scores that another tool made, as `evaluate` measures an explainer.

    `attributions` has an array for each example, by id or in the order of the data: a score for
    each token that may be erased, in reading order, or for each word with `unit="words"`, which
    is shared among the word's tokens. What `from_captum`, `from_shap` and `from_inseq` return is
    taken as well, whatever its unit. They are called `name`, and explainers `against` them run
    on the same examples. All other options are those of `evaluate`.
    """
    from faithbench.core.types import quiet
    from faithbench.run.request import Request, make_job

    with _results_folder(results) as folder:
        request = Request(
            explainer=against,
            task=task,
            model=model,
            data=Path(data) if isinstance(data, str) else data,
            source=source,
            split=split,
            limit=limit,
            metrics=metrics if isinstance(metrics, str) else ",".join(metrics),
            operator=operator,
            device=device,
            dtype=dtype,
            seed=seed,
            seeds=seeds,
            encoder=encoder,
            human=human,
            results=folder,
        )
        job = make_job(request, progress or quiet)
        selected = _replayed(name, _aligned(attributions, unit, job), seed)
        if name in (other.label for other in job.explainers):
            raise FaithbenchError(f"two explainers are called {name!r}; give another name='...'")
        with_scores = replace(job, explainers=(selected, *job.explainers))
        return _run(with_scores, jobs, backend, results, progress or quiet)


def compare(
    explainers: Evaluation | Sequence[str | Path],
    metric: str = "aopc",
    *,
    task: str | None = None,
    results: str | Path | None = None,
) -> Comparison:
    """Test explainers against each other on one metric, paired by example.

    They are those of an evaluation, or recorded ones: labels, as in `faithbench compare`, of a
    `task` in the folder `results`, or files of records. The first file says both, if they are
    not given.
    """
    from faithbench.records.comparison import chosen_metrics
    from faithbench.records.comparison import compare as compare_values
    from faithbench.records.entrants import find_entrants
    from faithbench.run.evaluation import Evaluation

    if isinstance(explainers, Evaluation):
        return explainers.compare(metric)
    words = [str(word) for word in explainers]
    files = [Path(word) for word in words if word.endswith(".json")]
    if task is None:
        if not files:
            raise FaithbenchError("compare needs to know the task of these labels; give task='...'")
        task = read_record(files[0]).task.name
    folder = results or (files[0].parent if files else "results")
    entrants = find_entrants(words, task, Path(folder), [metric])
    (name,) = chosen_metrics([metric], entrants)
    ids = [row.id for row in entrants[0].records[0].rows]
    table = {entrant.label: entrant.values(name, ids) for entrant in entrants}
    return compare_values(name, entrants[0].metrics[name], table)


def read_record(path: str | Path) -> Record:
    """Read the record of one explainer."""
    from faithbench.records.record import read

    return read(Path(path))


def read_rows(path: str | Path) -> tuple[ResultRow, ...]:
    """Read the rows of a record, one per example; `path` is the record's, or that of the rows.

    Next to the record, the rows are checked against its digest.
    """
    from faithbench.records.rows_file import read_rows as read

    path = Path(path)
    if path.suffix != ".json":
        return read(path)
    facts = read_record(path).rows
    return read(path.with_name(facts.file), facts.sha256)


def _task(task: str | Task) -> Task:
    from faithbench.data.tasks import load_task

    return load_task(task) if isinstance(task, str) else task


@contextmanager
def _results_folder(asked: str | Path | None) -> Iterator[Path]:
    """Yield the folder asked for, or one that is removed afterwards: nothing is then kept."""
    from faithbench.core.files import temporary_folder

    if asked is not None:
        yield Path(asked)
        return
    with temporary_folder() as folder:
        try:
            yield folder
        except FaithbenchError as error:
            error.kept = None
            raise
        except Interrupted as stop:
            raise KeyboardInterrupt from stop


def _run(
    job: Job,
    jobs: int | None,
    backend: str,
    results: str | Path | None,
    progress: Progress,
    *,
    fresh: bool = False,
) -> Evaluation:
    from faithbench.run.backends import choose_backend
    from faithbench.run.evaluation import Evaluation
    from faithbench.run.loop import run_serving

    chosen = choose_backend(jobs, str(job.model.device), backend)
    served = run_serving(job, progress, chosen, fresh=fresh)
    folder = None if results is None else Path(results)
    return Evaluation(job, served.outcomes, folder, served.left_out)


def _aligned(attributions: Given, unit: str, job: Job) -> dict[str, tuple[float, ...]]:
    """Return a score per token that may be erased, by the id of its example."""
    from faithbench.models.encoding import encode
    from faithbench.models.predictions import predictions
    from faithbench.models.session import Session
    from faithbench.submissions.pieces import ScoredPieces, align_pieces
    from faithbench.submissions.score_files import align, check_ids

    encodings = [encode(job.model, e, job.data.task.evidence) for e in job.data.examples]
    given = _by_id(attributions, [encoding.example.id for encoding in encodings])
    pieces = {name: one for name, one in given.items() if isinstance(one, ScoredPieces)}
    if len(pieces) < len(given) or not pieces:
        arrays = {name: _numbers(name, one) for name, one in given.items()}
        return align(arrays, "attributions", job.data.task, unit, encodings)
    check_ids(pieces, "attributions", encodings)
    with Session(job.model, job.budget) as session:
        targets = [prediction.target for prediction in predictions(session.engine, encodings)]
    return align_pieces(pieces, job.model, encodings, targets)


def _by_id(attributions: Given, ids: Sequence[str]) -> dict[str, Scores]:
    """Return what was given for each example by id."""
    if isinstance(attributions, Mapping):
        return dict(attributions)
    if len(attributions) != len(ids):
        raise FaithbenchError(
            f"there are {len(attributions)} arrays for {len(ids)} examples; give one for "
            "each, in the order of the data, or a mapping by id"
        )
    return dict(zip(ids, attributions, strict=True))


def _numbers(name: str, array: Scores) -> tuple[float, ...]:
    """Return an example's scores, having checked that they are finite numbers in a row."""
    import numpy as np

    try:
        values = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise FaithbenchError(
            f"the scores of example {name!r} are not an array of numbers: {error}"
        ) from error
    if values.ndim != 1 or not np.isfinite(values).all():
        raise FaithbenchError(
            f"the scores of example {name!r} have shape {values.shape}, or are not all "
            "finite; give one finite number per token or word"
        )
    return tuple(values.tolist())


def _replayed(name: str, scores: Mapping[str, tuple[float, ...]], seed: int) -> Selected:
    """Let scores take part in a run as an explainer; their digest tells them from others."""
    from faithbench.core.files import digest_of
    from faithbench.explainers.selection import Selected
    from faithbench.submissions.replay import replay

    digest = digest_of({example: list(values) for example, values in scores.items()})
    by_seed = {example: (values,) for example, values in scores.items()}
    explainer = replay(by_seed, seed, {"scores": digest})
    return Selected(name, explainer, "scores", stated={})
