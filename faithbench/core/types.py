"""The nouns of a run: small, frozen, and free of torch at import time.

An `Example` is data, with its gold `Answer`s; an `Encoding` is that example as a model reads it,
and a `Batch` several of them; an `Attribution` holds an explainer's scores of one example;
`Outputs` are the model's for erased inputs; a `Case` is what a metric is given.
"""

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
"""First character, and the one after the last."""
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
TokenRow = tuple[Ints, Ints]
"""One input of a network: its token ids and its segment ids."""


@dataclass(frozen=True)
class Answer:
    """A gold answer of a question: where it starts in the text, in characters, and its words."""

    start: int
    text: str


@dataclass(frozen=True)
class Example:
    """One row of a task's data. `label` is an index into the task's labels.

    `rationale` marks the characters of `text` that people gave as the reason for the label; None
    where there is none. `answers` are the gold answers of a question. `choices` are those that
    compete, in their order; `label` is then the number of the right one.
    """

    id: str
    text: str
    label: int
    text_b: str | None = None
    rationale: tuple[Span, ...] | None = None
    answers: tuple[Answer, ...] = ()
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Encoding:
    """One example as the model reads it; every array has one entry per token.

    `words` gives the index of the token's word, -1 for special tokens; `word_spans` are the
    character spans of the words of text and text_b, in that order. `spans` are the tokens'
    own character spans in the text they come from, empty for special tokens. `truncated` counts
    the tokens that were cut off. An input that is read in several `windows` has, for each of them,
    the positions that it reads, in order. Those of a `joint` encoding are the rows of the choices,
    which are read together. The row of one choice, `choice` by number, has those of the `others`
    with it: their tokens that may be erased are the same, in the same order.
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
    joint: bool = False
    choice: int | None = None
    others: tuple[Encoding, ...] = ()


# Tensors do not compare as wholes, so batches are equal only to themselves.
@dataclass(frozen=True, eq=False)
class Batch:
    """Several encodings, padded on the right, with the class to explain for each.

    Tensors have one row per example. `seeds` holds one number per example, derived from
    the run's seed and the example's id, for explainers that draw at random; `seed` is the run's
    own, for those that have several trained networks to choose from. `output` names the
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
    seed: int = 0


Target = int | tuple[int, int]
"""A predicted class, or the first and the last token of a predicted answer."""


@dataclass(frozen=True)
class Attribution:
    """The scores that an explainer gives to one example, one per token, on the CPU.

    `gap` is how far the scores miss the sum that the method promises (completeness), for
    explainers that have a method `gaps`. `elsewhere` is what rows through another network cost,
    in forwards of the model. All three costs are None where scores were replayed, at a cost that
    is not known.
    """

    encoding: Encoding
    target: Target
    every_score: Floats
    seconds: float
    forwards: int | None
    backwards: int | None
    gap: float | None = None
    elsewhere: float | None = 0.0

    @property
    def scores(self) -> Floats:
        """The scores of the tokens that may be erased."""
        return self.every_score[self.encoding.erasable]


@dataclass(frozen=True)
class Outputs:
    """The model's outputs for some erased inputs: one entry per input.

    `log_probability` is ln f, of what the model predicts on the full input (for an answer, the sum
    of those of its start and its end); `kept` says whether it still predicts that.
    """

    log_probability: Floats
    kept: Bools

    @property
    def probability(self) -> Floats:
        """The probability f of what the model predicts on the full input."""
        return np.exp(self.log_probability)


@dataclass(frozen=True)
class Case:
    """What a metric is given of one example.

    `scores` are those of the n tokens that may be erased, and `positions` where these are in the
    input; `log_probability` is ln f of the full input. `every_score` scores each token of the
    input, the special ones included: what some released code ranks. `evidence` lists the
    positions of the evidence: those, and the ones of a predicted answer, which may not be erased.
    `gold` marks the tokens of each gold answer. `bounds` are the lowest and the highest AOPC that
    any order of erasing was found to have, for metrics that ask for them.
    """

    scores: Floats
    positions: Ints
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
        """The positions by descending score; ties go to the earlier token."""
        return self.positions[rank(self.scores)]


Progress = Callable[[str, int, int], None]
"""Called as work goes on: what is being done, how much of it is done, and how much there is.

There is 0 of what cannot be counted, such as the loading of a model.
"""


def quiet(_what: str, _done: int, _total: int) -> None:
    """Report no progress."""


Evidence = Literal["text", "text_b", "both"]
"""Which text of an example may be erased."""

Long = Literal["truncate", "window"]
"""What is done with inputs that are too long for the model: cut, or read window by window."""

Settings = Mapping[str, bool | int | float | str]
"""The settings of an explainer, by name."""


def rank(scores: NDArray[np.floating[Any]]) -> NDArray[np.int64]:
    """Return indices by descending score; ties go to the earlier one."""
    # Not an ascending order read backwards: that would put the later of two ties first.
    return np.argsort(-scores, kind="stable").astype(np.int64)
