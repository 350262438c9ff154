"""The convolutional classifiers of Saliency Learning (Ghaeini et al. 2019, Section 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

WINDOWS = (3, 5)
"""Words that each of the two convolutions sees at once."""


class CnnConfig(PretrainedConfig):
    """Sizes of the network: `hidden_size` is d, `max_position_embeddings` the longest input L.

    L is part of the network: the last layers have a weight for each position. With `query`, the
    second text of a pair is a query that the first one is read with.
    """

    model_type = "cnn"
    has_levels = True  # `forward` takes `output_levels`
    reads_nothing = True  # padding alone has an output: all maxima are 0

    def __init__(
        self,
        vocab_size: int = 4,
        hidden_size: int = 100,
        max_position_embeddings: int = 100,
        query: bool = False,
        dropout: float = 0.5,
        pad_token_id: int = 0,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.pad_token_id = pad_token_id
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.max_position_embeddings = max_position_embeddings
        self.query = query
        self.type_vocab_size = 2 if query else 1  # whether segments are passed to `forward`
        self.dropout = dropout


@dataclass
class LevelOutput(ModelOutput):
    """Logits and, if asked for, the representations that lead to them, all inside one graph.

    `levels` maps "word" and "intermediate" to [rows, tokens, d] and "decision" to [rows, tokens].
    """

    logits: Tensor | None = None
    levels: dict[str, Tensor] | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class CnnForSequenceClassification(PreTrainedModel):
    """Two convolutions, their larger value per word and dimension, and a decision by two maxima.

    I = relu(max(conv3(W), conv5(W))) is the intermediate representation; D_seq is its maximum over
    words, and D_dim, the decision representation, over dimensions. A hidden layer follows their
    concatenation: with a linear one alone, the saliency of D_dim would be constant per position.
    With a query, I is multiplied by the query's own maximum over words, dimension by dimension.
    """

    config_class = CnnConfig
    base_model_prefix = "cnn"

    def __init__(self, config: CnnConfig) -> None:
        super().__init__(config)
        width, longest = config.hidden_size, config.max_position_embeddings
        self.embeddings = nn.Embedding(config.vocab_size, width, padding_idx=config.pad_token_id)
        self.convolutions = _convolutions(width)
        if config.query:
            self.query_convolutions = _convolutions(width)
        self.dropout = nn.Dropout(config.dropout)
        self.hidden = nn.Linear(width + longest, width)
        self.classifier = nn.Linear(width, int(config.num_labels or 2))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers' own

    def get_input_embeddings(self) -> nn.Module:
        """Return the word embeddings."""
        return self.embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the word embeddings."""
        self.embeddings = value  # type: ignore[assignment]  # transformers gives a module

    def _init_weights(self, module: nn.Module) -> None:
        """Leave torch's own start, which the published models have, as far as known."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_levels: bool = False,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        **_: Any,
    ) -> LevelOutput:
        """Return the logits of each row; there is no attention to return."""
        words = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        real = words.new_ones(words.shape[:2]) if attention_mask is None else attention_mask
        second = torch.zeros_like(real) if token_type_ids is None else token_type_ids
        in_text = real.bool() & (second == 0)
        intermediate = _convolve(self.convolutions, words, in_text)
        if self.config.query:
            query = real.bool() & (second != 0)
            read_with = _largest(_convolve(self.query_convolutions, words, query), query)
            # A text that comes without a query is read as it is.
            read_with = torch.where(query.any(dim=1, keepdim=True), read_with, 1.0)
            intermediate = intermediate * read_with[:, None]
        decision = intermediate.max(dim=2).values * in_text
        missing = self.config.max_position_embeddings - decision.shape[1]
        seen = torch.cat([_largest(intermediate, in_text), F.pad(decision, (0, missing))], dim=1)
        hidden = self.dropout(torch.relu(self.hidden(self.dropout(seen))))
        levels = {"word": words, "intermediate": intermediate, "decision": decision}
        return LevelOutput(
            logits=self.classifier(hidden),
            levels=levels if output_levels else None,
            hidden_states=(words, intermediate) if output_hidden_states else None,
        )


def _convolutions(width: int) -> nn.ModuleList:
    return nn.ModuleList(nn.Conv1d(width, width, window, padding=window // 2) for window in WINDOWS)


def _convolve(convolutions: nn.ModuleList, words: Tensor, there: Tensor) -> Tensor:
    """Return the larger convolution of the words that are there, at least 0, and 0 elsewhere."""
    marks = there[..., None].to(words.dtype)
    # Convolutions look beyond the ends of a text, where there must be nothing.
    signal = (words * marks).transpose(1, 2)
    narrow, wide = (convolution(signal) for convolution in convolutions)
    return torch.relu(torch.maximum(narrow, wide)).transpose(1, 2) * marks


def _largest(values: Tensor, there: Tensor) -> Tensor:
    """Return the largest value of each dimension over the words that are there, or 0.

    Values are 0 or more; -1 elsewhere never ties with one of them, so that the gradient of a
    maximum of 0 does not go to padding.
    """
    return values.masked_fill(~there[..., None], -1.0).max(dim=1).values.clamp(min=0)
