"""SaLoss (Chrysostomou and Aletras, EMNLP 2021): attention that stays close to a salience."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Encoding
from faithbench.data.salience import TermStatistics, salience_of, textrank_released
from faithbench.models.model import Model
from faithbench.training.attention_row import AttentionRow
from faithbench.training.items import TrainingBatch, TrainingSet
from faithbench.training.objectives import objective
from faithbench.training.objectives.protocol import Capture, ForwardPass, Objective

SALIENCES = ("textrank", "chi2", "tfidf", "uniform")
FORMS = ("paper", "released")
TINY = 1e-12
"""Least attention in a logarithm: dropout makes some of it exactly 0."""


@objective("saloss", papers=("chrysostomou2021enjoy",))
@dataclass(frozen=True)
class SaLoss:
    """Keep the last block's attention close to a salience of the words (Eq. 1-3).

    KL(attention, salience) per text, averaged over the batch: the attention of the token that the
    classifier reads, averaged over heads, against a salience that no model has seen. Special
    tokens have no salience, and the divergence would be infinite, so both are distributions over
    the other tokens. `form=released` is what the published code minimises instead: salience and
    attention pass through one more softmax, special tokens included, and the divergence is summed
    over the batch and squared, so that weights of one form mean nothing in the other.
    """

    salience: str = "textrank"
    weight: float = 1e-3
    form: str = "paper"

    auxiliary: ClassVar[bool] = True
    captures: ClassVar[frozenset[Capture]] = frozenset({"attentions"})

    def __post_init__(self) -> None:
        if self.salience not in SALIENCES:
            raise unknown("salience", self.salience, SALIENCES)
        if self.form not in FORMS:
            raise unknown("form of saloss", self.form, FORMS)

    def prepare(self, model: Model, training_set: TrainingSet) -> Objective:
        """Compute the salience of every training text."""
        if not model.kind.has_classes:
            raise FaithbenchError(
                f"saloss needs a token that a classifier reads, and a {model.kind.model_noun} has "
                "none; choose a task with classes"
            )
        encodings = {id(item.encoding): item.encoding for item in training_set.items}
        texts = [_tokens(model, encoding) for encoding in encodings.values()]
        statistics = None
        if self.salience in ("chi2", "tfidf"):
            labels = [encoding.example.label for encoding in encodings.values()]
            statistics = TermStatistics.of(texts, labels)
        released = self.form == "released"
        salience = {
            key: textrank_released(tokens)
            if released and self.salience == "textrank"
            else salience_of(self.salience, tokens, statistics)
            for key, tokens in zip(encodings, texts, strict=True)
        }
        row = AttentionRow.of(model, training_set.items[0])
        return _Prepared(self.weight, released, salience, row)

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        """Refuse: salience is computed once, by `prepare`."""
        raise FaithbenchError("saloss has to be prepared with its training set first")


@dataclass(frozen=True, eq=False)
class _Prepared:
    """The loss of one training: the salience of each encoding's content tokens, by its id."""

    weight: float
    released: bool
    salience: Mapping[int, np.ndarray[tuple[int], np.dtype[np.float64]]]
    row: AttentionRow

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        """Return the weighted divergence of a batch."""
        attention = self.row.read(forward.attentions, batch.attention)
        content = torch.zeros_like(batch.attention, dtype=torch.bool)
        salience = torch.zeros_like(attention)
        for index, item in enumerate(batch.items):
            positions = torch.from_numpy(content_tokens(item.encoding)).to(batch.ids.device)
            content[index, positions] = True
            values = torch.from_numpy(self.salience[id(item.encoding)])
            salience[index, positions] = values.to(salience)
        if self.released:
            return self.weight * released_divergence(attention, salience, batch.attention == 1)
        return self.weight * divergence(attention, salience, content).mean()


def divergence(
    attention: torch.Tensor, salience: torch.Tensor, content: torch.Tensor
) -> torch.Tensor:
    """Return KL(attention, salience) of each row, both normalised over its content tokens."""
    alpha = attention.masked_fill(~content, 0)
    alpha = alpha / alpha.sum(dim=1, keepdim=True).clamp_min(TINY)
    sigma = salience / salience.sum(dim=1, keepdim=True)
    # Outside the content both logarithms are those of 1, times 0.
    logs = alpha.clamp_min(TINY).log() - sigma.masked_fill(~content, 1).log()
    return (alpha * logs).sum(dim=1)


def released_divergence(
    attention: torch.Tensor, salience: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    """Return the published code's loss: a softmax too many, summed over the batch, squared."""
    p = attention.masked_fill(~mask, -torch.inf).softmax(dim=1)
    q = salience.masked_fill(~mask, -torch.inf).softmax(dim=1)
    tiny = 1e-10
    return (p * ((p + tiny).log() - (q + tiny).log())).sum().square()


def content_tokens(encoding: Encoding) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the positions of the tokens that stand for words."""
    return np.flatnonzero(encoding.words >= 0).astype(np.int64)


def _tokens(model: Model, encoding: Encoding) -> list[str]:
    ids = encoding.ids[content_tokens(encoding)].tolist()
    return list(model.tokenizer.convert_ids_to_tokens(ids))
