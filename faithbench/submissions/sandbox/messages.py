"""Messages between faithbench and the process of an untrusted explainer: closed, as JSON.

The worker imports this file before it confines itself. So it must not load numpy, whose threads
would stay free, nor a module that does; kinds of tasks and evidence are plain here for that reason.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from faithbench.core.schema import Facts

Score = Annotated[float, Field(ge=-1e30, le=1e30)]
"""A score; larger ones would overflow where they are added."""


class Question(Facts):
    """One example to explain, without its label and rationale: the worker must not see them."""

    id: str
    text: str
    text_b: str | None
    target: int | tuple[int, int]


class Request(Facts):
    """All that a worker needs: the explainer, the model, the examples, and its limits.

    An explainer that draws at random runs once under each of `seeds`, others under the first.
    """

    file: str
    explainer: str
    settings: dict[str, bool | int | float | str]
    model: str
    revision: str | None
    labels: tuple[str, ...]
    kind: str
    evidence: Literal["text", "text_b", "both"]
    model_sha256: str
    examples: tuple[Question, ...]
    seeds: tuple[int, ...]
    readable: tuple[str, ...]
    seconds: int
    memory_mb: int
    file_mb: int


class Promise(StrEnum):
    """What a sandbox promises, in the words that are printed."""

    MEMORY = "memory"
    NETWORK = "no network"
    PROCESSES = "no other processes"
    REACH = "no reach to running processes"
    WRITES = "writes only in a temporary folder"
    READS = "reads only code, model and its own folder"
    REMOVAL = "a temporary folder that can be removed"


NEEDED = (Promise.NETWORK, Promise.WRITES, Promise.READS)
"""Promises without which untrusted code is run only for someone who says so."""


class Confined(Facts):
    """The first answer, before any untrusted code runs: limits that hold here, and that do not.

    Both are in words, for people to read.
    """

    holds: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def needed(self) -> tuple[str, ...]:
        """What must hold for untrusted code to be run, and does not."""
        return tuple(promise for promise in NEEDED if promise not in self.holds)


class Ready(Facts):
    """The second answer: the model is loaded, and the untrusted code comes next."""

    ready: Literal[True]


class Scores(Facts):
    """The scores of one example, one list per seed; each has a score per erasable token."""

    id: str
    scores: Annotated[tuple[tuple[Score, ...], ...], Field(min_length=1)]


class Failed(Facts):
    """The last answer of a worker that could not go on."""

    error: str
