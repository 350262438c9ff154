"""Questions whose answer is a span of the text: predictions, their text, and SQuAD's scores."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import (
    Answer,
    Encoding,
    Example,
    Floats,
    Ints,
    Outputs,
    Span,
    Target,
    TokenRow,
)
from faithbench.data.kinds.kind import Kind, Prediction, Reader

NO_ANSWER = (0, 0)
"""The target that stands for none: both ends at the first token, as in SQuAD 2."""


@dataclass(frozen=True, kw_only=True)
class QuestionAnswering(Kind):
    """The prediction is the likeliest answer: the positions of its first and last token."""

    def predict(
        self, reader: Reader, encodings: Sequence[Encoding], labels: Sequence[str]
    ) -> list[Prediction]:
        """Predict the likeliest answer of each question."""
        starts, ends = self._positions(reader, [(e.ids, e.types) for e in encodings])
        predictions = []
        for encoding, start, end in zip(encodings, starts, ends, strict=True):
            span = _likeliest(encoding, start, end, labels)
            accepted = [answer.text for answer in encoding.example.answers]
            right = bool(exact_match(answer_text(encoding, span), accepted))
            predictions.append(Prediction(span, float(start[span[0]] + end[span[1]]), right))
        return predictions

    def evaluate(
        self,
        reader: Reader,
        inputs: Sequence[Sequence[TokenRow]],
        encodings: Sequence[Encoding],
        targets: Sequence[Target],
        labels: Sequence[str],
    ) -> Outputs:
        """Return the log-probability of each answer's two ends, and whether it stays likeliest."""
        rows = [first for (first,) in inputs]
        if any(len(ids) != len(e.ids) for (ids, _), e in zip(rows, encodings, strict=True)):
            raise FaithbenchError(
                "an answer loses its place in the text when tokens are deleted; "
                "erase with --operator mask"
            )
        starts, ends = self._positions(reader, rows)
        log_probability, kept = np.zeros(len(rows)), np.zeros(len(rows), dtype=bool)
        for i, (encoding, target) in enumerate(zip(encodings, targets, strict=True)):
            first, last = _span(target)
            log_probability[i] = starts[i, first] + ends[i, last]
            kept[i] = _likeliest(encoding, starts[i], ends[i], labels) == target
        return Outputs(log_probability, kept)

    def erasable(self, encoding: Encoding, target: Target) -> Ints:
        """Return the evidence without the predicted answer: erasing that proves nothing.

        docs/protocol.md, Conventions.
        """
        free = encoding.erasable.copy()
        if target != NO_ANSWER:
            first, last = _span(target)
            free[first : last + 1] = False
        return np.flatnonzero(free).astype(np.int64)

    def describe(self, labels: Sequence[str], encoding: Encoding, target: Target) -> str:
        """Return the answer in quotes, or that there is none."""
        return "no answer" if target == NO_ANSWER else repr(span_text(encoding, _span(target)))

    def answer(self, encoding: Encoding, target: Target) -> str:
        """Return the words of the answer, empty for none: positions say little to a reader."""
        return answer_text(encoding, target)

    def name_target(self, labels: Sequence[str], target: Target) -> str:
        """Say that there is no answer; positions alone are no name of one."""
        return "no answer" if target == NO_ANSWER else ""

    def name_truth(self, labels: Sequence[str], label: int) -> str:
        """Return nothing: rows do not keep accepted answers."""
        return ""

    def is_right(self, target: Target, example: Example) -> bool | None:
        """Return None: whether an answer is right takes its text, which takes the tokens."""
        return None

    def outcome(self, encoding: Encoding, target: Target) -> str:
        """Return the text of the answer, empty for none."""
        return answer_text(encoding, target)

    def score(
        self, outcomes: Sequence[str], examples: Sequence[Example], labels: Sequence[str]
    ) -> dict[str, float]:
        """Return SQuAD's exact match and F1, means over questions."""
        return answer_scores(outcomes, examples)

    def majority(
        self, train: Sequence[Example], test: Sequence[Example], labels: Sequence[str]
    ) -> dict[str, float] | None:
        """Score no answer to any question; None for a task whose questions all have one."""
        return None if len(labels) == 1 else answer_scores([""] * len(test), test)

    def training_targets(self, encoding: Encoding) -> tuple[int, ...] | None:
        """Return the first and last token of the most frequent answer.

        Both are 0 for a question without an answer. None where the answer does not start and
        end with tokens that the model reads.
        """
        answer = _most_frequent_answer(encoding.example)
        if answer is None:
            return NO_ANSWER
        start, end = answer.start, answer.start + len(answer.text)
        positions = [int(position) for position in np.flatnonzero(encoding.erasable)]
        first = [position for position in positions if encoding.spans[position][0] == start]
        last = [position for position in positions if encoding.spans[position][1] == end]
        return (first[0], last[-1]) if first and last else None

    def why_unreadable(self, encoding: Encoding) -> str:
        """Tell an answer after the last token that the model reads from one inside a token."""
        answer = _most_frequent_answer(encoding.example)
        last = int(np.flatnonzero(encoding.erasable)[-1])
        ends_after = (
            answer is not None and answer.start + len(answer.text) > encoding.spans[last][1]
        )
        return "cut_off" if ends_after else "inside_a_token"

    @property
    def unreadable_reasons(self) -> tuple[str, ...]:
        """The reasons for which an answer cannot be trained on."""
        return ("cut_off", "inside_a_token")

    def probe_target(self, encoding: Encoding, index: int, labels: Sequence[str]) -> Target:
        """Return the last two tokens: in a causal model, earlier ones do not read the rest."""
        positions = np.flatnonzero(encoding.erasable)[-2:].tolist()
        return positions[0], positions[-1]

    def _positions(self, reader: Reader, rows: Sequence[TokenRow]) -> tuple[Floats, Floats]:
        first, last = self.outputs
        return reader.log_probabilities(rows, first), reader.log_probabilities(rows, last)


QUESTION_ANSWERING = QuestionAnswering(
    name="qa",
    texts=2,
    second_first=True,  # all published question answerers read the question first
    least_labels=1,
    has_answers=True,
    operators=("mask",),  # positions must stay, and padding would not be read as text
    windows=False,
    network="QuestionAnswering",
    adapter_task="QUESTION_ANS",
    model_noun="question answerer",
    head_noun="answer head",
    outputs=("start_logits", "end_logits"),
    per_position=True,
    right_noun="exact match",
    scores=("exact_match", "f1"),
    usual_score="f1",
)


def answer_text(encoding: Encoding, target: Target) -> str:
    """Return the words of a predicted answer, none for no answer."""
    return span_text(encoding, None if target == NO_ANSWER else _span(target))


def answer_scores(outcomes: Sequence[str], examples: Sequence[Example]) -> dict[str, float]:
    """Return SQuAD's exact match and F1, means over questions."""
    accepted = [[answer.text for answer in example.answers] for example in examples]
    pairs = list(zip(outcomes, accepted, strict=True))
    return {
        "exact_match": float(np.mean([exact_match(*pair) for pair in pairs])),
        "f1": float(np.mean([overlap_f1(*pair) for pair in pairs])),
    }


def _likeliest(
    encoding: Encoding, starts: Floats, ends: Floats, labels: Sequence[str]
) -> tuple[int, int]:
    # A second label stands for questions without an answer.
    return best_span(encoding, starts, ends, may_be_none=len(labels) > 1) or NO_ANSWER


def _span(target: Target) -> Span:
    assert not isinstance(target, int)  # a class is never the target of a question
    return target


def _most_frequent_answer(example: Example) -> Answer | None:
    # `most_common` is stable: of answers given equally often, the one listed first wins.
    return Counter(example.answers).most_common(1)[0][0] if example.answers else None


LONGEST = 30
"""An answer has at most so many tokens, as in the published evaluations of SQuAD."""


def best_span(
    encoding: Encoding, starts: Floats, ends: Floats, *, may_be_none: bool = False
) -> Span | None:
    """Return the first and last token of the most probable answer among the evidence.

    `starts` and `ends` are log-probabilities by token position; both are added. The end is
    not before the start, and an answer has at most LONGEST tokens. With `may_be_none`, None
    is returned where position 0 (no answer) is more probable than any span. Ties go to the
    earlier start, then the shorter answer.
    """
    places = np.flatnonzero(encoding.erasable)
    size = len(encoding.ids)
    lengths = np.arange(LONGEST)
    last = places[:, None] + lengths
    inside = last < size
    last = np.minimum(last, size - 1)
    allowed = inside & encoding.erasable[last]
    sums = np.where(allowed, starts[places][:, None] + ends[last], -np.inf)
    row, column = np.unravel_index(int(np.argmax(sums)), sums.shape)
    if may_be_none and starts[0] + ends[0] > sums[row, column]:
        return None
    first = int(places[row])
    return first, first + int(column)


def span_text(encoding: Encoding, span: Span | None) -> str:
    """Return the characters from the first token to the last; nothing for no answer."""
    if span is None:
        return ""
    return encoding.example.text[encoding.spans[span[0]][0] : encoding.spans[span[1]][1]]


def normalise(answer: str) -> str:
    """Lower the case, drop punctuation and the articles a, an, the, and close up blanks."""
    bare = "".join(c for c in answer.lower() if c not in string.punctuation)
    return " ".join(re.sub(r"\b(a|an|the)\b", " ", bare).split())


def exact_match(found: str, accepted: Sequence[str]) -> float:
    """Return 1 if the normalised answer is one of those accepted; none accepted means none."""
    return float(normalise(found) in {normalise(answer) for answer in accepted or ("",)})


def overlap_f1(found: str, accepted: Sequence[str]) -> float:
    """Return the best F1 of shared words with an accepted answer; two empty answers agree."""
    return max(_f1(normalise(found).split(), normalise(a).split()) for a in accepted or ("",))


def _f1(found: list[str], gold: list[str]) -> float:
    if not found or not gold:
        return float(found == gold)
    shared = sum((Counter(found) & Counter(gold)).values())
    return 2 * shared / (len(found) + len(gold))
