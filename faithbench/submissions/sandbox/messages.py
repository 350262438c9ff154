"""What the process of a stranger's explainer is told, and what it answers: closed, as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from faithbench.core.schema import Facts
from faithbench.core.types import Evidence

Score = Annotated[float, Field(ge=-1e30, le=1e30)]
"""A score; larger ones would overflow where they are added."""


class Question(Facts):
    """One example to explain. Its label and its rationale are nobody's business there."""

    id: str
    text: str
    text_b: str | None
    target: int | tuple[int, int]


class Request(Facts):
    """All that a worker needs: the explainer, the model, the examples, and its limits.

    An explainer that draws at random is asked once under each of `seeds`, others under the first.
    """

    file: str
    explainer: str
    settings: dict[str, bool | int | float | str]
    model: str
    revision: str | None
    labels: tuple[str, ...]
    kind: Literal["classification", "pair", "qa"]
    evidence: Evidence
    weights_sha256: str
    examples: tuple[Question, ...]
    seeds: tuple[int, ...]
    readable: tuple[str, ...]
    seconds: int
    memory_mb: int
    file_mb: int


class Confined(Facts):
    """The first answer, before any of the stranger's code runs: what is enforced."""

    holds: tuple[str, ...]
    missing: tuple[str, ...]


class Ready(Facts):
    """The second answer: the model is there, and the stranger's code comes next."""

    ready: Literal[True]


class Scores(Facts):
    """The scores of one example, one list per seed; each has a score per erasable token."""

    id: str
    scores: Annotated[tuple[tuple[Score, ...], ...], Field(min_length=1)]


class Failed(Facts):
    """The last answer of a worker that could not go on."""

    error: str
