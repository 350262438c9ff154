"""The classifiers of "Is Sparse Attention more Interpretable?" (Meister et al. 2021, Section 2).

An encoder gives each word an intermediate representation h; one query attends to these, and the
context, their sum weighted by attention, is classified. Scores of attention become a distribution
by any projection of `projections.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel
from transformers.utils.generic import ModelOutput

from faithbench.models.architectures.projections import project, projection_name


class AttentiveConfig(PretrainedConfig):
    """Sizes of a network, and the projection of its attention.

    `embedding_size` is the width of word vectors. `max_position_embeddings` is the longest input
    that is read; no weight depends on it.
    """

    has_one_query = True  # attention is [rows, 1, 1, tokens]: who needs a square matrix refuses
    reads_nothing = True  # padding alone has an output: its context is 0

    def __init__(
        self,
        vocab_size: int = 4,
        embedding_size: int = 100,
        hidden_size: int = 128,
        max_position_embeddings: int = 512,
        projection: str = "softmax",
        dropout: float = 0.3,
        pad_token_id: int = 0,
        **rest: Any,
    ) -> None:
        super().__init__(**rest)
        self.pad_token_id = pad_token_id
        self.vocab_size = vocab_size
        self.embedding_size = embedding_size
        self.hidden_size = hidden_size
        self.max_position_embeddings = max_position_embeddings
        self.projection = projection_name(projection)
        self.dropout = dropout


class BilstmConfig(AttentiveConfig):
    """Sizes of a BiLSTM; `hidden_size` is that of each direction, and of the tanh layer."""

    model_type = "bilstm"

    def __init__(self, **sizes: Any) -> None:
        # transformers gives a configuration without one an __init__ that sets nothing.
        super().__init__(**sizes)


class TransformerConfig(AttentiveConfig):
    """Sizes of a small Transformer: its one block has `heads` heads.

    The number of blocks is not named `num_hidden_layers`, which would promise that the attention
    of each can be read.
    """

    model_type = "transformer"

    def __init__(self, heads: int = 4, **sizes: Any) -> None:
        super().__init__(**sizes)
        self.heads = heads


@dataclass
class AttentiveOutput(ModelOutput):
    """Logits and, if asked for, what leads to them, all inside one graph."""

    logits: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


class AttentiveNetwork(PreTrainedModel):
    """What both networks share: word vectors, one attention over h, and a linear decision."""

    def __init__(self, config: AttentiveConfig, width: int) -> None:
        super().__init__(config)
        words, size = config.vocab_size, config.embedding_size
        self.embeddings = nn.Embedding(words, size, padding_idx=config.pad_token_id)
        self.dropout = nn.Dropout(config.dropout)
        self.classifier = nn.Linear(width, int(config.num_labels or 2))

    def encode(self, words: Tensor, there: Tensor) -> Tensor:
        """Return h [rows, tokens, m] of word vectors; `there` marks those that are no padding."""
        raise NotImplementedError

    def score(self, states: Tensor) -> Tensor:
        """Return the query's score of each h, before the projection [rows, tokens]."""
        raise NotImplementedError

    def decide(self, states: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of each row's h, and the attention [rows, 1, 1, tokens] to them.

        An h that is not `there` is left out of the projection, so that its weight goes to others.
        """
        attention = project(self.config.projection, self.score(states), there)[:, None, None]
        return self.classify(states, attention), attention

    def classify(self, states: Tensor, attention: Tensor) -> Tensor:
        """Return the logits of each row's h under an attention that is given."""
        context = torch.matmul(attention, states[:, None])[:, 0, 0]
        logits: Tensor = self.classifier(self.dropout(context))
        return logits

    def get_input_embeddings(self) -> nn.Module:
        """Return the word embeddings."""
        return self.embeddings

    def set_input_embeddings(self, value: nn.Module) -> None:
        """Replace the word embeddings."""
        self.embeddings = value  # type: ignore[assignment]  # transformers gives a module

    def _init_weights(self, module: nn.Module) -> None:
        """Leave torch's own start."""

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool = False,
        output_attentions: bool = False,
        **_: Any,
    ) -> AttentiveOutput:
        """Return the logits of each row; padding stands on the right.

        If asked for, `hidden_states` are the word embeddings and h, and `attentions` has one entry
        [rows, 1, 1, tokens]: the very tensor that the context is made of, so that it has gradients.
        """
        words = self.embeddings(input_ids) if inputs_embeds is None else inputs_embeds
        real = words.new_ones(words.shape[:2]) if attention_mask is None else attention_mask
        there = real.bool()
        states = self.encode(self.dropout(words), there)
        logits, attention = self.decide(states, there)
        return AttentiveOutput(
            logits=logits,
            hidden_states=(words, states) if output_hidden_states else None,
            attentions=(attention,) if output_attentions else None,
        )


class BilstmForSequenceClassification(AttentiveNetwork):
    """A BiLSTM under additive attention without a query: the score is v . tanh(W h + b)."""

    config_class = BilstmConfig
    base_model_prefix = "bilstm"

    def __init__(self, config: BilstmConfig) -> None:
        size = config.hidden_size
        super().__init__(config, 2 * size)
        self.onward = nn.LSTM(config.embedding_size, size, batch_first=True)
        self.back = nn.LSTM(config.embedding_size, size, batch_first=True)
        self.attention = nn.Linear(2 * size, size)
        self.query = nn.Linear(size, 1, bias=False)
        self.post_init()  # type: ignore[no-untyped-call]  # transformers' own

    def encode(self, words: Tensor, there: Tensor) -> Tensor:
        """Return the states of both directions side by side; neither reads padding before words."""
        # On a GPU, cuDNN's LSTM has no backward pass in evaluation mode.
        with torch.backends.cudnn.flags(enabled=self.training):
            onward, _ = self.onward(words)
            back, _ = self.back(_turned(words, there))
        return torch.cat([onward, _turned(back, there)], dim=2)

    def score(self, states: Tensor) -> Tensor:
        """Return v . tanh(W h + b)."""
        scores: Tensor = self.query(torch.tanh(self.attention(states)))
        return scores[..., 0]


class TransformerForSequenceClassification(AttentiveNetwork):
    """A Transformer of one block under dot-product attention of one learned query q . h / sqrt(m).

    Word vectors are brought to the block's width by a linear map, and positions are sinusoids. The
    block's own attention is softmax, whatever the projection.
    """

    config_class = TransformerConfig
    base_model_prefix = "transformer"

    def __init__(self, config: TransformerConfig) -> None:
        size = config.hidden_size
        super().__init__(config, size)
        self.widen = nn.Linear(config.embedding_size, size)
        self.key, self.value, self.ask, self.out = (nn.Linear(size, size) for _ in range(4))
        self.inner, self.outer = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)
        self.first_norm, self.second_norm = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query = nn.Parameter(torch.randn(size))
        self.post_init()  # type: ignore[no-untyped-call]  # transformers' own

    def encode(self, words: Tensor, there: Tensor) -> Tensor:
        """Return what the block makes of word vectors and positions."""
        wide = self.widen(words) * math.sqrt(self.config.hidden_size)
        states = self.dropout(wide + sinusoids(wide))
        states = self.first_norm(states + self.dropout(self._attend(states, there)))
        inner = self.dropout(torch.relu(self.inner(states)))
        normed: Tensor = self.second_norm(states + self.dropout(self.outer(inner)))
        return normed

    def _attend(self, states: Tensor, there: Tensor) -> Tensor:
        """Return the output of the block's own attention, of every word to all words."""
        rows, tokens, size = states.shape
        heads = self.config.heads

        def split(values: Tensor) -> Tensor:
            return values.view(rows, tokens, heads, size // heads).transpose(1, 2)

        queries, keys, values = (split(layer(states)) for layer in (self.ask, self.key, self.value))
        scores = queries @ keys.transpose(2, 3) / math.sqrt(size // heads)
        mixed = project("softmax", scores, there[:, None, None]) @ values
        result: Tensor = self.out(mixed.transpose(1, 2).reshape(rows, tokens, size))
        return result

    def score(self, states: Tensor) -> Tensor:
        """Return q . h / sqrt(m)."""
        # A product with a column: torch counts no FLOPs of one with a vector.
        return (states @ self.query[:, None])[..., 0] / math.sqrt(self.config.hidden_size)


def sinusoids(states: Tensor) -> Tensor:
    """Return the positions of Vaswani et al. 2017 [tokens, width], as states has them."""
    tokens, width = states.shape[1:]
    places = torch.arange(tokens, dtype=states.dtype, device=states.device)[:, None]
    steps = torch.arange(0, width, 2, dtype=states.dtype, device=states.device)
    angles = places * torch.exp(steps * (-math.log(10000.0) / width))
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)[:, :width]


def _turned(values: Tensor, there: Tensor) -> Tensor:
    """Return the words of each row [rows, tokens, width] from behind; padding stays in its place.

    So an LSTM has read every word from behind before it comes to padding, whatever the lengths of
    a batch. Turning twice changes nothing.
    """
    places = torch.arange(there.shape[1], device=there.device).expand(there.shape)
    lengths = there.sum(dim=1, keepdim=True)
    order = torch.where(places < lengths, lengths - 1 - places, places)
    return values.gather(1, order[..., None].expand(*order.shape, values.shape[2]))
