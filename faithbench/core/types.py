"""The nouns of a run: small, frozen, and free of torch at import time."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import torch


Span = tuple[int, int]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Answer:
    """One accepted answer of a question: its character offset in the text, and its words."""

    start: int
    text: str


@dataclass(frozen=True)
class Example:
    """One row of a task. `label` is the index into the task's labels."""

    id: str
    text: str
    label: int
    text_b: str | None = None
    rationale: tuple[Span, ...] | None = None
    answers: tuple[Answer, ...] = ()


@dataclass(frozen=True)
class Encoding:
    """One example as the model reads it; every array has one entry per token.

    `words` gives the index of the token's word, -1 for special tokens; `word_spans` are the
    character spans of the words of text and text_b, in that order. `spans` are the tokens'
    own character spans in the text they come from, empty for special tokens. An input longer
    than the model's has `windows`: for each, the positions that it reads, in order.
    """

    example: Example
    ids: Ints
    types: Ints
    erasable: Bools
    words: Ints
    spans: tuple[Span, ...]
    word_spans: tuple[Span, ...]
    truncated: int
    windows: tuple[Ints, ...] = ()


@dataclass(frozen=True, eq=False)
class Batch:
    """Several encodings, padded on the right, with the class to explain for each.

    Tensors have one row per example. `seeds` holds one number per example, derived from
    the run's seed and the example's id, for explainers that draw at random. `output` names the
    output that `targets` index: "logits", or "start_logits" and "end_logits" of a question
    answering model, whose classes are the token positions.
    """

    encodings: tuple[Encoding, ...]
    ids: torch.Tensor
    types: torch.Tensor
    attention: torch.Tensor
    erasable: torch.Tensor
    targets: torch.Tensor
    seeds: tuple[int, ...]
    output: str = "logits"


Target = int | tuple[int, int]
"""A predicted class, or the first and the last token of a predicted answer."""


@dataclass(frozen=True)
class Attribution:
    """What an explainer said of one example: one score per token, on the CPU.

    `gap` is how far the scores miss the sum that the method promises (completeness), for
    explainers that have a method `gaps(model, batch, scores)`. What scores cost that were made
    elsewhere is not known: `forwards` and `backwards` are then None.
    """

    encoding: Encoding
    target: Target
    every_score: Floats
    seconds: float
    forwards: int | None
    backwards: int | None
    gap: float | None = None

    @property
    def scores(self) -> Floats:
        """The scores that count: those of the evidence."""
        return self.every_score[self.encoding.erasable]


@dataclass(frozen=True)
class Outputs:
    """What the model makes of some inputs: one entry per input.

    `log_probability` is ln f, that of what the model predicts on the full input (of an
    answer: of its start and of its end, added); `kept` says whether it still predicts that.
    """

    log_probability: Floats
    kept: Bools

    @property
    def probability(self) -> Floats:
        """The probability of what the model predicts on the full input."""
        return np.exp(self.log_probability)


@dataclass(frozen=True)
class Case:
    """What a metric sees of one example.

    `scores` are those of the n tokens that may be erased, and `places` their positions in the
    input; `log_probability` is ln f of the full input. `every_score` scores each token of the
    input, the special ones included: what some released code ranks. `evidence` lists the
    positions that have a say: the places, and those of a predicted answer, which may not be
    erased. `gold` marks the tokens of each accepted answer. `bounds` are the lowest and the
    highest AOPC that any order of erasing was found to have, for metrics that ask for them.
    """

    scores: Floats
    places: Ints
    log_probability: float
    every_score: Floats
    evidence: Ints
    gold: tuple[Bools, ...] = ()
    bounds: tuple[float, float] | None = None

    @property
    def n(self) -> int:
        """The number of tokens that may be erased."""
        return len(self.scores)

    @property
    def probability(self) -> float:
        """The probability of the prediction on the full input."""
        return math.exp(self.log_probability)

    @cached_property
    def order(self) -> Ints:
        """The places by descending score; ties go to the earlier token."""
        return self.places[rank(self.scores)]


Progress = Callable[[str, int, int], None]
"""Called as work goes on: what is being done, how much of it is done, and how much there is."""

Evidence = Literal["text", "text_b", "both"]
"""Which text of an example may be erased."""

Long = Literal["truncate", "window"]
"""What becomes of inputs longer than the model's: cut short, or read window by window."""

Settings = Mapping[str, bool | int | float | str]


def rank(scores: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Return indices by descending score; ties go to the earlier one."""
    return np.argsort(-scores, kind="stable").astype(np.int64)
