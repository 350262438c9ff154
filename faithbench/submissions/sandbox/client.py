"""Ask an untrusted explainer for its scores, and accept nothing but finite numbers."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import temporary_folder
from faithbench.core.schema import describe_error
from faithbench.core.text import readable
from faithbench.core.types import Progress, Target
from faithbench.models.files.weights import Located, locate
from faithbench.submissions.entry import Entry
from faithbench.submissions.sandbox.bubblewrap import wrapped
from faithbench.submissions.sandbox.confine import Limits
from faithbench.submissions.sandbox.messages import (
    Confined,
    Failed,
    Question,
    Ready,
    Request,
    Scores,
)
from faithbench.submissions.sandbox.process import run_isolated

if TYPE_CHECKING:
    from faithbench.submissions.measure import Setup


Message = TypeVar("Message", Confined, Ready, Scores, Failed)
COMMAND = (sys.executable, "-m", "faithbench.submissions.sandbox.worker")


@dataclass
class Collected:
    """The messages that have come back so far, checked one by one.

    `sizes` are the numbers of scores due per example. `started` is the moment before the first
    line of untrusted code ran; everything before it is the loading of the model.
    """

    sizes: Mapping[str, int]
    seeds: int
    on_confined: Callable[[Confined], None]
    progress: Progress
    scores: dict[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    confined: Confined | None = None
    started: float | None = None

    def take(self, line: bytes) -> None:
        """Take one line, refusing any but the message that is due."""
        if line.startswith(b'{"error"'):
            raise FaithbenchError(f"stopped: {readable(_parsed(line, Failed).error, 300)}")
        if self.confined is None:
            self.confined = _parsed(line, Confined)
            self.on_confined(self.confined)
        elif self.started is None:
            _parsed(line, Ready)
            self.started = time.monotonic()
        else:
            self._keep(_parsed(line, Scores))

    def _keep(self, message: Scores) -> None:
        name = readable(message.id, 60)
        if message.id not in self.sizes:
            raise FaithbenchError(f"sent scores of an example {name!r}, which was not asked for")
        if message.id in self.scores:
            raise FaithbenchError(f"sent scores of example {name!r} twice")
        lengths, expected = {len(scores) for scores in message.scores}, self.sizes[message.id]
        if lengths != {expected}:
            counts = ", ".join(str(length) for length in sorted(lengths))
            raise FaithbenchError(
                f"sent {counts} scores for the {expected} erasable tokens of example {name!r}"
            )
        # An explainer draws at random or does not: the first example says for all.
        seeds = {len(lists) for lists in self.scores.values()} or {1, self.seeds}
        if len(message.scores) not in seeds:
            raise FaithbenchError(
                f"sent scores under {len(message.scores)} seeds for example {name!r}, "
                f"where {' or '.join(str(count) for count in sorted(seeds))} are due"
            )
        self.scores[message.id] = message.scores
        self.progress("waiting for scores", len(self.scores), len(self.sizes))


def ask_explainer(
    folder: Path,
    entry: Entry,
    setup: Setup,
    targets: Sequence[Target],
    seeds: Sequence[int],
    limits: Limits,
    on_confined: Callable[[Confined], None],
    progress: Progress,
) -> tuple[dict[str, tuple[tuple[float, ...], ...]], float]:
    """Return each example's scores, one list per seed, and the seconds that they took."""
    sizes = {e.example.id: int(e.erasable.sum()) for e in setup.encodings}
    collected = Collected(sizes, len(seeds), on_confined, progress)
    with temporary_folder() as home:
        file = _copied(folder, home)
        request = _request(file, entry, setup, targets, seeds, limits)
        path = home / "request.json"
        path.write_text(request.model_dump_json(), encoding="utf-8")
        command = wrapped([*COMMAND, str(path)], home, map(Path, request.readable))
        run_isolated(command, home, limits, collected.take)
        ended = time.monotonic()
    if missing := len(sizes) - len(collected.scores):
        raise FaithbenchError(f"ended without the scores of {missing} of {len(sizes)} examples")
    return collected.scores, ended - (collected.started or ended)


def _request(
    file: Path,
    entry: Entry,
    setup: Setup,
    targets: Sequence[Target],
    seeds: Sequence[int],
    limits: Limits,
) -> Request:
    model, task = setup.model, setup.data.task
    questions = tuple(
        Question(id=e.example.id, text=e.example.text, text_b=e.example.text_b, target=target)
        for e, target in zip(setup.encodings, targets, strict=True)
    )
    located = locate(model.name, model.revision)
    return Request(
        file=str(file),
        explainer=entry.explainer or "",
        settings=entry.settings,
        model=model.name,
        revision=model.revision,
        labels=model.labels,
        kind=task.kind,
        evidence=task.evidence,
        model_sha256=model.sha256,
        examples=questions,
        seeds=tuple(seeds),
        readable=tuple(str(path) for path in _files_of_model(located)),
        seconds=limits.seconds,
        memory_mb=limits.memory_mb,
        file_mb=limits.file_mb,
    )


def _parsed(line: bytes, message: type[Message]) -> Message:
    try:
        return message.model_validate_json(line, strict=True)
    except ValidationError as error:
        raise FaithbenchError(
            f"sent a line that is not a valid message ({readable(describe_error(error))}); "
            "scores must be finite numbers"
        ) from error


def _copied(folder: Path, home: Path) -> Path:
    """Copy the explainer and its data, and nothing else.

    Byte code next to it could be of other code than the file that was reviewed.
    """
    copy = home / "submission"
    copy.mkdir()
    shutil.copyfile(folder / "explainer.py", copy / "explainer.py")
    if (folder / "data").is_dir():
        shutil.copytree(folder / "data", copy / "data")
    return copy / "explainer.py"


def _files_of_model(located: Located) -> list[Path]:
    """List the files of a model for a worker to read, without data that may lie next to them."""
    folders = [folder for folder in (located.folder, located.adapter) if folder is not None]
    files = [path for folder in folders for path in _without_rows(folder)]
    if located.folder is not None:
        return files
    from huggingface_hub.constants import HF_HUB_CACHE
    from huggingface_hub.file_download import repo_folder_name

    # The cache holds other models, and data sets with their labels, next to this one.
    own = repo_folder_name(repo_id=located.base, repo_type="model")
    return [*files, Path(HF_HUB_CACHE) / own]


def _without_rows(folder: Path) -> list[Path]:
    """Return a folder, which can then be listed, or all but the data in it if there are some."""
    paths = list(folder.iterdir())
    files = [path for path in paths if ".jsonl" not in path.name]
    return [folder] if len(files) == len(paths) and all(p.is_file() for p in paths) else files
