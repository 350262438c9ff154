"""entry.toml: the authors of a submission, and what they submit. Its text is untrusted."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from faithbench.core.errors import FaithbenchError
from faithbench.core.schema import Facts, describe_error
from faithbench.data.task_schema import SourceName
from faithbench.submissions.layout import check_name
from faithbench.submissions.visible import invisible_in, refuse_hidden

MAX_BYTES = 20_000
# A scheme and something that follows at once: `javascript:x`, but not `LIME: why should I`.
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:\S")


def refuse_invisible(text: str) -> str:
    """Return the text; refuse characters that a reader cannot see, and non-web addresses."""
    if hidden := invisible_in(text):
        raise ValueError(f"has the control or invisible character U+{ord(hidden):04X}")
    if text != text.strip():
        raise ValueError("begins or ends with a space")
    if _SCHEME.match(text) and not re.match(r"https?://[^\s<>\"'`\\]+$", text):
        raise ValueError("looks like an address, but does not begin with http:// or https://")
    return text


RequiredText = Annotated[str, Field(min_length=1, max_length=300), AfterValidator(refuse_invisible)]
OptionalText = Annotated[str, Field(max_length=300), AfterValidator(refuse_invisible)]
SettingName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,39}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,79}$")]
SettingValue = bool | int | Annotated[float, Field(allow_inf_nan=False)] | OptionalText


class ScoreFile(Facts):
    """The data and model that a file of attributions is of: `scores/<task>.jsonl`, or `.gz`."""

    task: Name
    source: SourceName = "bundled"
    split: Name = "test"
    model: RequiredText | None = None


class Entry(Facts):
    """Authors, and what they submit: an explainer in explainer.py, or files of attributions."""

    name: RequiredText
    authors: Annotated[tuple[RequiredText, ...], Field(min_length=1, max_length=50)]
    paper: OptionalText = ""
    code: OptionalText = ""
    requirements: Annotated[tuple[RequiredText, ...], Field(max_length=50)] = ()
    licence: RequiredText
    kind: Literal["plugin", "attributions"]
    explainer: Name | None = None
    settings: Annotated[dict[SettingName, SettingValue], Field(max_length=50)] = Field(default={})
    method: RequiredText | None = None
    unit: Literal["tokens", "words"] | None = None
    scores: Annotated[tuple[ScoreFile, ...], Field(max_length=50)] = ()

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        plugin = self.kind == "plugin"
        needs = {"explainer": plugin, **dict.fromkeys(("method", "unit", "scores"), not plugin)}
        for key, needed in needs.items():
            if needed and not getattr(self, key):
                raise ValueError(f"kind {self.kind!r} needs the key {key!r}")
        for key, allowed in {**needs, "settings": plugin}.items():
            if not allowed and getattr(self, key):
                raise ValueError(f"kind {self.kind!r} has no key {key!r}")
        tasks = [file.task for file in self.scores]
        if len(set(tasks)) < len(tasks):
            raise ValueError("a task appears twice in 'scores'; there is one file per task")
        return self


def read_entry(folder: Path) -> Entry:
    """Read the entry of a submission; its name must be that of the folder."""
    path = folder / "entry.toml"
    where = f"submission {check_name(folder.name)}, file entry.toml"
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            raise FaithbenchError(f"{where} has more than {MAX_BYTES} bytes; shorten it")
        # Through JSON: its strict mode takes a list for a tuple, but no number for a text. TOML has
        # dates, infinity and NaN besides, which do not survive it.
        content = json.dumps(tomllib.loads(refuse_hidden(where, data)), allow_nan=False)
        entry = Entry.model_validate_json(content, strict=True)
    except OSError as error:
        raise FaithbenchError(
            f"{where} cannot be read: {error.strerror}; `faithbench submission new` writes one"
        ) from error
    except ValidationError as error:
        raise FaithbenchError(f"{where}: {describe_error(error)}; fix the file") from error
    except (ValueError, TypeError, RecursionError) as error:
        reason = str(error) or "nested too deeply"
        raise FaithbenchError(f"{where} is not valid TOML for an entry: {reason}") from error
    if entry.name != folder.name:
        raise FaithbenchError(
            f"{where}: key 'name' is {entry.name!r}, the folder is {folder.name!r}; "
            "give both the same name"
        )
    return entry
