"""What metrics see, made by hand, and a linear model whose every answer is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from faithbench.core.types import Attribution, Case, Encoding, Example, Outputs, Target
from faithbench.data.kinds.question_answering import QUESTION_ANSWERING
from faithbench.models.model import Model, build_model

CLS, SEP = 2, 3
FIRST_WORD = 23
"""The id of w0 in the tiny tokenizer; w1 ... w59 follow."""


def case_of(scores: Sequence[float] | np.ndarray, probability: float = 0.5, **parts: Any) -> Case:
    """Return a case of n tokens between two special ones, whose scores are the largest."""
    own = np.asarray(scores, dtype=np.float64)
    places = np.arange(1, len(own) + 1)
    every = np.concatenate([[99.0], own, [98.0]])
    return Case(own, places, float(np.log(probability)), every, places, **parts)


def said(probabilities: Sequence[float], kept: Sequence[bool] | None = None) -> Outputs:
    """Return answers of given probabilities; by default the prediction holds above a half."""
    f = np.asarray(probabilities, dtype=np.float64)
    return Outputs(np.log(f), f > 0.5 if kept is None else np.asarray(kept, dtype=bool))


def row_encoding(ids: Sequence[int], special: Sequence[int] = (CLS, SEP), **parts: Any) -> Encoding:
    """Return the encoding of a row of ids, of which all but the special ones may be erased."""
    own = np.asarray(ids, dtype=np.int64)
    free = ~np.isin(own, special)
    return Encoding(
        example=parts.get("example", Example("made", "", 0)),
        ids=own,
        types=np.zeros_like(own),
        erasable=free,
        words=np.where(free, np.cumsum(free) - 1, -1),
        spans=parts.get("spans", ((0, 0),) * len(own)),
        word_spans=(),
        truncated=0,
    )


def attribution_of(
    encoding: Encoding, scores: Sequence[float] | np.ndarray, target: Target
) -> Attribution:
    """Return an attribution: one score per token, or one per erasable token and 0 elsewhere."""
    own = np.asarray(scores, dtype=np.float64)
    if len(own) != len(encoding.ids):
        every = np.zeros(len(encoding.ids))
        every[encoding.erasable] = own
        own = every
    return Attribution(encoding, target, own, 0.0, 0, 0)


class BagOfWords(torch.nn.Module):
    """A linear model: the logit of class 1 is the sum of its tokens' weights; of class 0, 0."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(size, 1, dtype=torch.float64)
        torch.nn.init.zeros_(self.table.weight)
        self.config = SimpleNamespace(
            pad_token_id=0, max_position_embeddings=640, model_type="bag", num_labels=2
        )
        self.device, self.dtype = torch.device("cpu"), torch.float64

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        logit = (self.table(input_ids)[..., 0] * attention_mask).sum(1)
        return SimpleNamespace(logits=torch.stack([torch.zeros_like(logit), logit], dim=1))


def bag_model(tokenizer: Any, weights: Sequence[float], bias: float = 0.0) -> Model:
    """Build a bag of words where w0, w1, ... have the given weights, and [CLS] the bias."""
    network = BagOfWords(max(len(tokenizer), FIRST_WORD + len(weights)))
    with torch.no_grad():
        network.table.weight[FIRST_WORD : FIRST_WORD + len(weights), 0] = torch.tensor(
            np.asarray(weights), dtype=torch.float64
        )
        network.table.weight[CLS] = bias
    return build_model(
        "bag",
        network,
        tokenizer,
        labels=("no", "yes"),
        weights_sha256="bag",
    )


def bag_encoding(words: Sequence[int], name: str = "made") -> Encoding:
    """Return the encoding of words by number: [CLS] w.. w.. [SEP]."""
    ids = [CLS, *(FIRST_WORD + word for word in words), SEP]
    return row_encoding(ids, example=Example(name, "", 0))


class TwoTables(torch.nn.Module):
    """A question answerer that looks up each token's start and end logit, and nothing else."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.qa_outputs = torch.nn.Embedding(size, 2, dtype=torch.float64)
        torch.nn.init.zeros_(self.qa_outputs.weight)
        self.config = SimpleNamespace(
            pad_token_id=0, max_position_embeddings=640, model_type="tables"
        )
        self.device, self.dtype = torch.device("cpu"), torch.float64

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        starts, ends = self.qa_outputs(input_ids).unbind(-1)
        return SimpleNamespace(start_logits=starts, end_logits=ends)


def table_model(
    tokenizer: Any, logits: Mapping[str, tuple[float, float]], labels: tuple[str, ...] = ()
) -> Model:
    """Build a question answerer of given start and end logits by token; others have 0, 0."""
    network = TwoTables(len(tokenizer))
    with torch.no_grad():
        for token, pair in logits.items():
            place = tokenizer.convert_tokens_to_ids(token)
            network.qa_outputs.weight[place] = torch.tensor(pair, dtype=torch.float64)
    return build_model(
        "tables",
        network,
        tokenizer,
        labels=labels,
        weights_sha256="tables",
        kind=QUESTION_ANSWERING,
    )
