"""Task files: what is asked, where its data are, and which model answers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StrictInt, ValidationError, model_validator
from pydantic_core import ErrorDetails

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import read_toml
from faithbench.core.schema import Closed
from faithbench.core.types import Evidence
from faithbench.data.kinds import KINDS, KindName
from faithbench.data.task_schema import (
    TABLES,
    ModelRef,
    PaperText,
    PublishedScore,
    Rationale,
    SourceName,
    SourceTables,
    SplitByDigest,
    Text,
)


class Task(SourceTables):
    """One task file: what is asked, which models answer, and the tables of its sources.

    `evidence` says which text may be erased. A `rationale_unit` of sentences says that people
    marked whole sentences: agreement is then measured on sentences too. `dev_metric` is the score
    by which training chooses an epoch, where the task's papers report another than is usual.
    `rationale_ratio` is the share of the words that `faithbench fresh` keeps of a text. `papers`
    are those to cite, keys of `core/papers.bib` or entries of BibTeX; `citation` is for what
    stands in no bibliography.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")]
    version: Annotated[StrictInt, Field(ge=1)]
    title: Text
    kind: KindName
    labels: tuple[Text, ...] = Field(min_length=1)
    evidence: Evidence = "text"
    rationale: Rationale = "none"
    rationale_note: str = ""
    rationale_unit: Literal["words", "sentences"] = "words"
    dev_metric: Text | None = None
    rationale_ratio: Annotated[float, Field(gt=0, le=1)] = 0.2
    licence: str = ""
    papers: tuple[PaperText, ...] = ()
    citation: str = ""
    models: dict[SourceName, ModelRef] = Field(default={})
    published: tuple[PublishedScore, ...] = ()

    @model_validator(mode="after")
    def _parts_agree(self) -> Self:
        if not self.tables:
            raise ValueError(f"expected at least one source: {', '.join(TABLES)}")
        if stray := sorted(set(self.models) - set(self.tables)):
            raise ValueError(f"models.{stray[0]} is given, but the task has no {stray[0]} source")
        if len(set(self.labels)) < len(self.labels):
            raise ValueError("expected labels that differ from each other")
        kind = KINDS[self.kind]
        if len(self.labels) < kind.least_labels:
            raise ValueError(f"expected two labels or more for a {self.kind} task")
        if kind.texts == 1 and self.evidence != "text":
            raise ValueError(f"a {self.kind} task has one text: expected evidence = 'text'")
        if kind.texts == 2 and self.hub and "text_b" not in self.hub.columns:
            raise ValueError(f"a {self.kind} task has two texts: expected hub.columns.text_b")
        if kind.has_choices and self.hub and "choices" not in self.hub.columns:
            raise ValueError(f"a {self.kind} task has choices: expected hub.columns.choices")
        return self


_SCHEMAS: dict[str, type[Closed]] = {**TABLES, "models": ModelRef, "published": PublishedScore}


def task_folder() -> Path:
    """Return the folder of task files: the wheel's own, or the one next to the package."""
    package = Path(__file__).parents[1]
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
        content = read_toml(path)
    except OSError as error:
        raise FaithbenchError(
            f"cannot read the task file {path}: {error.strerror}; "
            f"give a .toml file or one of: {', '.join(task_names())}"
        ) from error
    except ValueError as error:
        raise FaithbenchError(
            f"task file {path} is not valid TOML: {error}; fix the syntax there"
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


_KINDS_OF_VALUES = {"str": "a text", "int": "a whole number", "tuple": "a list", "dict": "a table"}


def _fault(details: ErrorDetails) -> str:
    """Return one clause that says which key is wrong, what was expected and what was found."""
    # pydantic marks a fault of a key itself, and not of its value, by a last "[key]".
    location = [str(key) for key in details["loc"] if key != "[key]"]
    key = f"key {'.'.join(location)!r}"
    schema = _SCHEMAS.get(location[0], Task) if len(location) > 1 else Task
    if location[:2] == ["folder", "derive"]:
        schema = SplitByDigest
    if details["type"] == "missing":
        field = schema.model_fields[location[-1]]
        kind = getattr(field.annotation, "__name__", str(field.annotation))
        return f"{key} is missing; expected {_KINDS_OF_VALUES.get(kind, kind)}"
    if details["type"] == "extra_forbidden":
        return f"{key} is unknown; expected one of {', '.join(schema.model_fields)}"
    if details["type"] == "value_error":
        clause = details["msg"].removeprefix("Value error, ")
        return f"{key}: {clause}" if location else clause
    # "Input should be X" becomes "expected X"; "String should match X", "expected to match X".
    expected = details["msg"].removeprefix("Input should be ").replace("String should", "to")
    expected = expected.replace("a valid tuple", "a list")
    return f"{key}: expected {expected}, found {details['input']!r}"
