"""A shorter way through encoders of BERT's kind: the same logits from fewer operations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from faithbench.models import Model

Lean = Callable[[Tensor, Tensor, Tensor], Tensor]
"""From ids, segments and attention [rows, tokens] to logits [rows, classes]."""

_TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-9}
# Their embeddings know a token by its id, segment and place alone; RoBERTa counts places
# from the padding it meets, so that equal tokens may differ.
_PLACED_BY_INDEX = {"bert", "electra"}


def lean_forward(model: Model) -> Lean | None:
    """Return a shorter way to the model's logits, or None where it has none.

    A classifier reads one token, so the last block is computed for that one alone; rows that
    differ in few tokens share queries, keys and values of the first block; on the CPU, linear
    layers are packed once and fused with what follows them. The way is taken only if it
    gives the network's own logits for a probe. It copies the encoder's weights.
    """
    network: Any = model.network
    if len(model.heads) > 1 or model.dtype not in _TOLERANCE or network.training:
        return None
    try:
        lean = _Encoder(network, tuple(_block(layer) for layer in network.base_model.encoder.layer))
    except AttributeError:  # another architecture
        return None
    return lean if _agrees(model, lean) else None


@dataclass(frozen=True, eq=False)
class _Dense:
    """A linear layer, followed by nothing, by GELU, or by an addition."""

    weight: Tensor
    bias: Tensor
    packed: bool

    def __call__(self, x: Tensor) -> Tensor:
        if self.packed:
            return _pointwise(x, self.weight, self.bias, "none", [], "")
        return F.linear(x, self.weight, self.bias)

    def activated(self, x: Tensor, activation: Callable[[Tensor], Tensor]) -> Tensor:
        if self.packed and getattr(activation, "act", activation) is F.gelu:
            return _pointwise(x, self.weight, self.bias, "gelu", [], "none")
        return activation(self(x))

    def added(self, x: Tensor, other: Tensor) -> Tensor:
        if self.packed:
            summed: Tensor = torch.ops.mkldnn._linear_pointwise.binary(
                x, other, self.weight, self.bias, "add"
            )
            return summed
        return self(x) + other


@dataclass(frozen=True, eq=False)
class _Block:
    """One block of the encoder: attention, then a feed-forward layer, each with its norm."""

    heads: int
    query_key_value: _Dense
    query: _Dense
    key_value: _Dense
    attention_out: _Dense
    attention_norm: nn.Module
    widen: _Dense
    activation: Callable[[Tensor], Tensor]
    narrow: _Dense
    norm: nn.Module

    def attend(self, query: Tensor, key_value: Tensor, keep: Tensor | None) -> Tensor:
        """Attend from queries [rows, some tokens, width] to keys and values, joined in the last."""
        rows, width = query.shape[0], query.shape[-1]
        split = (rows, -1, self.heads, width // self.heads)
        q, k, v = (t.reshape(split).transpose(1, 2) for t in (query, *key_value.split(width, -1)))
        found = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        return found.transpose(1, 2).reshape(-1, width)

    def feed(self, attended: Tensor, x: Tensor) -> Tensor:
        """Add what was attended to `x` [tokens, width], and put both through the rest."""
        x = self.attention_norm(self.attention_out.added(attended, x))
        wide = self.widen.activated(x, self.activation)
        out: Tensor = self.norm(self.narrow.added(wide, x))
        return out


@dataclass(frozen=True, eq=False)
class _Encoder:
    """The whole way from ids to logits, by the network's own embeddings and head."""

    network: Any
    blocks: tuple[_Block, ...]

    def __call__(self, ids: Tensor, types: Tensor, attention: Tensor) -> Tensor:
        rows, tokens = ids.shape
        keep = None if bool(attention.all()) else attention.bool()[:, None, None, :]
        x = self._embed(ids, types)
        width = x.shape[-1]
        for index, block in enumerate(self.blocks[:-1]):
            joined = self._first(block, x, ids, types) if index == 0 else block.query_key_value(x)
            joined = joined.view(rows, tokens, 3 * width)
            attended = block.attend(joined[..., :width], joined[..., width:], keep)
            x = block.feed(attended, x)
        last = self.blocks[-1]
        key_value = last.key_value(x).view(rows, tokens, 2 * width)
        x = x.view(rows, tokens, width)[:, 0].contiguous()
        x = last.feed(last.attend(last.query(x)[:, None], key_value, keep), x)
        return self._logits(x[:, None])

    def _embed(self, ids: Tensor, types: Tensor) -> Tensor:
        base = self.network.base_model
        segments = types if self.network.config.type_vocab_size > 1 else torch.zeros_like(types)
        x: Tensor = base.embeddings(input_ids=ids, token_type_ids=segments)
        if hasattr(base, "embeddings_project"):
            x = base.embeddings_project(x)
        return x.reshape(ids.numel(), -1)

    def _first(self, block: _Block, x: Tensor, ids: Tensor, types: Tensor) -> Tensor:
        """Compute queries, keys and values of each distinct embedding once."""
        if self.network.config.model_type not in _PLACED_BY_INDEX:
            return block.query_key_value(x)
        tokens = ids.shape[1]
        places = torch.arange(tokens, device=ids.device)
        keys = (ids * int(types.max() + 1) + types) * tokens + places
        _, inverse = torch.unique(keys.flatten(), return_inverse=True)
        order = torch.arange(len(inverse), device=ids.device)
        some = order.new_empty(int(inverse.max()) + 1).scatter_(0, inverse, order)
        return block.query_key_value(x[some])[inverse]

    def _logits(self, first: Tensor) -> Tensor:
        pooler = getattr(self.network.base_model, "pooler", None)
        logits: Tensor = self.network.classifier(first if pooler is None else pooler(first))
        return logits


def _block(layer: Any) -> _Block:
    attention, out = layer.attention.self, layer.attention.output
    query, key, value = attention.query, attention.key, attention.value
    return _Block(
        heads=attention.num_attention_heads,
        query_key_value=_dense(query, key, value),
        query=_dense(query),
        key_value=_dense(key, value),
        attention_out=_dense(out.dense),
        attention_norm=out.LayerNorm,
        widen=_dense(layer.intermediate.dense),
        activation=layer.intermediate.intermediate_act_fn,
        narrow=_dense(layer.output.dense),
        norm=layer.output.LayerNorm,
    )


def _dense(*layers: nn.Module) -> _Dense:
    """Join plain linear layers into one, packed for the CPU where PyTorch can."""
    if any(type(layer) is not nn.Linear for layer in layers):
        raise AttributeError("expected plain linear layers")  # an adapter not merged, say
    with torch.inference_mode():
        weight = torch.cat([layer.weight for layer in layers if isinstance(layer, nn.Linear)])
        bias = torch.cat([layer.bias for layer in layers if isinstance(layer, nn.Linear)])
        packed = _packs(weight)
        if packed:
            weight = torch.ops.mkldnn._reorder_linear_weight(weight)
    return _Dense(weight, bias, packed)


def _packs(weight: Tensor) -> bool:
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()
        and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    )


def _pointwise(
    x: Tensor, weight: Tensor, bias: Tensor, name: str, a: list[float], b: str
) -> Tensor:
    found: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, name, a, b)
    return found


def _agrees(model: Model, lean: Lean) -> bool:
    """Compare with the network itself on two rows, one of them padded."""
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
            found = lean(ids, types, attention)
        except (AttributeError, RuntimeError, TypeError, ValueError):
            return False
        wanted = network(input_ids=ids, attention_mask=attention).logits
    slack = _TOLERANCE[model.dtype] * max(1.0, float(wanted.abs().max()))
    return found.shape == wanted.shape and float((found - wanted).abs().max()) <= slack
