"""Ask a stranger's explainer for its scores, and take nothing from it but finite numbers."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import temporary_folder
from faithbench.core.schema import describe_error
from faithbench.core.text import readable
from faithbench.core.types import Encoding, Progress, Target
from faithbench.data.dataset import Dataset
from faithbench.models.model import Model
from faithbench.models.weights import Located, locate
from faithbench.submissions.entry import Entry
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

Line = TypeVar("Line", Confined, Ready, Scores, Failed)
COMMAND = (sys.executable, "-m", "faithbench.submissions.sandbox.worker")


@dataclass
class Collected:
    """What has come back so far; `seconds` is from the first line of foreign code to the end."""

    sizes: Mapping[str, int]
    seeds: int
    on_confined: Callable[[Confined], None]
    progress: Progress
    scores: dict[str, tuple[tuple[float, ...], ...]] = field(default_factory=dict)
    confined: Confined | None = None
    started: float | None = None

    def take(self, line: bytes) -> None:
        """Take one line, refusing what is not the next thing a worker sends."""
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

    def _keep(self, given: Scores) -> None:
        name = readable(given.id, 60)
        if given.id not in self.sizes:
            raise FaithbenchError(f"sent scores of an example {name!r}, which nobody asked for")
        if given.id in self.scores:
            raise FaithbenchError(f"sent scores of example {name!r} twice")
        lengths, wanted = {len(own) for own in given.scores}, self.sizes[given.id]
        if lengths != {wanted}:
            found = ", ".join(str(length) for length in sorted(lengths))
            raise FaithbenchError(
                f"sent {found} scores for the {wanted} erasable tokens of example {name!r}"
            )
        known = {len(lists) for lists in self.scores.values()} or {1, self.seeds}
        if len(given.scores) not in known:
            raise FaithbenchError(
                f"sent scores under {len(given.scores)} seeds for example {name!r}, "
                f"where {' or '.join(str(count) for count in sorted(known))} are due"
            )
        self.scores[given.id] = given.scores
        self.progress("waiting for scores", len(self.scores), len(self.sizes))


def ask_explainer(
    folder: Path,
    entry: Entry,
    model: Model,
    data: Dataset,
    encodings: Sequence[Encoding],
    targets: Sequence[Target],
    seeds: Sequence[int],
    limits: Limits,
    on_confined: Callable[[Confined], None],
    progress: Progress,
) -> tuple[dict[str, tuple[tuple[float, ...], ...]], float]:
    """Return each example's scores, one list per seed, and the seconds that they took."""
    sizes = {e.example.id: int(e.erasable.sum()) for e in encodings}
    collected = Collected(sizes, len(seeds), on_confined, progress)
    with temporary_folder() as home:
        order = Request(
            file=str(_copied(folder, home)),
            explainer=entry.explainer or "",
            settings=entry.settings,
            model=model.name,
            revision=model.revision,
            labels=model.labels,
            kind=data.task.kind,
            evidence=data.task.evidence,
            weights_sha256=model.weights_sha256,
            examples=tuple(
                Question(
                    id=e.example.id, text=e.example.text, text_b=e.example.text_b, target=target
                )
                for e, target in zip(encodings, targets, strict=True)
            ),
            seeds=tuple(seeds),
            readable=tuple(str(path) for path in _of_model(locate(model.name, model.revision))),
            seconds=limits.seconds,
            memory_mb=limits.memory_mb,
            file_mb=limits.file_mb,
        )
        path = home / "order.json"
        path.write_text(order.model_dump_json(), encoding="utf-8")
        run_isolated([*COMMAND, str(path)], home, limits, collected.take)
        ended = time.monotonic()
    if missing := len(sizes) - len(collected.scores):
        raise FaithbenchError(f"ended without the scores of {missing} of {len(sizes)} examples")
    return collected.scores, ended - (collected.started or ended)


def _parsed(line: bytes, kind: type[Line]) -> Line:
    try:
        return kind.model_validate_json(line, strict=True)
    except ValidationError as error:
        raise FaithbenchError(
            f"sent a line that is not one of scores ({readable(describe_error(error))}); "
            "scores are finite numbers, and only numbers come back"
        ) from error


def _copied(folder: Path, home: Path) -> Path:
    """Copy the explainer and its data: byte code that lies beside it stays where it is."""
    copy = home / "submission"
    copy.mkdir()
    shutil.copyfile(folder / "explainer.py", copy / "explainer.py")
    if (folder / "data").is_dir():
        shutil.copytree(folder / "data", copy / "data")
    return copy / "explainer.py"


def _of_model(found: Located) -> list[Path]:
    """List what a worker must read of a model, without data that may lie beside it."""
    from huggingface_hub.constants import HF_HUB_CACHE

    folders = [folder for folder in (found.folder, found.adapter) if folder is not None]
    files = [path for folder in folders for path in folder.iterdir() if ".jsonl" not in path.name]
    return files if found.folder else [*files, Path(HF_HUB_CACHE)]
