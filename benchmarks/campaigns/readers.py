"""The files that the suite reads, in small, and how each is read: what flips and fuzz change."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.campaigns.kills import prepare
from faithbench.core.errors import FaithbenchError

ROOT = Path(__file__).parents[2]
KEY = "0" * 64
CARD = ("kind", "labels", "data", "recipe", "dev_by_epoch", "test", "majority", "published")


@dataclass(frozen=True)
class Reading:
    """What reading gave: the numbers, and the digest under which everyone knows their file.

    Numbers that changed with their name are not taken for the former ones: records of another
    data set or model are never compared. Of what can be made again, a part may be left out.
    """

    value: object
    name: str = ""
    parts: dict[Any, Any] | None = None


@dataclass(frozen=True)
class Reader:
    """A kind of file: where one lies, how it is read, and whether people write it."""

    kind: str
    file: Path
    read: Callable[[], Reading]
    by_hand: bool = False


def make_files(folder: Path, places: Path) -> None:
    """Make the files with the commands and functions that write them, and what kills start from."""
    import torch

    from faithbench.records.record import read
    from faithbench.records.rows_writer import open_rows
    from faithbench.records.store import StoredRecord, record_files
    from faithbench.training.saving import TrainingState, save_checkpoint

    if folder.exists():
        shutil.rmtree(folder)
    prepare(places)
    shutil.copytree(places / "board", folder)
    shutil.copytree(places / "published" / "records", folder / "records")
    shutil.copytree(places / "submission-attributions" / "submissions", folder / "submissions")
    (path, _), *_ = record_files(folder / "results")
    rows = StoredRecord(path, read(path)).rows
    with open_rows(folder / "partial.rows.jsonl", KEY) as file:
        file.append([(row, 1.5) for row in rows])
    bundled = ROOT / "faithbench" / "data" / "bundled" / "sst2"
    for name in ("adapter_config.json", "adapter_model.safetensors", "card.json", "heads.json"):
        (folder / "adapter").mkdir(exist_ok=True)
        shutil.copy(bundled / name, folder / "adapter" / name)
    shutil.copytree(bundled / "students" / "deep-shap-labelling", folder / "student")
    data = folder / "data" / "sst2"
    data.mkdir(parents=True, exist_ok=True)
    lines = (bundled / "test.jsonl").read_bytes().splitlines(keepends=True)[:20]
    (data / "test.jsonl").write_bytes(b"".join(lines))
    (folder / "packed" / "sst2").mkdir(parents=True)
    (folder / "packed" / "sst2" / "test.jsonl.gz").write_bytes(gzip.compress(b"".join(lines)))
    shutil.copy(ROOT / "tasks" / "sst2.toml", folder / "sst2.toml")
    shutil.copy(ROOT / "recipes" / "saloss.toml", folder / "saloss.toml")
    shutil.copytree(ROOT / "submissions", folder / "submissions", dirs_exist_ok=True)
    shutil.copy(ROOT / "leaderboard" / "passed.json", folder / "passed.json")
    (folder / "config.toml").write_text('explainer = "random"\nlimit = 4\nmetrics = ["aopc"]\n')
    sharded = folder / "sharded"
    sharded.mkdir()
    names = {"a": "model-1.safetensors", "b": "model-2.safetensors"}
    for name in names.values():
        (sharded / name).write_bytes(name.encode())
    index = {"metadata": {"total_size": 2}, "weight_map": names}
    (sharded / "model.safetensors.index.json").write_text(json.dumps(index))
    parameters = {"w": torch.nn.Parameter(torch.arange(6.0))}
    (folder / "training").mkdir()
    save_checkpoint(folder / "training", parameters, torch.optim.AdamW(parameters.values()),
                    TrainingState((0.5,), 3))  # fmt: skip


def readers(folder: Path) -> list[Reader]:
    """Return all kinds of files in a folder that `make_files` made."""
    from faithbench.records.record import read
    from faithbench.records.store import record_files

    (record, _), *_ = record_files(folder / "results")
    (published, _), *_ = record_files(folder / "records")
    (bounds,) = (folder / "results").glob("bounds-*.jsonl")
    (near,) = (folder / "results" / ".neighbours").glob("*.json")
    (folder / "neighbours.key").write_text(str(json.loads(near.read_text())["key"]))
    partial = folder / "partial.rows.jsonl"
    rows = record.with_name(read(record).rows.file)
    packed = published.with_name(read(published).rows.file)
    adapter, student, data = folder / "adapter", folder / "student", folder / "data" / "sst2"
    scores = folder / "submissions" / "my-attr"
    return [
        Reader("partial rows", partial, lambda: _partial(partial)),
        Reader("partial times", folder / "partial.rows.times.jsonl", lambda: _partial(partial)),
        Reader("rows", rows, lambda: _stored(record)),
        Reader("rows, packed", packed, lambda: _stored(published)),
        Reader("record", record, lambda: _record(record)),
        Reader("bounds of AOPC", bounds, lambda: _bounds(folder, bounds)),
        Reader("neighbours", near, lambda: _neighbours(folder, near)),
        Reader("adapter: weights", adapter / "adapter_model.safetensors",
               lambda: read_model(adapter)),
        Reader("adapter: settings", adapter / "adapter_config.json", lambda: read_model(adapter)),
        Reader("adapter: card", adapter / "card.json", lambda: read_model(adapter)),
        Reader("heads", adapter / "heads.json", lambda: read_heads(adapter / "heads.json")),
        Reader("student: card", student / "card.json", lambda: _student(student)),
        Reader("student: weights", student / "student-0.safetensors", lambda: _student(student)),
        Reader("checkpoint of a training", folder / "training" / "checkpoint.safetensors",
               lambda: read_checkpoint(folder / "training")),
        Reader("index of weights", folder / "sharded" / "model.safetensors.index.json",
               lambda: _index(folder / "sharded")),
        Reader("data", data / "test.jsonl", lambda: _data(folder / "data")),
        Reader("data, packed", folder / "packed" / "sst2" / "test.jsonl.gz",
               lambda: _data(folder / "packed")),
        Reader("passed checks", folder / "passed.json", lambda: _passed(folder)),
        Reader("scores", scores / "scores" / "sst2.jsonl", lambda: _scores(scores)),
        Reader("entry", scores / "entry.toml", lambda: _entry(scores)),
        Reader("task", folder / "sst2.toml", lambda: read_task(folder / "sst2.toml"), by_hand=True),
        Reader("recipe", folder / "saloss.toml", lambda: _recipe(folder / "saloss.toml"),
               by_hand=True),
        Reader("plan", folder / "plan.toml", lambda: _plan(folder / "plan.toml"), by_hand=True),
        Reader("settings of a run", folder / "config.toml",
               lambda: _config(folder / "config.toml"), by_hand=True),
    ]  # fmt: skip


def _partial(path: Path) -> Reading:
    """Continue from a copy: opening mends the file."""
    from faithbench.records.rows_file import times_path
    from faithbench.records.rows_writer import open_rows

    copy = path.with_name("opened.rows.jsonl")
    shutil.copyfile(path, copy)
    shutil.copyfile(times_path(path), times_path(copy))
    with open_rows(copy, KEY) as file:
        parts = {("row", name): row for name, row in file.done.items()}
        return Reading(None, parts=parts | {("s", n): s for n, s in file.seconds.items()})


def _stored(path: Path) -> Reading:
    from faithbench.records.record import read
    from faithbench.records.store import StoredRecord

    return Reading(StoredRecord(path, read(path)).rows)


def _record(path: Path) -> Reading:
    from faithbench.records.record import read

    return Reading(read(path))


def _bounds(folder: Path, path: Path) -> Reading:
    from types import SimpleNamespace

    from faithbench.run.measures.aopc_bounds import read_bounds

    model: Any = SimpleNamespace(sha256=path.stem.removeprefix("bounds-"))
    return Reading(None, parts=read_bounds(folder / "results", model))


def _neighbours(folder: Path, path: Path) -> Reading:
    from types import SimpleNamespace

    from faithbench.metrics import neighbours

    digest = (folder / "neighbours.key").read_text()
    key: Any = SimpleNamespace(digest=digest, ids=("",) * 6, count=neighbours.COUNT)
    read = neighbours._read(path, key)
    return Reading(None, parts={} if read is None else {"all": read})


def read_model(folder: Path) -> Reading:
    """Read what decides an adapter's network, known by its digest, and the card's scores."""
    from faithbench.core.files import read_object
    from faithbench.models.files.digest import sha256_of_model
    from faithbench.models.files.weights import locate_adapter, read_card

    name = sha256_of_model(locate_adapter(folder))
    settings, card = read_object(folder / "adapter_config.json"), read_card(folder)
    strength = (settings.get("r"), settings.get("lora_alpha"))
    return Reading((*strength, *(card.get(fact) for fact in CARD)), name)


def read_heads(path: Path) -> Reading:
    """Heads are known by the digest of their file, which is in the record as an asset."""
    from faithbench.core.files import file_sha256
    from faithbench.explainers.passes import heads

    return Reading(heads.read_heads(path), file_sha256(path))


def _student(folder: Path) -> Reading:
    from types import SimpleNamespace

    import torch

    from faithbench.core.files import file_sha256
    from faithbench.explainers.students.card import load_student, read_student

    card = read_student(folder)
    model: Any = SimpleNamespace(dtype=torch.float32, device=torch.device("cpu"))
    network = load_student(folder, card, 0, model)
    weights = sum(float(value.double().sum()) for value in network.state_dict().values())
    return Reading((card, weights), file_sha256(folder / "card.json"))


def read_checkpoint(folder: Path) -> Reading:
    """Continue a training from its checkpoint."""
    import torch

    from faithbench.training.saving import load_checkpoint

    parameters = {"w": torch.nn.Parameter(torch.zeros(6))}
    state = load_checkpoint(folder, parameters, torch.optim.AdamW(parameters.values()))
    return Reading((state, parameters["w"].tolist(), torch.get_rng_state().sum().item()))


def _index(folder: Path) -> Reading:
    from faithbench.core.files import file_sha256
    from faithbench.models.files.weights import loaded_files

    name = file_sha256(folder / "model.safetensors.index.json")
    return Reading([path.name for path in loaded_files(folder)], name)


def _data(folder: Path) -> Reading:
    from faithbench.data.dataset import load_dataset
    from faithbench.data.tasks import load_task

    data = load_dataset(load_task("sst2"), source="folder", folder=folder, allow_changed=True)
    return Reading(data.examples, data.sha256)


def _passed(folder: Path) -> Reading:
    """Submissions that are left out are said so; what remains is known by its content."""
    from faithbench.records.passed import accepted_submissions
    from faithbench.records.record import read

    submitted = accepted_submissions(folder / "submissions", folder / "passed.json")
    parts = {one.folder.name: [read(one.folder / n) for n in one.records]
             for one in submitted.accepted}  # fmt: skip
    return Reading(None, parts=parts)


def _scores(folder: Path) -> Reading:
    from faithbench.records.passed import content_digest
    from faithbench.submissions.score_files import read_scores

    scores = read_scores(folder / "scores" / "sst2.jsonl")
    return Reading({name: list(values) for name, values in scores.items()}, content_digest(folder))


def _entry(folder: Path) -> Reading:
    from faithbench.records.passed import content_digest
    from faithbench.submissions.entry import read_entry

    return Reading(read_entry(folder), content_digest(folder))


def read_task(path: Path) -> Reading:
    """Read a task file."""
    from faithbench.data.tasks import load_task

    return Reading(load_task(str(path)))


def _recipe(path: Path) -> Reading:
    from faithbench.studies.reproduction.reading import read_recipe

    recipe = read_recipe(path)
    return Reading(recipe, recipe.digest)


def _plan(path: Path) -> Reading:
    from faithbench.leaderboard.plan import read_plan

    return Reading(read_plan(path))


def _config(path: Path) -> Reading:
    """Read settings as the command `run` does."""
    import click
    import typer.main

    from faithbench.cli.app import app
    from faithbench.cli.help.command import read_settings

    command: Any = typer.main.get_command(app)
    run = command.commands["run"]
    context: Any = click.Context(run)
    read_settings(context, path)
    parsed = click.Context(run, default_map=context.default_map)
    try:
        run.parse_args(parsed, ["--task", "sst2"])
    except Exception as error:
        if not hasattr(error, "format_message"):  # typer has its own copy of click
            raise
        raise FaithbenchError(error.format_message()) from None
    return Reading(str(sorted(parsed.params.items(), key=str)))
