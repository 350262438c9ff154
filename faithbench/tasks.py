"""Task files: what is asked, where its data are, and which model answers."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StrictInt, ValidationError, model_validator
from pydantic_core import ErrorDetails

from faithbench.errors import FaithbenchError, unknown

Source = Literal["folder", "hub", "bundled"]
Rationale = Literal["human", "proxy", "none"]

SOURCES: tuple[Source, ...] = ("folder", "hub", "bundled")

# A row with the place it was read at, for messages.
Placed = tuple[str, object]

Split = Annotated[str, Field(pattern="^(train|dev|test)$")]
Text = Annotated[str, Field(min_length=1)]
# A plain name cannot climb out of the folder it is looked up in.
Plain = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$")]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
# A branch or tag can move; only a whole commit pins the data.
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{40}$")]


class _Closed(BaseModel):
    """A model that cannot be changed and takes no key it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class FolderSource(_Closed):
    """Files `<name>/<stem>.jsonl.gz` under the data folder, with the sums they were tested with."""

    name: Plain
    splits: dict[Split, Plain] = Field(min_length=1)
    sha256: dict[Plain, Sha256] = {}

    @model_validator(mode="after")
    def _sums_belong_to_splits(self) -> Self:
        if stray := sorted(set(self.sha256) - set(self.splits.values())):
            raise ValueError(f"sha256 names {', '.join(stray)}, which no split uses")
        return self

    def file(self, root: Path, split: str) -> Path:
        """Return the packed file of a split, or the plain one where only that is there."""
        packed = root / self.name / f"{self.splits[split]}.jsonl.gz"
        plain = packed.with_suffix("")
        return plain if plain.is_file() and not packed.is_file() else packed


class HubSource(_Closed):
    """A dataset of the Hugging Face hub at one commit; `columns` maps our names to its columns.

    Labels are matched by name where the hub's names are the task's, else by index.
    """

    dataset: Text
    config: str | None = None
    revision: Commit
    splits: dict[Split, Text] = Field(min_length=1)
    columns: dict[Literal["id", "text", "text_b", "label"], Text]

    @model_validator(mode="after")
    def _columns_are_enough(self) -> Self:
        if absent := [name for name in ("text", "label") if name not in self.columns]:
            raise ValueError(f"columns must name the hub's column for {' and '.join(absent)}")
        return self


class BundledSource(_Closed):
    """Files under `faithbench/bundled/<task>/`, shipped with the package."""

    splits: dict[Split, Plain] = Field(min_length=1)
    rationale: Rationale = "none"


class ModelRef(_Closed):
    """A model by name, e.g. `bundled:sst2` or a hub name at a revision."""

    name: Text
    revision: str | None = None


class Task(_Closed):
    """One task file. `evidence` says which text may be erased."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    version: Annotated[StrictInt, Field(ge=1)]
    title: Text
    kind: Literal["classification", "pair", "qa"]
    labels: tuple[Text, ...] = Field(min_length=1)
    evidence: Literal["text", "text_b", "both"] = "text"
    rationale: Rationale = "none"
    rationale_note: str = ""
    licence: Text
    citation: Text
    folder: FolderSource | None = None
    hub: HubSource | None = None
    bundled: BundledSource | None = None
    models: dict[Source, ModelRef]

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        present = {name for name in SOURCES if getattr(self, name) is not None}
        if not present:
            raise ValueError(f"expected at least one source: {', '.join(SOURCES)}")
        if stray := sorted(set(self.models) - present):
            raise ValueError(f"models.{stray[0]} is given, but the task has no {stray[0]} source")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("expected labels that differ from each other")
        if self.kind != "qa" and len(self.labels) < 2:
            raise ValueError(f"expected two labels or more for a {self.kind} task")
        if self.kind == "classification" and self.evidence != "text":
            raise ValueError("a classification task has one text: expected evidence = 'text'")
        if self.kind != "classification" and self.hub and "text_b" not in self.hub.columns:
            raise ValueError(f"a {self.kind} task has two texts: expected hub.columns.text_b")
        return self


_TABLES: dict[str, type[_Closed]] = {
    "folder": FolderSource,
    "hub": HubSource,
    "bundled": BundledSource,
    "models": ModelRef,
}


def task_folder() -> Path:
    """Return the folder of task files: the wheel's own, or the one beside the package."""
    package = Path(__file__).parent
    for folder in (package / "_tasks", package.parent / "tasks"):
        if folder.is_dir():
            return folder
    raise FaithbenchError(
        f"looked for task files in {package / '_tasks'} and {package.parent / 'tasks'}, "
        "found neither folder; install faithbench again"
    )


def task_names() -> tuple[str, ...]:
    """Return the names of all tasks, sorted."""
    return tuple(sorted(path.stem for path in task_folder().glob("*.toml")))


def load_task(name_or_path: str) -> Task:
    """Read a task by its name, or from a path that ends in `.toml`."""
    if name_or_path.endswith(".toml"):
        return _read(Path(name_or_path))
    if name_or_path not in task_names():
        raise unknown("task", name_or_path, task_names())
    return _read(task_folder() / f"{name_or_path}.toml")


def _read(path: Path) -> Task:
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FaithbenchError(
            f"cannot read the task file {path}: {error.strerror}; "
            f"give a .toml file or one of: {', '.join(task_names())}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FaithbenchError(
            f"task file {path} is not valid TOML: {error}; mend the syntax there"
        ) from error
    try:
        task = Task.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(_fault(details) for details in error.errors())
        raise FaithbenchError(f"task file {path}: {faults}") from error
    if task.name != path.stem:
        raise FaithbenchError(
            f"task file {path}: key 'name': expected {path.stem!r}, the file's name, "
            f"found {task.name!r}; rename one of them"
        )
    return task


def _fault(details: ErrorDetails) -> str:
    """Say in one clause which key is wrong, what was expected and what was found."""
    location = [str(part) for part in details["loc"] if part != "[key]"]
    key = f"key {'.'.join(location)!r}"
    table = _TABLES[location[0]] if len(location) > 1 and location[0] in _TABLES else Task
    if details["type"] == "missing":
        field = table.model_fields[location[-1]]
        kind = getattr(field.annotation, "__name__", str(field.annotation))
        return f"{key} is missing; expected a value of type {kind}"
    if details["type"] == "extra_forbidden":
        return f"{key} is unknown; expected one of {', '.join(table.model_fields)}"
    if details["type"] == "value_error":
        clause = details["msg"].removeprefix("Value error, ")
        return f"{key}: {clause}" if location else clause
    expected = details["msg"].removeprefix("Input should be ").replace("String should", "to")
    return f"{key}: expected {expected}, found {details['input']!r}"
