"""What a task kind is: its facts, and what it can do.

A kind says what the task's examples look like, which outputs of which network it reads, and how
a prediction is made, erased around, named and scored; everything else asks the kind. Kinds never
import torch: they read a network through an engine that answers rows with log-probabilities.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from faithbench.core.erasure import Operator
from faithbench.core.types import Encoding, Example, Floats, Ints, Outputs, Target, TokenRow


@dataclass(frozen=True)
class Prediction:
    """What is explained of one example, ln f of its full input, and whether it is right."""

    target: Target
    log_probability: float
    right: bool


class Reader(Protocol):
    """Answers rows with log-probabilities: the engine of a model."""

    def log_probabilities(self, rows: Sequence[TokenRow], output: str = "logits") -> Floats:
        """Return one line per row, one column per class of an output."""
        ...


@dataclass(frozen=True, kw_only=True)
class Kind(ABC):
    """One kind of task. Fields are facts, methods what follows from a prediction.

    `texts` is 1, or 2 for a pair or a text with its question, which the network reads first if
    `second_first`. A task has `least_labels` labels or more; `has_answers` says whether examples
    have accepted answers, `has_choices` whether they have choices, of which the network reads one
    per row and gives it a single logit. `operators` are the ways to erase under which a
    prediction keeps its meaning, and `windows` says whether predictions of several windows can be
    joined. `network` ends the names of transformers' classes, AutoModelFor<network> among them,
    and `adapter_task` is peft's name for it; its `outputs` are explained one after the other, and
    added. `per_position`: the classes of an output are token positions. `scores` are those of a
    model, `usual_score` the one that training chooses by.
    """

    name: str
    texts: int
    second_first: bool = False
    least_labels: int = 2
    has_answers: bool = False
    has_choices: bool = False
    operators: tuple[Operator, ...] = ("mask", "delete", "pad")
    windows: bool = True
    network: str
    adapter_task: str
    model_noun: str
    head_noun: str
    outputs: tuple[str, ...] = ("logits",)
    per_position: bool = False
    right_noun: str = "accuracy"
    scores: tuple[str, ...]
    usual_score: str

    @property
    def has_classes(self) -> bool:
        """Whether an output has a class per label of the task."""
        return not (self.per_position or self.has_choices)

    def log_probabilities(self, logits: Any) -> Any:
        """Turn an output's logits, a tensor [rows, classes], into log-probabilities."""
        return logits.log_softmax(dim=-1)

    @abstractmethod
    def predict(
        self, reader: Reader, encodings: Sequence[Encoding], labels: Sequence[str]
    ) -> list[Prediction]:
        """Predict the full inputs."""

    @abstractmethod
    def evaluate(
        self,
        reader: Reader,
        inputs: Sequence[Sequence[TokenRow]],
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        labels: Sequence[str],
    ) -> Outputs:
        """Run inputs, a row per window, and return what is left of each one's prediction.

        `encodings` and `targets` are those of the full inputs they were made from.
        """

    def finds_labels(
        self, reader: Reader, inputs: Sequence[Sequence[TokenRow]], examples: Sequence[Example]
    ) -> list[bool] | None:
        """Return whether each input still gets its example's label; None if kinds have none."""
        return None

    def erasable(self, encoding: Encoding, target: Target) -> Ints:
        """Return the positions that may be erased to test an explanation of the target."""
        return np.flatnonzero(encoding.erasable).astype(np.int64)

    @abstractmethod
    def describe(self, labels: Sequence[str], encoding: Encoding, target: Target) -> str:
        """Say a prediction in words, with the text at hand."""

    def answer(self, encoding: Encoding, target: Target) -> str:
        """Return the words of a prediction, for rows to keep; empty where its name is enough."""
        return ""

    @abstractmethod
    def name_target(self, labels: Sequence[str], target: Target) -> str:
        """Name a prediction without the text, as rows keep it."""

    @abstractmethod
    def name_truth(self, labels: Sequence[str], label: int) -> str:
        """Name the gold label without the text; empty where there is none."""

    @abstractmethod
    def is_right(self, target: Target, example: Example) -> bool | None:
        """Return whether a recorded prediction is right, or None if that needs the model."""

    def neighbour_class(self, target: Target) -> int:
        """Return the class within which an example's neighbours are sought."""
        return target if isinstance(target, int) else 0

    @abstractmethod
    def outcome(self, encoding: Encoding, target: Target) -> Any:
        """Return what `score` wants of one prediction."""

    @abstractmethod
    def score(
        self, outcomes: Sequence[Any], examples: Sequence[Example], labels: Sequence[str]
    ) -> dict[str, float]:
        """Score the outcomes of a split, by the names of `scores`."""

    @abstractmethod
    def majority(
        self, train: Sequence[Example], test: Sequence[Example], labels: Sequence[str]
    ) -> dict[str, float] | None:
        """Score the best constant prediction; None where there is none."""

    @abstractmethod
    def training_targets(self, encoding: Encoding) -> tuple[int, ...] | None:
        """Return the class of each output that training aims at; None if it is not readable."""

    def why_unreadable(self, encoding: Encoding) -> str:
        """Name the reason for which an example has no training targets."""
        return "unreadable"

    @property
    def unreadable_reasons(self) -> tuple[str, ...]:
        """The reasons there are, all counted in a training set's report."""
        return ()

    @abstractmethod
    def probe_target(self, encoding: Encoding, index: int, labels: Sequence[str]) -> Target:
        """Return a valid target of an encoding, another for each index: for tests."""
