"""The parts of each block's attention, recorded in one forward pass.

The network is watched from outside: a function mode sees the operations, hooks see which
module's call they belong to. A block is the smallest module whose call multiplies one attention
matrix with values and normalises twice, so that BERT, RoBERTa, DistilBERT, ELECTRA, ALBERT
(whose blocks share weights) and GPT-2 need no code of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.overrides import TorchFunctionMode

from faithbench.core.errors import CannotServeError
from faithbench.core.types import Batch
from faithbench.models.encoding import inputs_of
from faithbench.models.traits import has_decoder

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True, eq=False)
class Product:
    """Attention [examples, heads, queries, keys] times values [examples, heads, keys, size]."""

    attention: Tensor
    values: Tensor


@dataclass(frozen=True, eq=False)
class Linear:
    """A linear layer: its weight [outputs, inputs] and its bias."""

    weight: Tensor
    bias: Tensor | None = None


@dataclass(frozen=True, eq=False)
class Norm:
    """A layer normalisation as it ran: what it gave and read, [examples, tokens, width]."""

    outputs: Tensor
    inputs: Tensor
    shape: Sequence[int]
    weight: Tensor | None = None
    bias: Tensor | None = None
    eps: float = 1e-5

    def spread(self) -> Tensor:
        """Return what each token was divided by, [examples, tokens, 1]."""
        return (self.inputs.var(dim=-1, correction=0, keepdim=True) + self.eps).sqrt()

    def linear(self, vectors: Tensor) -> Tensor:
        """Centre and weigh vectors [..., width]: the normalisation but for spread and bias."""
        centred = vectors - vectors.mean(dim=-1, keepdim=True)
        return centred if self.weight is None else self.weight * centred


@dataclass(frozen=True, eq=False)
class Call:
    """A module, what it was called with, the state it gave, and how many events came before."""

    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: Tensor
    start: int


@dataclass(frozen=True, eq=False)
class Block:
    """One block of a pass, and the state [examples, tokens, width] that it read.

    `norms` are the two normalisations that follow its attention. Where a block begins with a
    normalisation (`pre`, as in GPT-2) they are the one that reads the residual sum (ln_2) and
    the one that reads the block's output: the next block's ln_1, or ln_f after the last block.
    """

    call: Call
    inputs: Tensor
    product: Product
    projection: Linear
    norms: tuple[Norm, ...]
    pre: bool


@dataclass(frozen=True, eq=False)
class Recording:
    """The blocks of a pass, first to last, and the token whose last state the classifier reads."""

    blocks: tuple[Block, ...]
    position: Tensor


def watch_blocks(network: PreTrainedModel, batch: Batch) -> Recording:
    """Watch one forward pass of a network with readable attention."""
    if has_decoder(network):  # whose first blocks, an encoder's, are half of it
        raise _no_blocks(network, "blocks in an encoder and in a decoder, not in one row")
    # A network that does not count its blocks has none that are watched.
    recorder = Recorder(int(getattr(network.config, "num_hidden_layers", 0)))
    # The only leaf is the last block's output, so that autograd records the classifier alone.
    with torch.enable_grad(), recorder.watch(network), recorder:
        out = network(**inputs_of(network, batch.ids, batch.types, batch.attention))
    known = recorder.calls if recorder.leaf is not None else ()
    blocks = [_assemble(recorder.events, call) for call in known]
    if recorder.leaf is None or None in blocks:
        raise _no_blocks(
            network,
            "no blocks of attention, projection, residual and layer norm that can be taken apart",
        )
    targets = out[batch.output].gather(1, batch.targets[:, None]).sum()
    (gradient,) = torch.autograd.grad(targets, recorder.leaf)
    # Only the token that the classifier reads has a gradient; all others have exactly 0.
    position = gradient.norm(dim=-1).argmax(dim=-1)
    return Recording(tuple(block for block in blocks if block is not None), position)


def _no_blocks(network: PreTrainedModel, has: str) -> CannotServeError:
    return CannotServeError(
        f"a {network.config.model_type} model has {has}; choose a gradient or perturbation "
        "explainer"
    )


class AttentionMode(TorchFunctionMode):
    """Hand every product of attention and values to `product`: the next one after a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self._shape: torch.Size | None = None

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Make one call."""
        # A softmax gives attention [examples, heads, queries, keys]; the next product whose first
        # factor has that shape is attention times values. Dropout between them keeps the shape.
        if func in _MATMUL and self._shape is not None and args[0].shape == self._shape:
            self._shape = None
            return self.product(*args)
        result = func(*args, **(kwargs or {}))
        if func in _SOFTMAX and result.dim() == 4:
            self._shape = result.shape
        return result

    def product(self, attention: Tensor, values: Tensor) -> Tensor:
        """Return attention times values."""
        return attention @ values


class Recorder(AttentionMode):
    """Keep the operations that decompositions are made of, in order, and the blocks' calls."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.events: list[Product | Linear | Norm] = []
        self.calls: list[Call] = []
        self.leaf: Tensor | None = None
        self._blocks = blocks
        self._starts: list[int] = []
        self._done = 0

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Make one call, and keep linear layers and normalisations."""
        result = super().__torch_function__(func, types, args, kwargs)
        if func is F.linear:
            self.events.append(Linear(*args[1:], **(kwargs or {})))
        elif func is torch.addmm:  # GPT-2 keeps its weights transposed
            self.events.append(Linear(args[2].T, args[0]))
        elif func is F.layer_norm:
            self.events.append(Norm(result.detach(), args[0].detach(), *args[1:], **(kwargs or {})))
        return result

    def product(self, attention: Tensor, values: Tensor) -> Tensor:
        """Return attention times values, and keep both."""
        self.events.append(Product(attention, values))
        return attention @ values

    @contextmanager
    def watch(self, network: PreTrainedModel) -> Iterator[None]:
        """Follow the calls of all modules, while inside."""
        handles = []
        for module in network.modules():
            handles.append(module.register_forward_pre_hook(self._enter))
            handles.append(module.register_forward_hook(self._leave, with_kwargs=True))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, _module: torch.nn.Module, _args: Any) -> None:
        self._starts.append(len(self.events))

    def _leave(self, module: torch.nn.Module, args: Any, kwargs: Any, output: Any) -> Any:
        start = self._starts.pop()
        kinds = [type(event) for event in self.events[start:]]
        # Inner modules end first, so whatever holds a block already known is larger than one.
        if start < self._done or kinds.count(Product) != 1 or kinds.count(Norm) < 2:
            return output
        self._done = len(self.events)
        state = output[0] if isinstance(output, tuple) else output
        self.calls.append(Call(module, args, kwargs, state, start))
        if len(self.calls) != self._blocks:
            return output
        self.leaf = state.detach().requires_grad_()
        return (self.leaf, *output[1:]) if isinstance(output, tuple) else self.leaf


@torch.no_grad()
def _assemble(events: Sequence[Product | Linear | Norm], call: Call) -> Block | None:
    """Pick a block's parts from what followed its start; None unless they add up."""
    products = [i for i, e in enumerate(events) if isinstance(e, Product) and i >= call.start]
    before, after = events[call.start : products[0]], events[products[0] :]
    product = next(e for e in after if isinstance(e, Product))
    projection = next((e for e in after if isinstance(e, Linear)), None)
    norms = tuple(e for e in after if isinstance(e, Norm))[:2]
    inputs = call.args[0] if call.args else call.kwargs["hidden_states"]
    if projection is None or len(norms) < 2:
        return None
    context = (product.attention @ product.values).transpose(1, 2).flatten(2)
    total = inputs + F.linear(context, projection.weight, projection.bias)
    # Loose enough for half precision: parts that do not belong together are off by far more.
    if (total - norms[0].inputs).abs().max() > 0.05 * total.abs().max():
        return None
    return Block(call, inputs, product, projection, norms, any(isinstance(e, Norm) for e in before))


T = torch.Tensor
_MATMUL = {torch.matmul, T.matmul, T.__matmul__}
_SOFTMAX = {F.softmax, torch.softmax, T.softmax}
