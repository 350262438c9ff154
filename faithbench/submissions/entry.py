"""entry.toml: who submits what. Its text is a stranger's, and is kept as data."""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from faithbench.core.errors import FaithbenchError
from faithbench.core.schema import Facts, describe_error
from faithbench.data.task_schema import SourceName
from faithbench.submissions.layout import check_name

MOST_BYTES = 20_000
_UNSEEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S")


def refuse_invisible(text: str) -> str:
    """Refuse characters that a reader cannot see, and addresses that are not the web's."""
    for character in text:
        if unicodedata.category(character) in _UNSEEN:
            raise ValueError(f"has the control or invisible character U+{ord(character):04X}")
    if text != text.strip():
        raise ValueError("begins or ends with a space")
    if _SCHEME.match(text) and not re.match(r"https?://[^\s<>\"'`\\]+$", text):
        raise ValueError("looks like an address, but not one of http:// or https://")
    return text


Line = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(refuse_invisible)]
Note = Annotated[str, Field(max_length=300), AfterValidator(refuse_invisible)]
Word = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,39}$")]
Label = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
Value = bool | int | Annotated[float, Field(allow_inf_nan=False)] | Note


class ScoresOf(Facts):
    """What a file of attributions is about: `scores/<task>.jsonl`, or the same with `.gz`."""

    task: Label
    source: SourceName = "bundled"
    split: Label = "test"
    model: Line | None = None


class Entry(Facts):
    """Who submits, and what: an explainer of explainer.py, or files of attributions."""

    name: Line
    authors: Annotated[tuple[Line, ...], Field(min_length=1, max_length=50)]
    paper: Note = ""
    code: Note = ""
    requirements: Annotated[tuple[Line, ...], Field(max_length=50)] = ()
    licence: Line
    kind: Literal["plugin", "attributions"]
    explainer: Label | None = None
    settings: Annotated[dict[Word, Value], Field(max_length=50)] = Field(default={})
    method: Line | None = None
    unit: Literal["tokens", "words"] | None = None
    scores: Annotated[tuple[ScoresOf, ...], Field(max_length=50)] = ()

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        plugin = self.kind == "plugin"
        needs = {"explainer": plugin, **dict.fromkeys(("method", "unit", "scores"), not plugin)}
        for key, needed in needs.items():
            if needed and not getattr(self, key):
                raise ValueError(f"kind {self.kind!r} needs the key {key!r}")
        for key, taken in {**needs, "settings": plugin}.items():
            if not taken and getattr(self, key):
                raise ValueError(f"kind {self.kind!r} has no key {key!r}")
        tasks = [one.task for one in self.scores]
        if len(set(tasks)) < len(tasks):
            raise ValueError("a task stands twice in 'scores'; there is one file per task")
        return self


def read_entry(folder: Path) -> Entry:
    """Read the entry of a submission, whose name is its folder's."""
    path = folder / "entry.toml"
    said = f"submission {check_name(folder.name)}, file entry.toml"
    try:
        data = path.read_bytes()
        if len(data) > MOST_BYTES:
            raise FaithbenchError(f"{said} has more than {MOST_BYTES} bytes; shorten it")
        # Through JSON, so that types are as strict as in a record.
        content = json.dumps(tomllib.loads(data.decode()), allow_nan=False)
        entry = Entry.model_validate_json(content, strict=True)
    except OSError as error:
        raise FaithbenchError(
            f"{said} cannot be read: {error.strerror}; `faithbench submission new` writes one"
        ) from error
    except ValidationError as error:
        raise FaithbenchError(f"{said}: {describe_error(error)}; mend the file") from error
    except (ValueError, TypeError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
        raise FaithbenchError(f"{said} is not valid TOML for an entry: {reason}") from error
    if entry.name != folder.name:
        raise FaithbenchError(
            f"{said}: key 'name' is {entry.name!r}, the folder is {folder.name!r}; "
            "give both the same name"
        )
    return entry
