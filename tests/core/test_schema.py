"""Schemas of files: closed, frozen, and with errors in one line."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from faithbench.core.schema import Closed, Count, Facts, describe_error


class Inner(Facts):
    count: Count
    share: float = 0.0


class Outer(Facts):
    inner: Inner


class Read(Closed):
    value: float


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ({"inner": {"count": -1}}, "key 'inner.count': Input should be greater than or equal to 0"),
        ({"inner": {"count": 1, "size": 2}}, "unknown key 'inner.size'"),
        ({"inner": {"size": 2}}, "key 'inner.count': Field required (and 1 more)"),
        (
            {"inner": {"count": 1, "share": float("nan")}},
            "key 'inner.share': Input should be",
        ),
        ([], "Input should be a valid dictionary or instance of Outer"),
    ],
)
def test_an_error_names_the_key_in_one_line(content: Any, line: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Outer.model_validate(content)
    assert describe_error(caught.value).startswith(line)
    assert "\n" not in describe_error(caught.value)


def test_facts_are_closed_frozen_and_finite() -> None:
    facts = Inner(count=1)
    with pytest.raises(ValidationError, match="frozen"):
        facts.count = 2
    # What people write may hold infinity; what programs write may not.
    assert Read(value=float("inf")).value == float("inf")
    with pytest.raises(ValidationError, match="finite"):
        Inner(count=1, share=float("inf"))
    assert issubclass(Facts, Closed)
