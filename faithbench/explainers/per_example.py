"""Run explainers that see one example at a time, and batch their queries.

Such an explainer is called as `explainer(probs, example)`: `probs(keep)` takes keep-masks
[masks, tokens] over the example's erasable tokens and returns the target's probability for
each. Every example runs in a thread of its own; once all of them wait for a result, their rows
go through the network together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import ArrayLike

from faithbench.core.errors import FaithbenchError, WrongAnswerError
from faithbench.core.types import Batch, Bools, Encoding, Floats
from faithbench.explainers.perturbation import ask, counts
from faithbench.models.model import Model
from faithbench.models.session import Session

Class = TypeVar("Class", bound=type)
Probs = Callable[[ArrayLike], Floats]


@dataclass(frozen=True)
class ExampleView:
    """What a per-example explainer sees besides `probs`: words, pieces and a seed."""

    id: str
    text: str
    text_b: str | None
    tokens: tuple[str, ...]
    target: int
    seed: int


def per_example(cls: Class) -> Class:
    """Adapt a class whose `__call__(self, probs, example)` explains one example.

    It returns one score per erasable token, in reading order.
    """
    explain_one: Callable[..., Any] = cls.__call__

    def call(self: Any, session: Session, batch: Batch) -> torch.Tensor:
        return _explain_batch(session, batch, lambda probs, view: explain_one(self, probs, view))

    cls.__call__ = call  # type: ignore[method-assign]  # the class keeps its name, fields and docstring
    return cls


def _explain_batch(
    session: Session, batch: Batch, explain_one: Callable[[Probs, ExampleView], Any]
) -> torch.Tensor:
    desk = _Desk(len(batch.encodings))
    results: list[Any] = [None] * len(batch.encodings)
    failures: list[BaseException] = []

    def work(row: int) -> None:
        try:
            results[row] = explain_one(
                lambda keep: desk.ask(row, keep), _view(session.model, batch, row)
            )
        except BaseException as error:  # handed to the caller below
            failures.append(error)
        finally:
            desk.leave(row)

    threads = [
        threading.Thread(target=work, args=(row,), daemon=True) for row in range(len(results))
    ]
    for thread in threads:
        thread.start()
    try:
        while questions := desk.collect():
            desk.answer(_answer(session, batch, questions))
    except BaseException:
        desk.close()
        raise
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return _scatter(batch, results)


class _Desk:
    """Collects one query per thread and answers them as a batch once all threads wait.

    `_thinking` are the examples that run and may still ask. A row leaves it when it asks or is
    done, and returns when its answer is there, in the same step that wakes its thread: otherwise
    `collect` could see an empty set while threads are only about to run.
    """

    def __init__(self, count: int) -> None:
        self._change = threading.Condition()
        self._thinking = set(range(count))
        self._questions: dict[int, Bools] = {}
        self._answers: dict[int, Floats] = {}
        self._closed = False

    def ask(self, row: int, keep: ArrayLike) -> Floats:
        """Queue a query and wait for its answer."""
        with self._change:
            self._questions[row] = np.atleast_2d(np.asarray(keep, dtype=bool))
            self._thinking.discard(row)
            self._change.notify_all()
            self._change.wait_for(lambda: row in self._answers or self._closed)
            if self._closed:
                raise FaithbenchError("the run stopped before this question was answered")
            return self._answers.pop(row)

    def leave(self, row: int) -> None:
        """Mark an example as done: it will not ask again."""
        with self._change:
            self._thinking.discard(row)
            self._change.notify_all()

    def close(self) -> None:
        """Cancel all waiting threads."""
        with self._change:
            self._closed = True
            self._change.notify_all()

    def collect(self) -> dict[int, Bools]:
        """Wait until every example is waiting or done; return the open questions."""
        with self._change:
            self._change.wait_for(lambda: not self._thinking)
            questions, self._questions = self._questions, {}
            # By row, since the order in which threads asked differs from run to run.
            return dict(sorted(questions.items()))

    def answer(self, answers: dict[int, Floats]) -> None:
        """Wake the examples whose questions were answered."""
        with self._change:
            self._answers.update(answers)
            self._thinking.update(answers)
            self._change.notify_all()


def _answer(session: Session, batch: Batch, questions: dict[int, Bools]) -> dict[int, Floats]:
    for row, keeps in questions.items():
        _check_width(batch.encodings[row], keeps)
    none = {row: np.zeros((0, n), dtype=bool) for row, n in enumerate(counts(batch))}
    answers = ask(session, batch, list((none | questions).values()))
    return {row: np.exp(answers[row]) for row in questions}


def _check_width(encoding: Encoding, keeps: Bools) -> None:
    if keeps.shape[1] != int(encoding.erasable.sum()):
        raise WrongAnswerError(
            f"example {encoding.example.id!r}: probs() was asked with {keeps.shape[1]} marks for "
            f"{int(encoding.erasable.sum())} erasable tokens; a mask has one mark per token"
        )


def _view(model: Model, batch: Batch, row: int) -> ExampleView:
    encoding = batch.encodings[row]
    tokens = model.tokenizer.convert_ids_to_tokens(encoding.ids[encoding.erasable].tolist())
    example = encoding.example
    return ExampleView(
        example.id,
        example.text,
        example.text_b,
        tuple(tokens),
        int(batch.targets[row]) if encoding.choice is None else encoding.choice,
        batch.seeds[row],
    )


def _scatter(batch: Batch, results: Sequence[Any]) -> torch.Tensor:
    """Put each example's scores at its erasable tokens."""
    table = torch.zeros(batch.ids.shape, dtype=torch.float64)
    for row, (encoding, scores) in enumerate(zip(batch.encodings, results, strict=True)):
        values = np.asarray(scores, dtype=np.float64)
        if values.shape != (int(encoding.erasable.sum()),):
            raise WrongAnswerError(
                f"example {encoding.example.id!r} got scores of shape {values.shape} for "
                f"{int(encoding.erasable.sum())} erasable tokens; give one score per token"
            )
        positions = torch.from_numpy(np.flatnonzero(encoding.erasable))
        table[row, positions] = torch.from_numpy(values)
    return table
