"""The influence of words and of inner representations on a prediction (Meister et al. 2021).

The inner representations h are what attention is over: the encoder's outputs of networks with one
query, and of a Transformer's classifier the inputs of its last block.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch, Bools, Encoding, Floats, Ints
from faithbench.data.kinds.kind import Prediction
from faithbench.data.windows import erased_rows, parts_of
from faithbench.explainers.passes.capture import embedding_leaf, read_position, readable
from faithbench.metrics.influence import Influence
from faithbench.models.encoding import collate, inputs_of
from faithbench.models.model import Model
from faithbench.models.predictions import evaluate_inputs
from faithbench.models.session import Session

ROWS = 32
"""Rows of one backward pass of Eq. 5: each keeps the graph of a whole text."""

TINY = 1e-6
"""Smaller changes of a probability are rounding of float32, and count as none.

Without that, the many h that sparse attention does not reach would be ranked by noise.
"""


def measure_influence(
    session: Session,
    encodings: Sequence[Encoding],
    predicted: Sequence[Prediction],
    positions: int = 16,
) -> list[Influence]:
    """Return the influences of each text; of h at most `positions` of its tokens, drawn by its id.

    Texts are removed words from by deleting them, h by leaving it out of the projection.
    """
    network = session.model.eager()
    _check(session.model, encodings)
    targets = [int(one.target) for one in predicted]  # type: ignore[arg-type]  # classes, by _check
    batch = collate(session.model, encodings, targets, [0] * len(encodings))
    seen = _gradients(network, batch)
    changes = _input_changes(session, encodings, predicted)
    drawn = [_drawn(encoding, positions) for encoding in encodings]
    on_states = _on_states(network, batch, [words[chosen] for words, chosen in drawn])
    influences = []
    for row, (encoding, (words, chosen)) in enumerate(zip(encodings, drawn, strict=True)):
        influences.append(
            Influence(
                attention=seen.attention[row][words],
                input_gradient=seen.inputs[row][words],
                state_gradient=seen.states[row][words],
                input_change=changes[row],
                state_change=_state_changes(network, seen, row, encoding.erasable, targets[row]),
                on_states=on_states[row][:, words],
                positions=chosen,
            )
        )
    return influences


def _check(model: Model, encodings: Sequence[Encoding]) -> None:
    if not model.kind.has_classes or model.kind.has_choices or len(model.outputs) > 1:
        raise FaithbenchError(
            f"influence on inner representations is measured for classifiers, and model "
            f"{model.public_name!r} is a {model.kind.model_noun}; choose a classification task"
        )
    if any(len(parts_of(encoding)) > 1 for encoding in encodings):
        raise FaithbenchError(
            "influence on inner representations is measured for texts that are read in one piece; "
            "choose --long truncate"
        )


def _drawn(encoding: Encoding, most: int) -> tuple[Ints, Ints]:
    """Return the places of the tokens that may be erased, and which of them Eq. 5 is asked for."""
    words = np.flatnonzero(encoding.erasable)
    if len(words) <= most:
        return words, np.arange(len(words))
    # Drawn by the id alone: the same positions for every network and in any order of texts.
    digest = hashlib.sha256(f"positions:{encoding.example.id}".encode()).digest()
    draw = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    return words, np.sort(draw.choice(len(words), most, replace=False))


@dataclass(frozen=True, eq=False)
class _Seen:
    """One pass of a batch: attention and gradient norms [rows, tokens], and h itself."""

    attention: Floats
    inputs: Floats
    states: Floats
    h: torch.Tensor
    one_query: bool


def _gradients(network: Any, batch: Batch) -> _Seen:
    """Return attention, and the gradients of the targets' probabilities (Eq. 4)."""
    with torch.enable_grad(), embedding_leaf(network) as leaf:
        out = network(
            **inputs_of(network, batch.ids, batch.types, batch.attention),
            output_attentions=True,
            output_hidden_states=True,
        )
        hidden, attentions = readable(network, out)
        one_query = _has_one_query(network)
        h = hidden[-1] if one_query else hidden[-2]
        f = out.logits.softmax(dim=-1).gather(1, batch.targets[:, None])[:, 0]
        wanted = (leaf[0], h, hidden[-1], attentions[-1])
        inputs, states, last, weights = torch.autograd.grad(f.sum(), wanted)
    row = read_position(last, (weights,))
    mean = attentions[-1].detach().mean(dim=1)
    attention = mean[torch.arange(len(mean), device=mean.device), row]
    at_inputs, at_states = (_array(gradient.norm(dim=-1)) for gradient in (inputs, states))
    return _Seen(_array(attention), at_inputs, at_states, h.detach(), one_query)


def _has_one_query(network: Any) -> bool:
    return bool(getattr(network.config, "has_one_query", False))


def _on_states(network: Any, batch: Batch, asked: Sequence[Ints]) -> list[Floats]:
    """Return [positions, tokens] for each text: norms of the gradient of |h_p| at embeddings.

    A text is repeated once per position and row p asks for h_p, so that one backward pass serves
    all rows: 2.6 times as fast as a pass per position at 20 tokens.
    """
    index = -1 if _has_one_query(network) else -2
    width = batch.ids.shape[1]
    norms = [np.zeros((len(places), width)) for places in asked]
    pairs = [(row, number) for row, places in enumerate(asked) for number in range(len(places))]
    for start in range(0, len(pairs), ROWS):
        part = pairs[start : start + ROWS]
        rows = torch.tensor([row for row, _ in part], device=batch.ids.device)
        places = torch.tensor([int(asked[row][n]) for row, n in part], device=batch.ids.device)
        longest = int(batch.attention[rows].sum(dim=1).max())
        cut = slice(0, longest)  # texts of a part may be shorter than the longest of the batch
        with torch.enable_grad(), embedding_leaf(network) as leaf:
            out = network(
                **inputs_of(
                    network,
                    batch.ids[rows, cut],
                    batch.types[rows, cut],
                    batch.attention[rows, cut],
                ),
                output_hidden_states=True,
            )
            h = out.hidden_states[index][torch.arange(len(part)), places]
            (gradient,) = torch.autograd.grad(h.norm(dim=-1).sum(), leaf[0])
        sizes = _array(gradient.norm(dim=-1))
        for (row, number), values in zip(part, sizes, strict=True):
            norms[row][number, cut] = values
    return norms


def _input_changes(
    session: Session, encodings: Sequence[Encoding], predicted: Sequence[Prediction]
) -> list[Floats]:
    """Return |f - f without word i| of each text (Eq. 6), words deleted."""
    inputs, owners = [], []
    for row, encoding in enumerate(encodings):
        for keep in _leave_one_out(encoding):
            inputs.append(erased_rows(encoding, keep, "delete", 0))
            owners.append(row)
    outputs = evaluate_inputs(
        session.engine,
        inputs,
        [encodings[row] for row in owners],
        [predicted[row].target for row in owners],
    )
    session.engine.forget()
    full = np.exp([predicted[row].log_probability for row in owners])
    changes = _without_noise(np.abs(outputs.probability - full))
    counts = [int(encoding.erasable.sum()) for encoding in encodings]
    return np.split(changes, np.cumsum(counts)[:-1])


def _leave_one_out(encoding: Encoding) -> Iterator[Bools]:
    for place in np.flatnonzero(encoding.erasable):
        keep = np.ones(len(encoding.ids), dtype=bool)
        keep[place] = False
        yield keep


@torch.no_grad()
def _state_changes(
    network: Any, seen: _Seen, row: int, erasable: Bools, target: int
) -> Floats | None:
    """Return |f - f without h_i| of erasable tokens: its weight goes to the others.

    None for networks whose last attention cannot be asked again.
    """
    if not seen.one_query:
        return None
    length = len(erasable)
    h = seen.h[row, :length]
    # The first row leaves out nothing: computed beside the others, it has the same rounding.
    there = torch.ones(length + 1, length, dtype=torch.bool, device=h.device)
    there[1:].fill_diagonal_(False)
    logits, _ = network.decide(h.expand(length + 1, -1, -1), there)
    f = _array(logits.softmax(dim=-1)[:, target])
    return _without_noise(np.abs(f[1:] - f[0]))[erasable]


def _without_noise(changes: Floats) -> Floats:
    return np.where(changes < TINY, 0.0, changes)


def _array(values: torch.Tensor) -> Floats:
    array: Floats = values.detach().to("cpu", torch.float64).numpy()
    return array
