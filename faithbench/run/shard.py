"""Shards: every N-th chunk of a run, computed by commands that know nothing of each other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import reason, replace_file
from faithbench.core.schema import Facts, describe_error

Item = TypeVar("Item")


@dataclass(frozen=True)
class Shard:
    """One of `count` shards, numbered from 1."""

    index: int
    count: int

    @property
    def folder(self) -> str:
        """The name of the shard's folder below the results."""
        return f"shard-{self.index}-of-{self.count}"

    def part(self, chunks: Sequence[Item]) -> list[Item]:
        """Return every count-th chunk: they are sorted by length, so each shard has all lengths."""
        return list(chunks[self.index - 1 :: self.count])


WHOLE = Shard(1, 1)
"""A run that is not cut."""


def parse_shard(text: str) -> Shard:
    """Read `i/N`."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", text.strip())
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise FaithbenchError(f"--shard {text!r} should be i/N with i from 1 to N, such as 2/8")
    return Shard(int(match[1]), int(match[2]))


def shard_of_array(environment: Mapping[str, str]) -> Shard | None:
    """Return the shard that a task of a Slurm array stands for; None outside an array."""
    prefix = "SLURM_ARRAY_TASK_"
    names = ("ID", "COUNT", "MIN", "STEP")
    task, count, first, step = (environment.get(prefix + name, "") for name in names)
    if not task or not count:
        return None
    try:
        index = (int(task) - int(first or 1)) // int(step or 1) + 1
        return parse_shard(f"{index}/{int(count)}")
    except (ValueError, ZeroDivisionError, FaithbenchError):
        raise FaithbenchError(
            f"{prefix}ID={task}, _COUNT={count} and _MIN={first} are no shard; give one with "
            "--shard i/N, or --shard 1/1 for the whole run"
        ) from None


class Asked(Facts):
    """The options of the run that a shard is a part of, as names."""

    explainer: str
    task: str
    model: str | None
    data: str | None
    source: str
    split: str
    limit: int | None
    metrics: str
    operator: str
    device: str
    dtype: str
    compiled: bool = False
    seed: int
    seeds: int
    encoder: str | None
    human: bool
    batch: int
    long: str
    allow_changed_data: bool
    plugins: tuple[str, ...]


class ShardFacts(Facts):
    """A finished shard: the run it is a part of, and the keys of its explainers by their labels."""

    version: Literal[1] = Field(default=1, alias="faithbench_shard")
    index: Annotated[int, Field(ge=1)]
    count: Annotated[int, Field(ge=1)]
    examples: int
    keys: dict[str, str]
    asked: Asked


FILE = "shard.json"


def write_shard(folder: Path, facts: ShardFacts) -> None:
    """Mark a shard as finished."""
    text = facts.model_dump_json(by_alias=True, indent=2) + "\n"
    try:
        replace_file(folder / FILE, text.encode())
    except OSError as error:
        raise FaithbenchError(
            f"cannot write {folder / FILE}: {reason(error)}; choose another folder with --results"
        ) from error


def read_shard(folder: Path) -> ShardFacts:
    """Read what a finished shard is a part of."""
    path = folder / FILE
    try:
        return ShardFacts.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise FaithbenchError(
            f"{folder} holds no finished shard; check the folder, or run the shard's command "
            "again, which continues it"
        ) from None
    except OSError as error:
        raise FaithbenchError(f"cannot read {path}: {reason(error)}; check the folder") from error
    except ValidationError as error:
        raise FaithbenchError(
            f"{path}: {describe_error(error)}; run the shard's command again"
        ) from error
