"""Fast forward pass for BERT-like encoders: the same logits from fewer operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from faithbench.models.encoding import inputs_of
from faithbench.models.model import Model
from faithbench.models.packed_linear import Dense, join_linear

FastEncoder = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From ids, segments and attention [rows, tokens] to logits [rows, classes]."""

_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}
# Architectures whose embedding of a token depends on its id, segment and index alone. RoBERTa
# derives positions from the padding in a row, so that equal tokens at one index may differ.
_POSITION_IS_INDEX = {"bert", "electra"}


def fast_encoder(model: Model, *, differentiable: bool = False) -> FastEncoder | None:
    """Return a fast forward pass for the model's logits, or None if the model allows none.

    A classifier reads one token, so the last block is computed for that one alone; rows that
    differ in few tokens share queries, keys and values of the first block; on the CPU, linear
    layers are packed once and fused with the operation after them. The pass is used only if it
    reproduces the network's logits on a probe. It copies the encoder's weights.

    A `differentiable` pass carries gradients to the embeddings. It neither packs nor shares:
    packed layers have no gradient, and embeddings that an explainer moved can differ although
    their tokens are equal. It sorts rows by length, so embeddings that replace those of a batch
    must belong to rows of one length.
    """
    network: Any = model.network
    if model.kind.per_position or model.dtype not in _TOLERANCE or network.training:
        return None
    try:
        layers = network.base_model.encoder.layer
        blocks = tuple(_block(layer, pack=not differentiable) for layer in layers)
        encoder = _Encoder(network, blocks, shares=not differentiable)
    except AttributeError:  # another architecture
        return None
    return encoder if _agrees(model, encoder) else None


@dataclass(frozen=True, eq=False)
class _Block:
    """One block of the encoder: attention, then a feed-forward layer, each with its norm."""

    heads: int
    query_key_value: Dense
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    attention_out: Dense
    attention_norm: nn.Module
    widen: Dense
    activation: Callable[[Tensor], Tensor]
    narrow: Dense
    norm: nn.Module

    def attend(self, joined: Tensor, rows: int) -> Tensor:
        """Attend within rows of one length; queries, keys and values are [tokens, 3 widths].

        The result is [tokens, width].
        """
        width = joined.shape[-1] // 3
        parts = joined.view(rows, -1, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        # Rows of one length have no padding, hence no mask, and torch takes its fastest kernel.
        attended = F.scaled_dot_product_attention(query, key, value).transpose(1, 2)
        return attended.reshape(-1, width)

    def attend_from_first(self, x: Tensor) -> Tensor:
        """Attend from the first token of each row of x [rows, tokens, width] alone.

        With one query per row, keys and values need not be computed: q (W x) = (q W) x, and the
        weighted mean of W x is W times the weighted mean of x. The keys' bias adds the same
        constant to every score of a row, which softmax cancels.
        """
        rows, _, width = x.shape
        size = width // self.heads
        query = self.query(x[:, 0]).view(rows, self.heads, size)
        seen_by = torch.einsum("rhs,hsw->rhw", query, self.key.weight.view(-1, size, width))
        weights = torch.bmm(seen_by, x.transpose(1, 2)).mul_(size**-0.5).softmax(dim=-1)
        means = torch.bmm(weights, x)
        # Weights sum to 1, so the mean of W x + bias is W times the mean, plus bias.
        values = torch.einsum("rhw,hsw->rhs", means, self.value.weight.view(-1, size, width))
        return values.reshape(rows, width) + self.value.bias

    def feed(self, attended: Tensor, x: Tensor) -> Tensor:
        """Finish the block: add the attention output to `x` [tokens, width], then feed forward."""
        x = self.attention_norm(self.attention_out.added(attended, x))
        wide = self.widen.activated(x, self.activation)
        out: Tensor = self.norm(self.narrow.added(wide, x))
        return out


@dataclass(frozen=True, eq=False)
class _Encoder:
    """From ids to logits, with the network's own embeddings and head.

    Padding is left out: linear layers see the real tokens of all rows as one long list, and
    attention runs on rows of one length at a time.
    """

    network: Any
    blocks: tuple[_Block, ...]
    shares: bool

    def __call__(self, ids: Tensor, types: Tensor, attention: Tensor) -> Tensor:
        lengths = attention.sum(dim=1)
        order = lengths.argsort(stable=True)
        ids, types, attention = ids[order], types[order], attention[order]
        sizes, counts = lengths[order].unique_consecutive(return_counts=True)
        groups = list(zip(sizes.tolist(), counts.tolist(), strict=True))
        tokens = [size * count for size, count in groups]
        real = attention.bool()
        embedded = self._embed(ids, types)
        # Without padding nothing need be selected; a selection's gradient is slow.
        x = embedded.flatten(0, 1) if sum(tokens) == real.numel() else embedded[real]
        for index, block in enumerate(self.blocks[:-1]):
            if index == 0:
                joined = self._project_first(block, x, ids, types, real)
            else:
                joined = block.query_key_value(x)
            parts = zip(joined.split(tokens), groups, strict=True)
            attended = [block.attend(part, count) for part, (_, count) in parts]
            x = block.feed(attended[0] if len(attended) == 1 else torch.cat(attended), x)
        logits = self._read(x, groups)
        return logits[order.argsort()]

    def _read(self, x: Tensor, groups: list[tuple[int, int]]) -> Tensor:
        """Compute the last block for the first token of each row, and the head on it."""
        last = self.blocks[-1]
        parts = x.split([size * count for size, count in groups])
        rows = [p.view(c, s, -1) for p, (s, c) in zip(parts, groups, strict=True)]
        attended = torch.cat([last.attend_from_first(part) for part in rows])
        first = torch.cat([part[:, 0] for part in rows])
        return self._logits(last.feed(attended, first)[:, None])

    def _embed(self, ids: Tensor, types: Tensor) -> Tensor:
        base = self.network.base_model
        segments = types if self.network.config.type_vocab_size > 1 else torch.zeros_like(types)
        x: Tensor = base.embeddings(input_ids=ids, token_type_ids=segments)
        return base.embeddings_project(x) if hasattr(base, "embeddings_project") else x

    def _project_first(
        self, block: _Block, x: Tensor, ids: Tensor, types: Tensor, real: Tensor
    ) -> Tensor:
        """Compute the first block's queries, keys and values once per distinct embedding.

        Erased copies of a text differ in few tokens, and before the first attention a token's
        state depends on that token alone: most of a batch is the same few vectors.
        """
        if not self.shares or self.network.config.model_type not in _POSITION_IS_INDEX:
            return block.query_key_value(x)
        tokens = ids.shape[1]
        indices = torch.arange(tokens, device=ids.device)
        # (id, segment, index) as digits of one number in a mixed radix: the two lower digits are
        # below `types.max() + 1` and `tokens`, so different triples have different keys. A
        # vocabulary of 2^18, two segments and 512 tokens stay below 2^28, far from overflow.
        keys = (ids * int(types.max() + 1) + types) * tokens + indices
        _, inverse = torch.unique(keys[real], return_inverse=True)
        order = torch.arange(len(inverse), device=ids.device)
        # Any token of a key will do, since their embeddings are equal: the last write wins.
        representatives = order.new_empty(int(inverse.max()) + 1).scatter_(0, inverse, order)
        return block.query_key_value(x[representatives])[inverse]

    def _logits(self, first: Tensor) -> Tensor:
        pooler = getattr(self.network.base_model, "pooler", None)
        logits: Tensor = self.network.classifier(first if pooler is None else pooler(first))
        return logits


def _block(layer: Any, *, pack: bool) -> _Block:
    attention, out = layer.attention.self, layer.attention.output
    query, key, value = attention.query, attention.key, attention.value
    return _Block(
        heads=attention.num_attention_heads,
        query_key_value=join_linear(query, key, value, pack=pack),
        query=query,
        key=key,
        value=value,
        attention_out=join_linear(out.dense, pack=pack),
        attention_norm=out.LayerNorm,
        widen=join_linear(layer.intermediate.dense, pack=pack),
        activation=layer.intermediate.intermediate_act_fn,
        narrow=join_linear(layer.output.dense, pack=pack),
        norm=layer.output.LayerNorm,
    )


def _agrees(model: Model, encoder: FastEncoder) -> bool:
    """Return whether the fast pass gives the network's logits on two rows, one of them padded."""
    network: Any = model.network
    draw = torch.Generator().manual_seed(0)
    length = min(12, model.max_tokens)
    ids = torch.randint(int(network.config.vocab_size), (2, length), generator=draw)
    ids, attention = ids.to(model.device), torch.ones_like(ids, device=model.device)
    types = torch.zeros_like(ids)
    ids[1, length // 2 :] = int(network.config.pad_token_id)
    attention[1, length // 2 :] = 0
    with torch.inference_mode():
        try:
            logits = encoder(ids, types, attention)
        except (AttributeError, RuntimeError, TypeError, ValueError):
            return False
        expected = network(**inputs_of(network, ids, types, attention)).logits
    slack = _TOLERANCE[model.dtype] * max(1.0, float(expected.abs().max()))
    return logits.shape == expected.shape and float((logits - expected).abs().max()) <= slack
