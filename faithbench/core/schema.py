"""Closed schemas for files: no unknown keys, no NaN, and errors in one line."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from faithbench.core.text import plain

Count = Annotated[int, Field(ge=0)]


class Closed(BaseModel):
    """A schema whose values are frozen and that takes no key it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Facts(Closed):
    """Base of what programs write, such as the parts of a record: without NaN or infinity, too."""

    model_config = ConfigDict(allow_inf_nan=False)


def describe_error(error: ValidationError) -> str:
    """Return one line that says which key of a file is wrong, and how."""
    first, *others = error.errors()
    key = plain(".".join(map(str, first["loc"])))  # a file of unknown origin names its keys
    more = f" (and {len(others)} more)" if others else ""
    if first["type"] == "extra_forbidden":
        return f"unknown key '{key}'{more}"
    return f"key '{key}': {first['msg']}{more}" if key else f"{first['msg']}{more}"
