"""Task kinds, one file each: what a model of the task predicts, and all that follows from it.

Adding a kind takes its file here and its name in the tuple below.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from faithbench.data.kinds.classification import CLASSIFICATION, PAIR
from faithbench.data.kinds.kind import Kind, Prediction
from faithbench.data.kinds.multiple_choice import MULTIPLE_CHOICE, MULTIPLE_CHOICE_QUESTION
from faithbench.data.kinds.question_answering import QUESTION_ANSWERING

__all__ = ["KINDS", "Kind", "KindName", "Prediction"]

_BUILT_IN: tuple[Kind, ...] = (
    CLASSIFICATION,
    PAIR,
    QUESTION_ANSWERING,
    MULTIPLE_CHOICE,
    MULTIPLE_CHOICE_QUESTION,
)
KINDS: dict[str, Kind] = {kind.name: kind for kind in _BUILT_IN}


def _known(name: str) -> str:
    if name not in KINDS:
        *others, last = (repr(known) for known in KINDS)
        expected = f"Input should be {', '.join(others)} or {last}"
        raise PydanticCustomError("literal_error", "{expected}", {"expected": expected})
    return name


KindName = Annotated[
    str,
    AfterValidator(_known),
    WithJsonSchema({"enum": list(KINDS), "title": "Kind", "type": "string"}),
]
"""The name of a kind in a file: a task's, a record's, the board's."""
