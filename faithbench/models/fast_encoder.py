"""Fast forward pass for BERT-like encoders: the same logits from fewer operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from faithbench.core.errors import FaithbenchError
from faithbench.core.text import readable
from faithbench.core.types import TokenRow
from faithbench.models.devices import send
from faithbench.models.encoding import inputs_of, pad_rows
from faithbench.models.model import Model
from faithbench.models.packed_linear import Dense, join_linear
from faithbench.models.packs import Pack, pack_rows

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
    their tokens are equal.
    """
    encoder = assemble_encoder(model, differentiable=differentiable)
    if encoder is None or not _agrees(model, encoder):
        return None
    if differentiable or not model.compiled:
        return encoder
    return CompiledEncoder(encoder.network, encoder.blocks, encoder.shares, encoder.masks)


def assemble_encoder(model: Model, *, differentiable: bool) -> FastEncoder | None:
    """Return the fast forward pass of a model's parts, on any device, without trying it."""
    network: Any = model.network
    if model.kind.per_position or model.dtype not in _TOLERANCE or network.training:
        return None
    try:
        layers = network.base_model.encoder.layer
        blocks = tuple(_block(layer, pack=not differentiable) for layer in layers)
    except AttributeError:  # another architecture
        return None
    shares = not differentiable and network.config.model_type in _POSITION_IS_INDEX
    # A GPU starts one large kernel as quickly as a small one; the CPU does less work without
    # padding and has its fastest attention without a mask.
    return FastEncoder(network, blocks, shares=shares, masks=model.device.type != "cpu")


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

    def attend(self, joined: Tensor, rows: int, mask: Tensor | None = None) -> Tensor:
        """Attend within rows of one length; queries, keys and values are [tokens, 3 widths].

        The result is [tokens, width]. A `mask` [rows, 1, 1, tokens] is False at padding.
        """
        width = joined.shape[-1] // 3
        parts = joined.view(rows, -1, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        # Without padding there is no mask, and torch takes its fastest kernel.
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return attended.transpose(1, 2).reshape(-1, width)

    def attend_from_first(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attend from the first token of each row of x [rows, tokens, width] alone.

        With one query per row, keys and values need not be computed: q (W x) = (q W) x, and the
        weighted mean of W x is W times the weighted mean of x. The keys' bias adds the same
        constant to every score of a row, which softmax cancels.
        """
        rows, _, width = x.shape
        size = width // self.heads
        query = self.query(x[:, 0]).view(rows, self.heads, size)
        seen_by = torch.einsum("rhs,hsw->rhw", query, self.key.weight.view(-1, size, width))
        products = torch.bmm(seen_by, x.transpose(1, 2)).mul_(size**-0.5)
        if mask is not None:
            products = products.masked_fill(~mask[:, 0], -torch.inf)
        means = torch.bmm(products.softmax(dim=-1), x)
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
class FastEncoder:
    """From ids to logits, with the network's own embeddings and head.

    Padding is left out: linear layers see the real tokens of all rows as one long list.
    Attention runs on rows of one length at a time or, if it `masks`, on all rows at once, padded.
    """

    network: Any
    blocks: tuple[_Block, ...]
    shares: bool
    masks: bool

    def pack(self, rows: Sequence[TokenRow]) -> Pack:
        """Lay rows out as this encoder reads them, and send them to its device."""
        pad_id, device = int(self.network.config.pad_token_id), self.network.device
        return pack_rows(rows, pad_id, device, share=self.shares, mask=self.masks)

    def __call__(self, pack: Pack) -> Tensor:
        """Return the logits [rows, classes], in the order of the pack; the host never waits."""
        embedded = self._embed(pack.ids, pack.types).flatten(0, 1)
        # Without padding nothing need be selected; a selection's gradient is slow.
        x = embedded if pack.real is None else embedded[pack.real]
        for index, block in enumerate(self.blocks[:-1]):
            if index == 0 and pack.distinct is not None:
                # Erased copies of a text differ in few tokens, and before the first attention a
                # token's state depends on that token alone: most of a pack is the same vectors.
                joined = block.query_key_value(x[pack.distinct])[pack.inverse]
            else:
                joined = block.query_key_value(x)
            x = block.feed(self._attend(block, joined, pack), x)
        return self._read(x, pack)

    def _attend(self, block: _Block, joined: Tensor, pack: Pack) -> Tensor:
        if pack.mask is not None:
            return block.attend(joined[pack.places], len(pack.ids), pack.mask)[pack.real]
        parts = zip(joined.split(_tokens(pack)), pack.lengths, strict=True)
        attended = [block.attend(part, count) for part, (_, count) in parts]
        return attended[0] if len(attended) == 1 else torch.cat(attended)

    def _read(self, x: Tensor, pack: Pack) -> Tensor:
        """Compute the last block for the first token of each row, and the head on it."""
        last = self.blocks[-1]
        if pack.mask is not None:
            rows = [x[pack.places].view(*pack.ids.shape, -1)]
        else:
            parts = zip(x.split(_tokens(pack)), pack.lengths, strict=True)
            rows = [part.view(count, size, -1) for part, (size, count) in parts]
        attended = torch.cat([last.attend_from_first(part, pack.mask) for part in rows])
        first = torch.cat([part[:, 0] for part in rows])
        return self._logits(last.feed(attended, first)[:, None])

    def _embed(self, ids: Tensor, types: Tensor) -> Tensor:
        base = self.network.base_model
        segments = types if self.network.config.type_vocab_size > 1 else torch.zeros_like(types)
        x: Tensor = base.embeddings(input_ids=ids, token_type_ids=segments)
        return base.embeddings_project(x) if hasattr(base, "embeddings_project") else x

    def _logits(self, first: Tensor) -> Tensor:
        pooler = getattr(self.network.base_model, "pooler", None)
        logits: Tensor = self.network.classifier(first if pooler is None else pooler(first))
        return logits


COMPILER = "inductor"
"""The backend of `torch.compile`, which is torch's own default."""


@dataclass(frozen=True, eq=False)
class CompiledEncoder(FastEncoder):
    """The same pass, compiled when it is first used, for packs of all sizes at once."""

    @cached_property
    def _compiled(self) -> Callable[[FastEncoder, Pack], Tensor]:
        return torch.compile(FastEncoder.__call__, dynamic=True, backend=COMPILER)

    def __call__(self, pack: Pack) -> Tensor:
        """Return the logits [rows, classes], in the order of the pack."""
        try:
            return self._compiled(self, pack)
        except torch.OutOfMemoryError:
            raise  # for the engine, which takes a smaller pack
        except RuntimeError as error:
            raise FaithbenchError(
                f"torch.compile failed ({type(error).__name__}: {readable(str(error))}); leave "
                "--compiled out"
            ) from error


def _tokens(pack: Pack) -> list[int]:
    """Return how many tokens the rows of each length have."""
    return [size * count for size, count in pack.lengths]


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
    ids = torch.randint(int(network.config.vocab_size), (2, length), generator=draw).numpy()
    rows = [(part, np.zeros_like(part)) for part in (ids[0], ids[1, : length // 2])]
    inputs = send(pad_rows(rows, int(network.config.pad_token_id)), model.device)
    with torch.inference_mode():
        try:
            pack = encoder.pack(rows)
            logits = encoder(pack)
        except (AttributeError, RuntimeError, TypeError, ValueError):
            return False
        expected = network(**inputs_of(network, *inputs)).logits[pack.order.tolist()]
    slack = _TOLERANCE[model.dtype] * max(1.0, float(expected.abs().max()))
    return logits.shape == expected.shape and float((logits - expected).abs().max()) <= slack
