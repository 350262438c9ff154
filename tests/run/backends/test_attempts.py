"""A chunk may lose two workers; the third loss ends the run with a line that names it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.run.backends.attempts import Attempts


def chunk_of(*ids: str) -> Any:
    return SimpleNamespace(encodings=[SimpleNamespace(example=SimpleNamespace(id=i)) for i in ids])


def test_the_third_loss_at_one_chunk_is_an_error() -> None:
    attempts = Attempts([chunk_of("a", "b", "c"), chunk_of("d")])
    for index in (0, 1, 0, 1):
        attempts.count_lost(index, "a worker was lost", "more memory")
    with pytest.raises(
        FaithbenchError,
        match=r"^a worker was lost at examples 'a' to 'c', the last of 3 workers lost there, "
        r"perhaps for lack of memory; run again with more memory$",
    ):
        attempts.count_lost(0, "a worker was lost", "more memory")
    with pytest.raises(FaithbenchError, match="at example 'd', the last"):
        attempts.count_lost(1, "a worker was lost", "more memory")
