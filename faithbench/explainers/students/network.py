"""The student of L2E: a small Transformer that reads a text and what the model predicts of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal

import torch
from pydantic import Field, model_validator

from faithbench.core.schema import Closed

Embeddings = Literal["frozen", "random"]


class StudentShape(Closed):
    """What a student's tensors look like.

    `embeddings` are the model's own word vectors of `vector_width`, frozen and projected down to
    `width`, or vectors of that width for `vocabulary` word pieces, learned from random ones.
    `classes` are those the model predicts; `outputs` is the number of labels, or 1 for a score.
    """

    width: int = Field(96, ge=4)
    feedforward: int = Field(192, ge=1)
    blocks: int = Field(4, ge=1)
    heads: int = Field(4, ge=1)
    embeddings: Embeddings = "frozen"
    vocabulary: int = Field(ge=1)
    vector_width: int = Field(ge=1)
    classes: int = Field(ge=2)
    outputs: int = Field(ge=1)

    @model_validator(mode="after")
    def _check_heads(self) -> StudentShape:
        if self.width % self.heads or self.width % 2:
            raise ValueError(
                f"a width of {self.width} cannot be split between {self.heads} heads, each alike; "
                "choose an even multiple"
            )
        return self


class Student(torch.nn.Module):
    """Situ et al. 2021, g(x, y): the predicted class y stands before and after the text.

    Positions are those of Vaswani et al. 2017, sines and cosines, so that no position is untrained
    however long a text is. The texts of a pair are told apart by the model's segments.
    """

    def __init__(self, shape: StudentShape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        width = shape.width
        random = shape.embeddings == "random"
        self.vectors = torch.nn.Embedding(shape.vocabulary, width) if random else None
        self.project = None if random else torch.nn.Linear(shape.vector_width, width)
        self.segment = torch.nn.Embedding(2, width)
        self.predicted = torch.nn.Embedding(shape.classes, width)
        layer = torch.nn.TransformerEncoderLayer(
            width,
            shape.heads,
            shape.feedforward,
            dropout,
            "gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = torch.nn.TransformerEncoder(
            layer, shape.blocks, torch.nn.LayerNorm(width), enable_nested_tensor=False
        )
        self.head = torch.nn.Linear(width, shape.outputs)

    def forward(
        self,
        vectors: Callable[[torch.Tensor], torch.Tensor],
        ids: torch.Tensor,
        types: torch.Tensor,
        attention: torch.Tensor,
        targets: torch.Tensor,
    ) -> torch.Tensor:
        """Return [texts, tokens + 2, outputs]: the first tag, the tokens, and the last tag.

        The last tag stands right after a text's last token, before the padding; `vectors` are the
        model's word embeddings.
        """
        count, longest = ids.shape
        if self.project is None:
            words = self.vectors(ids)  # type: ignore[misc]  # one of the two is there
        else:
            # Word vectors of encoders differ in length by their frequency; that is not meaning.
            table = vectors(ids).to(self.head.weight.dtype)
            words = self.project(torch.nn.functional.layer_norm(table, table.shape[-1:]))
        states = words.new_zeros(count, longest + 2, self.shape.width)
        states[:, 1:-1] = words + self.segment(types.clamp(max=1))
        tags = self.predicted(targets)
        lengths = attention.sum(dim=1)
        rows = torch.arange(count, device=ids.device)
        states[:, 0] = tags
        states[rows, lengths + 1] = tags
        places = torch.arange(longest + 2, device=ids.device)
        states = states + sinusoids(longest + 2, self.shape.width).to(states)
        padding = places[None, :] > lengths[:, None] + 1
        encoded = self.encoder(states, src_key_padding_mask=padding)
        result: torch.Tensor = self.head(encoded)
        return result


def sinusoids(length: int, width: int) -> torch.Tensor:
    """Return position vectors [length, width]: sines in even columns, cosines in odd ones."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = torch.arange(length)[:, None] * rates[None, :]
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)
