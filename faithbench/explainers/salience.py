"""Salience as a control: how much tokens stand out in their text or in the training split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Batch
from faithbench.data.dataset import Dataset
from faithbench.data.kinds import KINDS as TASK_KINDS
from faithbench.data.salience import KINDS, LEARNED, TermStatistics, salience_of
from faithbench.models.model import Model
from faithbench.models.session import Session

_DIGITS = 12


@dataclass(frozen=True)
class Salience:
    """Score tokens by how much they stand out, without a model.

    By the salience, that is, which SaLoss trains attention towards. It takes nothing of the model
    but its word pieces: those that may be erased are the text. `textrank` and `uniform` need no
    data; `tfidf` and `chi2` count in the training split.
    """

    reads_model: ClassVar[bool] = False

    kind: str = "textrank"

    def __post_init__(self) -> None:
        """Refuse a kind that there is not."""
        if self.kind not in KINDS:
            raise unknown("kind of salience", self.kind, KINDS)

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return each token's share of the salience of its text, on the CPU."""
        scores = np.zeros(tuple(batch.ids.shape))
        for row, encoding in enumerate(batch.encodings):
            places = np.flatnonzero(encoding.erasable)
            tokens = _strings(session.model, encoding.ids[places].tolist())
            # Tokens that stand alike in the graph differ in the last bits of their sums, which
            # would order them at random, and otherwise on another machine.
            scores[row, places] = salience_of(self.kind, tokens, self.statistics).round(_DIGITS)
        return torch.from_numpy(scores)

    @property
    def statistics(self) -> TermStatistics | None:
        """What is known of the training split: nothing yet."""
        return None

    @property
    def needs_training(self) -> bool:
        """Whether the training split must be counted before anything can be scored."""
        return self.kind in LEARNED and self.statistics is None

    def with_training(self, train: Dataset, model: Model) -> Salience:
        """Count the word pieces of the training split, in the texts that may be erased."""
        if self.kind == "chi2" and not TASK_KINDS[train.task.kind].has_classes:
            raise FaithbenchError(
                f"salience:kind=chi2 asks which words go with a class, and task {train.task.name} "
                "has no classes; choose kind=tfidf or kind=textrank"
            )
        statistics = TermStatistics.of(
            _pieces(model, train), [example.label for example in train.examples]
        )
        name = f"train ({train.source}, {len(train.examples)} rows)"
        return TaughtSalience(self.kind, statistics, {name: train.sha256})


# Not a dataclass of its own: what was learned would be settings. They are those of the base.
class TaughtSalience(Salience):
    """Salience by the term statistics of a training split, which its assets name."""

    def __init__(
        self,
        kind: str = Salience.kind,
        statistics: TermStatistics | None = None,
        training: dict[str, str] | None = None,
    ) -> None:
        """Keep the statistics, and the digest of the data that they are from, by name."""
        super().__init__(kind)
        self._statistics = statistics
        self._training = training or {}

    @property
    def statistics(self) -> TermStatistics | None:
        """The term statistics of the training split."""
        return self._statistics

    def assets(self, model: Model) -> dict[str, str]:
        """Name the training split, its source and size, with its digest."""
        return self._training


_AT_ONCE = 1024


def _pieces(model: Model, train: Dataset) -> Iterator[Sequence[str]]:
    """Yield the word pieces of each example that may be erased, whole texts, none cut off."""
    for start in range(0, len(train.examples), _AT_ONCE):
        block = train.examples[start : start + _AT_ONCE]
        first = _tokenised(model, [example.text for example in block])
        second = _tokenised(model, [example.text_b or "" for example in block])
        for one, two in zip(first, second, strict=True):
            sides = {"text": one, "text_b": two, "both": one + two}
            yield _strings(model, sides[train.task.evidence])


def _tokenised(model: Model, texts: list[str]) -> list[list[int]]:
    """Return the ids of texts without special tokens, as `encode` reads them."""
    tokens = model.tokenizer(
        texts, add_special_tokens=False, split_special_tokens=True, verbose=False
    )
    ids: list[list[int]] = tokens["input_ids"]
    return ids


def _strings(model: Model, ids: list[int]) -> list[str]:
    return list(model.tokenizer.convert_ids_to_tokens(ids))
