"""Classes: of one text, or of a pair of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from faithbench.core.types import Encoding, Example, Floats, Outputs, Target, TokenRow
from faithbench.data.kinds.kind import Kind, Prediction, Reader
from faithbench.data.windows import rows_of


@dataclass(frozen=True, kw_only=True)
class Classification(Kind):
    """The prediction is the likeliest class: a number."""

    def predict(
        self, reader: Reader, encodings: Sequence[Encoding], labels: Sequence[str]
    ) -> list[Prediction]:
        """Predict the likeliest class of each input."""
        answers = class_log_probabilities(reader, [rows_of(encoding) for encoding in encodings])
        targets = [int(target) for target in np.argmax(answers, axis=1)]
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
        """Return each target's log-probability, and whether it is still the likeliest class."""
        answers = class_log_probabilities(reader, inputs)
        classes = np.array(targets, dtype=np.int64)
        return Outputs(answers[np.arange(len(inputs)), classes], answers.argmax(axis=1) == classes)

    def finds_labels(
        self, reader: Reader, inputs: Sequence[Sequence[TokenRow]], examples: Sequence[Example]
    ) -> list[bool] | None:
        """Return whether each input's likeliest class is its example's label."""
        predicted = np.argmax(class_log_probabilities(reader, inputs), axis=1)
        return [int(c) == e.label for c, e in zip(predicted, examples, strict=True)]

    def describe(self, labels: Sequence[str], encoding: Encoding, target: Target) -> str:
        """Return the name of the class."""
        return self.name_target(labels, target)

    def name_target(self, labels: Sequence[str], target: Target) -> str:
        """Return the name of the class; its number where it has none."""
        known = isinstance(target, int) and 0 <= target < len(labels)
        return labels[int(target)] if known else str(target)  # type: ignore[arg-type]  # known: int

    def name_truth(self, labels: Sequence[str], label: int) -> str:
        """Return the name of the gold class."""
        return self.name_target(labels, label)

    def is_right(self, target: Target, example: Example) -> bool | None:
        """Return whether the class is the example's label."""
        return target == example.label

    def outcome(self, encoding: Encoding, target: Target) -> int:
        """Return the class."""
        assert isinstance(target, int)
        return target

    def score(
        self, outcomes: Sequence[int], examples: Sequence[Example], labels: Sequence[str]
    ) -> dict[str, float]:
        """Return accuracy, F1 averaged over all classes, and Matthews' correlation."""
        return class_scores(outcomes, [example.label for example in examples], len(labels))

    def majority(
        self, train: Sequence[Example], test: Sequence[Example], labels: Sequence[str]
    ) -> dict[str, float] | None:
        """Score the largest class of train; of equally large ones, the first."""
        counts = Counter(example.label for example in train)
        largest = min(counts, key=lambda label: (-counts[label], label))
        return self.score([largest] * len(test), test, labels)

    def training_targets(self, encoding: Encoding) -> tuple[int, ...] | None:
        """Return the gold class."""
        return (encoding.example.label,)

    def probe_target(self, encoding: Encoding, index: int, labels: Sequence[str]) -> Target:
        """Return one class after the other."""
        return index % len(labels)


CLASSIFICATION = Classification(
    name="classification",
    texts=1,
    network="SequenceClassification",
    adapter_task="SEQ_CLS",
    model_noun="classifier",
    head_noun="classifier",
    scores=("accuracy", "macro_f1", "matthews"),
    usual_score="accuracy",
)
PAIR = replace(CLASSIFICATION, name="pair", texts=2)


def class_log_probabilities(reader: Reader, inputs: Sequence[Sequence[TokenRow]]) -> Floats:
    """Return log-probabilities of the classes; of several windows, of their mean probability."""
    answers = reader.log_probabilities([row for rows in inputs for row in rows])
    counts = np.array([len(rows) for rows in inputs])
    if (counts == 1).all():
        return answers
    starts = np.cumsum(counts) - counts
    sums = np.logaddexp.reduceat(answers, starts, axis=0)
    means: Floats = sums - np.log(counts)[:, None]
    return means


def class_scores(predicted: Sequence[int], gold: Sequence[int], classes: int) -> dict[str, float]:
    """Return accuracy, F1 averaged over all classes, and Matthews' correlation.

    A class that is neither predicted nor there has an F1 of 0. A model may have more classes than
    the task: to predict one of those is wrong, and F1 is the mean over the task's. Matthews' is
    R_K of Gorodkin (2004) for more than two classes, and 0 where either side knows one class only.
    """
    size = max([classes - 1, *predicted]) + 1
    table = np.zeros((size, size))
    np.add.at(table, (np.asarray(gold), np.asarray(predicted)), 1)
    right, there, said = table.diagonal(), table.sum(axis=1), table.sum(axis=0)
    n, correct = len(gold), right.sum()
    spread = (n**2 - (said**2).sum()) * (n**2 - (there**2).sum())
    f1 = (2 * right / np.maximum(there + said, 1))[:classes]
    matthews = float((correct * n - there @ said) / np.sqrt(spread)) if spread > 0 else 0.0
    return {
        "accuracy": float(correct / n),
        "macro_f1": float(f1.mean()),
        "matthews": matthews,
    }
