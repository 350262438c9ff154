"""Choices: each is read with the text in a row of its own, and their logits compete.

An encoding of such an example is joint (`Encoding.joint`): its windows are the rows of the
choices, which share the positions of the text, so that a token is erased from all rows at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from faithbench.core.types import Encoding, Example, Floats, Outputs, Target, TokenRow
from faithbench.data.kinds.classification import Classification
from faithbench.data.kinds.kind import Prediction, Reader
from faithbench.data.windows import rows_of


@dataclass(frozen=True, kw_only=True)
class MultipleChoice(Classification):
    """The prediction is the likeliest choice: its number, from 0."""

    def log_probabilities(self, logits: Any) -> Any:
        """Return the logits as they are: a row has one, which means nothing by itself."""
        return logits

    def predict(
        self, reader: Reader, encodings: Sequence[Encoding], labels: Sequence[str]
    ) -> list[Prediction]:
        """Predict the likeliest choice of each example; of equal ones, the first."""
        answers = choice_log_probabilities(reader, [rows_of(encoding) for encoding in encodings])
        targets = [int(np.argmax(answer)) for answer in answers]
        return [
            Prediction(target, float(answer[target]), target == encoding.example.label)
            for target, answer, encoding in zip(targets, answers, encodings, strict=True)
        ]

    def evaluate(
        self,
        reader: Reader,
        inputs: Sequence[Sequence[TokenRow]],
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        labels: Sequence[str],
    ) -> Outputs:
        """Return each choice's log-probability among all, and whether it is still the likeliest."""
        answers = choice_log_probabilities(reader, inputs)
        chosen = [(answer, int(target)) for answer, target in zip(answers, targets, strict=True)]  # type: ignore[arg-type]  # a choice is a number
        return Outputs(
            np.array([answer[target] for answer, target in chosen]),
            np.array([int(np.argmax(answer)) == target for answer, target in chosen], dtype=bool),
        )

    def finds_labels(
        self, reader: Reader, inputs: Sequence[Sequence[TokenRow]], examples: Sequence[Example]
    ) -> list[bool] | None:
        """Return whether each input's likeliest choice is the right one."""
        answers = choice_log_probabilities(reader, inputs)
        return [int(np.argmax(a)) == e.label for a, e in zip(answers, examples, strict=True)]

    def describe(self, labels: Sequence[str], encoding: Encoding, target: Target) -> str:
        """Return the name of the choice and its words."""
        return f"{self.name_target(labels, target)}: {self.answer(encoding, target)}"

    def answer(self, encoding: Encoding, target: Target) -> str:
        """Return the words of the choice."""
        return encoding.example.choices[int(target)]  # type: ignore[arg-type]  # a choice is a number

    def neighbour_class(self, target: Target) -> int:
        """Return one class for all: the place of a choice says nothing of the text."""
        return 0

    def score(
        self, outcomes: Sequence[int], examples: Sequence[Example], labels: Sequence[str]
    ) -> dict[str, float]:
        """Return accuracy: the places of choices are no classes."""
        return {"accuracy": super().score(outcomes, examples, labels)["accuracy"]}

    def training_targets(self, encoding: Encoding) -> tuple[int, ...] | None:
        """Return the right choice."""
        return (encoding.example.label,)

    def probe_target(self, encoding: Encoding, index: int, labels: Sequence[str]) -> Target:
        """Return one choice after the other."""
        return index % len(encoding.example.choices)


MULTIPLE_CHOICE = MultipleChoice(
    name="multiple-choice",
    texts=1,
    has_choices=True,
    windows=False,
    network="MultipleChoice",
    adapter_task="SEQ_CLS",
    model_noun="multiple-choice model",
    head_noun="choice head",
    scores=("accuracy",),
    usual_score="accuracy",
)
MULTIPLE_CHOICE_QUESTION = replace(MULTIPLE_CHOICE, name="multiple-choice-qa", texts=2)


def choice_log_probabilities(reader: Reader, inputs: Sequence[Sequence[TokenRow]]) -> list[Floats]:
    """Return the log-probabilities of each input's choices: ln softmax of their rows' logits."""
    logits = reader.log_probabilities([row for rows in inputs for row in rows])[:, 0]
    ends = np.cumsum([len(rows) for rows in inputs])
    return [among(part) for part in np.split(logits, ends[:-1])]


def among(logits: Floats) -> Floats:
    """Return ln softmax over the last dimension."""
    total: Floats = np.logaddexp.reduce(logits, axis=-1, keepdims=True)
    return logits - total
