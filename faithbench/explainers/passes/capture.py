"""One forward and backward pass that records what white-box explainers read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd.graph import get_gradient_edge

from faithbench.core.errors import CannotServeError
from faithbench.core.types import Batch, Encoding
from faithbench.models.encoding import inputs_of, pad_rows
from faithbench.models.session import Session
from faithbench.models.traits import has_decoder, is_tokens_first, reads_padding, word_tables

if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Capture:
    """Values and gradients of the target's logit, one row per example.

    Of a choice, what is differentiated is its logit minus the logsumexp of the others'.

    `attentions` [examples, heads, queries, keys] and `hidden` [examples, tokens, width]
    are tuples over blocks; `hidden` starts with the embedding output. `position` is the
    token whose last state the classifier reads: [CLS], <s>, or GPT-2's last token; where no token
    but one query attends, it is that query. Of a network whose attention cannot be read, the tuples
    are empty, and `unread` says why.
    """

    logits: torch.Tensor
    embeddings: torch.Tensor
    embedding_gradients: torch.Tensor
    hidden: tuple[torch.Tensor, ...]
    hidden_gradients: tuple[torch.Tensor, ...]
    attentions: tuple[torch.Tensor, ...]
    attention_gradients: tuple[torch.Tensor, ...]
    position: torch.Tensor
    unread: str = ""


@dataclass(frozen=True, eq=False)
class Forward:
    """The forward half of a pass, with the graph that a backward pass can follow once.

    Its values are those of `Capture`, which has them without the graph.
    """

    logits: torch.Tensor
    embeddings: torch.Tensor
    hidden: tuple[torch.Tensor, ...]
    attentions: tuple[torch.Tensor, ...]
    position: torch.Tensor | None
    unread: str = ""


@dataclass(frozen=True)
class AttentionSeen:
    """Attention matrices of a pass [examples, heads, queries, keys], and the row that is read."""

    attentions: tuple[torch.Tensor, ...]
    position: torch.Tensor


def capture(session: Session, batch: Batch) -> Capture:
    """Return the pass of a batch with attention, shared by all explainers that read it."""
    seen = capture_gradients(session, batch)
    if not seen.attentions:
        raise _no_attention(session.model.network, seen.unread)
    return seen


def capture_square(session: Session, batch: Batch) -> Capture:
    """Return the same pass for who needs the attention of every token to every token."""
    seen = capture(session, batch)
    check_square(session.model.network, seen.attentions)
    return seen


def capture_gradients(session: Session, batch: Batch) -> Capture:
    """Return the same pass for who reads embeddings and their gradients: any network has them."""
    if more := count_others(batch.encodings):
        session.meter.charge(forwards=more, backwards=more)
    forward = _shared_forward(session, batch)
    # Its forward half is paid for: this adds the backward one.
    return session.share(
        batch,
        "backward",
        lambda: run_backward(session.model.eager(), batch, forward),
        forwards=0,
        passes=0,
    )


def capture_attention(session: Session, batch: Batch) -> AttentionSeen:
    """Return the attention of a batch alone: the forward half of the same pass."""
    forward = _shared_forward(session, batch)
    if forward.position is None:
        raise _no_attention(session.model.network, forward.unread)
    return AttentionSeen(tuple(a.detach() for a in forward.attentions), forward.position)


def capture_square_attention(session: Session, batch: Batch) -> AttentionSeen:
    """Return the same for who needs the attention of every token to every token."""
    seen = capture_attention(session, batch)
    check_square(session.model.network, seen.attentions)
    return seen


def _shared_forward(session: Session, batch: Batch) -> Forward:
    return session.share(
        batch, "forward", lambda: run_forward(session.model.eager(), batch), backwards=0
    )


def run_capture(network: PreTrainedModel, batch: Batch) -> Capture:
    """Record one forward and backward pass on a network with readable attention."""
    return run_backward(network, batch, run_forward(network, batch))


def run_forward(network: PreTrainedModel, batch: Batch) -> Forward:
    """Record a forward pass; of the way back, only what lies above the last state is gone."""
    with torch.enable_grad(), embedding_leaf(network) as leaf:
        out = network(
            **inputs_of(network, batch.ids, batch.types, batch.attention),
            output_attentions=True,
            output_hidden_states=True,
        )
    logits: torch.Tensor = out[batch.output]
    hidden: tuple[torch.Tensor, ...] = ()
    attentions: tuple[torch.Tensor, ...] = ()
    position = None
    unread = _why_unread(network, out)
    if not unread:
        hidden, attentions = tuple(out.hidden_states), tuple(out.attentions)
        if not _are_behind(logits, (*hidden, *attentions)):
            # XLNet hands out rearranged copies, of which its output knows nothing.
            unread = "hands out copies of its attention matrices, which have no gradient"
            hidden, attentions = (), ()
    if not unread:
        # Other choices of an example do not read its last state: its own logit tells the row.
        target = logits.gather(1, batch.targets[:, None]).sum()
        square = attentions[-1].shape[2] == hidden[-1].shape[1]
        tops = (hidden[-1],) if square else (hidden[-1], attentions[-1])
        state, *attention = torch.autograd.grad(target, tops, retain_graph=True)
        position = read_position(state, attention)
    return Forward(logits, leaf[0], hidden, attentions, position, unread)


def run_backward(network: PreTrainedModel, batch: Batch, forward: Forward) -> Capture:
    """Complete a pass by its backward half."""
    with torch.enable_grad():
        targets = forward.logits.gather(1, batch.targets[:, None])[:, 0]
        targets = against_others(network, batch.encodings, forward.embeddings, targets)
        wanted = (forward.embeddings, *forward.hidden, *forward.attentions)
        gradients = torch.autograd.grad(targets.sum(), wanted)
    blocks = len(forward.hidden)  # so gradients[blocks] is that of the last state, or embeddings
    return Capture(
        logits=forward.logits.detach(),
        embeddings=forward.embeddings.detach(),
        embedding_gradients=gradients[0],
        hidden=tuple(h.detach() for h in forward.hidden),
        hidden_gradients=gradients[1 : 1 + blocks],
        attentions=tuple(a.detach() for a in forward.attentions),
        attention_gradients=gradients[1 + blocks :],
        position=read_position(gradients[blocks], gradients[1 + blocks :]),
        unread=forward.unread,
    )


def _are_behind(result: torch.Tensor, values: Sequence[torch.Tensor]) -> bool:
    """Return whether a result was computed from all of these values; its graph tells."""
    if not all(value.requires_grad for value in values):
        return False
    missing = {tuple(get_gradient_edge(value)[:2]) for value in values}
    waiting: list[Any] = [get_gradient_edge(result)[:2]]
    seen: set[Any] = set()
    while waiting and missing:
        node, output = waiting.pop()
        missing.discard((node, output))
        if node is not None and node not in seen:
            seen.add(node)
            waiting.extend(node.next_functions)
    return not missing


def read_position(
    state_gradients: torch.Tensor, attention_gradients: Sequence[torch.Tensor]
) -> torch.Tensor:
    """Return the row of attention that the classifier reads, by the largest gradient.

    It is that of the last state, or of the last attention where its queries are not the tokens.
    """
    sizes: torch.Tensor = state_gradients.norm(dim=-1)
    if attention_gradients and attention_gradients[-1].shape[2] != sizes.shape[1]:
        sizes = attention_gradients[-1].norm(dim=(1, 3))
    return sizes.argmax(dim=-1)


def against_others(
    network: PreTrainedModel,
    encodings: Sequence[Encoding],
    embeddings: torch.Tensor,
    logits: torch.Tensor,
) -> torch.Tensor:
    """Return each target's logit; of a choice, minus the logsumexp of the other choices' logits.

    That is the choice's log-odds. A row shares its tokens that may be erased with the rows of the
    other choices, so these read the same `embeddings` there [examples, tokens, width]: a gradient
    sees what a token does for the choice and for its rivals. Other targets stay as they are.
    """
    rivals = [(row, other) for row, encoding in enumerate(encodings) for other in encoding.others]
    if not rivals:
        return logits
    if reads_padding(network):
        raise CannotServeError(
            f"a {network.config.model_type} model reads padding, so that choices of different "
            "lengths cannot be told apart by their gradients; choose a perturbation explainer"
        )
    device = embeddings.device
    owners = torch.tensor([row for row, _ in rivals], device=device)
    arrays = pad_rows([(e.ids, e.types) for _, e in rivals], int(network.config.pad_token_id or 0))
    ids, types, attention = (torch.tensor(array, device=device) for array in arrays)
    shared = torch.zeros(ids.shape, dtype=torch.bool, device=device)
    for row, (_, other) in enumerate(rivals):
        shared[row, : len(other.ids)] = torch.tensor(other.erasable, device=device)
    own = network.get_input_embeddings()(ids)
    # Erasable tokens stand at the same positions in all rows; what is cut or padded is none.
    missing = ids.shape[1] - embeddings.shape[1]
    lent = torch.nn.functional.pad(embeddings[owners], (0, 0, 0, missing))
    placed = torch.where(shared[..., None], lent, own)
    with embedding_leaf(network, placed, cut=False):
        answers = network(**inputs_of(network, ids, types, attention)).logits[:, 0]
    return torch.stack(
        [
            logit - answers[owners == row].logsumexp(dim=0) if encoding.others else logit
            for row, (encoding, logit) in enumerate(zip(encodings, logits, strict=True))
        ]
    )


def count_others(encodings: Sequence[Encoding]) -> int:
    """Return how many rows of other choices compete with those of the batch."""
    return sum(len(encoding.others) for encoding in encodings)


def readable(
    network: PreTrainedModel, out: Any
) -> tuple[tuple[torch.Tensor, ...], tuple[torch.Tensor, ...]]:
    """Return the hidden states and attention matrices of a pass, or say why there are none."""
    if unread := _why_unread(network, out):
        raise _no_attention(network, unread)
    return tuple(out.hidden_states), tuple(out.attentions)


def check_square(network: PreTrainedModel, attentions: Sequence[torch.Tensor] | None) -> None:
    """Refuse a network without attention of every token to every token, given that of a pass."""
    if not attentions:
        raise _no_attention(network, _NONE)
    # By its shape alone, the one query of a text of one token would pass.
    one_query = getattr(network.config, "has_one_query", False)
    if one_query or any(attention.shape[2] != attention.shape[3] for attention in attentions):
        raise CannotServeError(
            f"a {network.config.model_type} model has no square attention, of every token to "
            "every token; choose attention, a gradient or a perturbation explainer"
        )


_NONE = "gives no attention matrices"


def _why_unread(network: PreTrainedModel, out: Any) -> str:
    """Return why the attention of a pass cannot be read; empty if it can."""
    if has_decoder(network):
        return "attends in an encoder and in a decoder, not in one row of blocks"
    attentions = getattr(out, "attentions", None)
    if not attentions or any(attention is None for attention in attentions):
        return _NONE
    # By their shape alone, windows as wide as a text would pass.
    if hasattr(network.config, "attention_window"):
        return "attends within windows, not to every token"
    return ""


def _no_attention(network: PreTrainedModel, why: str) -> CannotServeError:
    return CannotServeError(
        f"a {network.config.model_type} model {why}; choose a gradient or perturbation explainer"
    )


@contextmanager
def embedding_leaf(
    network: PreTrainedModel, value: torch.Tensor | None = None, *, cut: bool = True
) -> Iterator[list[torch.Tensor]]:
    """Make the word embeddings, or `value` in their place, the leaf of gradients while inside.

    Token ids are still passed to the network: GPT-2 needs them to find the last token.
    Without `cut`, they stay part of the graph they come from, if there is one. A decoder that
    reads the text once more reads the same embeddings, so that a gradient counts both readings.
    """
    leaf: list[torch.Tensor] = []
    lengths: list[int] = []
    tables = _tables(network)
    swapped = is_tokens_first(network)

    def begin(_module: torch.nn.Module, _args: Any, inputs: Any) -> None:
        lengths.append(int(inputs["input_ids"].shape[-1]))

    def place(_module: torch.nn.Module, _args: Any, output: torch.Tensor) -> torch.Tensor:
        if len(tables) > 1 and len(leaf) == len(lengths):
            # The second lookup of a pass: a decoder reads the text behind a token that begins it,
            # without its last token.
            return torch.cat([output[:, :1], leaf[-1][:, :-1]], dim=1)
        output = output.transpose(0, 1) if swapped else output
        # Longformer lengthens a text to whole windows before it looks up words.
        length = lengths[-1] if lengths else output.shape[1]
        embeddings = output[:, :length] if value is None else value
        # What no weight is trained for has no graph to stay in, and begins one.
        fixed = cut or not embeddings.requires_grad
        leaf.append(embeddings.detach().requires_grad_() if fixed else embeddings)
        whole = leaf[-1]
        if length < output.shape[1]:
            whole = torch.cat([whole, output[:, length:]], dim=1)
        return whole.transpose(0, 1) if swapped else whole

    # An encoder and a decoder may share the module itself, or only its weights.
    handles = [
        network.register_forward_pre_hook(begin, with_kwargs=True),
        *(table.register_forward_hook(place) for table in dict.fromkeys(tables)),
    ]
    try:
        yield leaf
    finally:
        for handle in handles:
            handle.remove()


def _tables(network: PreTrainedModel) -> tuple[torch.nn.Module, ...]:
    """Return the modules that look up words; refuse those that do it by different tables."""
    tables = word_tables(network)
    if any(table.weight is not tables[0].weight for table in tables):
        raise CannotServeError(
            f"a {network.config.model_type} model with one table of word embeddings for its "
            "encoder and another for its decoder has no single gradient of a word; choose a "
            "perturbation explainer"
        )
    return tables
