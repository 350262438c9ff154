"""Closed schemas for files: no unknown keys, no NaN, and errors in one line."""

from __future__ import annotations

from typing import Annotated

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
)

Count = Annotated[int, Field(ge=0)]


class Facts(BaseModel):
    """Base of every part of a record: frozen, no unknown keys, no NaN or infinity."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def describe_error(error: ValidationError) -> str:
    """Say in one line which key of a file is wrong, and how."""
    first, *others = error.errors()
    key = ".".join(str(part) for part in first["loc"])
    more = f" (and {len(others)} more)" if others else ""
    if first["type"] == "extra_forbidden":
        return f"unknown key '{key}'{more}"
    return f"key '{key}': {first['msg']}{more}" if key else f"{first['msg']}{more}"


class Closed(BaseModel):
    """A model that cannot be changed and takes no key it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")
