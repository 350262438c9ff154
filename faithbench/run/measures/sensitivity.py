"""How far small changes of the word embeddings move an explainer's scores.

A perturbed input is the same text in words of its own: each token of it gets a new id, whose
embedding is the old one plus a small random vector. So a token keeps its perturbation wherever
an explainer moves it, and what an explainer puts in its place (mask, padding) is as it was;
white-box and black-box explainers are asked the same question. The new ids live in a copy of
the network that shares every other weight: the model itself, and what it caches, is not touched.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch, Encoding, Ints
from faithbench.explainers.protocol import Explainer
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.run.attribute import explain

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


TOKENS = 2048
"""Padded tokens of perturbed copies explained together, unless one text has more."""


@dataclass(frozen=True)
class Asked:
    """An explainer to perturb the inputs of, and its scores of them as they are, if known."""

    name: str
    explainer: Explainer
    scores: torch.Tensor | None = None


def max_sensitivity(
    model: Model, explainer: Explainer, batch: Batch, radius: float = 0.02, samples: int = 10
) -> list[float | None]:
    """Return each example's largest relative change of one explainer's scores."""
    asked = Asked(type(explainer).__name__, explainer)
    (values,) = max_sensitivities(model, [asked], batch, radius, samples)
    return values


def max_sensitivities(
    model: Model,
    explainers: Sequence[Asked],
    batch: Batch,
    radius: float = 0.02,
    samples: int = 10,
) -> list[list[float | None]]:
    """Return per explainer each example's largest relative change under random perturbations.

    Yeh et al. 2019, Definition 1, as captum's `sensitivity_max` estimates it: the largest of
    `samples` values of |scores - perturbed scores| / |scores|, Euclidean norms over the tokens
    that may be erased. Perturbations are uniform within `radius` in every coordinate, one per
    distinct token of the text; special tokens keep their embeddings. They come from the
    example's seed by a stream of their own. Target, seed and all else stay, so an explainer
    that does not look at the network has exactly 0. None where all scores are 0. An explainer
    that tokenises the text by itself is not reached; the model's meter is not charged.
    """
    if samples < 1 or not 0 <= radius < math.inf:
        raise FaithbenchError(
            f"max_sensitivity: asked for {samples} samples of radius {radius}; "
            "give at least 1, and a radius of 0 or more"
        )
    grown, ids = perturbed_words(model, batch, radius, samples)
    largest: list[list[float]] = [[0.0] * len(batch.ids) for _ in explainers]
    with Session(grown) as session:
        known = [
            _erasable_scores(session, asked.explainer, batch)
            if asked.scores is None
            else _masked(asked.scores, batch)
            for asked in explainers
        ]
        session.clear()
        sizes = [scores.norm(dim=1) for scores in known]
        for rows, copies in _copies(batch, ids):
            # Explainers share the passes and rows of a batch of perturbed copies.
            for asked, clean, size, found in zip(explainers, known, sizes, largest, strict=True):
                scores = _erasable_scores(session, asked.explainer, copies)
                moved = scores - clean[rows, : scores.shape[1]]
                changes = moved.norm(dim=1) / size[rows]
                for row, change in zip(rows, changes.tolist(), strict=True):
                    # Written so that NaN is kept: a maximum would lose it.
                    found[row] = found[row] if change <= found[row] else change
            session.clear()
    return [
        _checked(asked.name, values, size.tolist())
        for asked, values, size in zip(explainers, largest, sizes, strict=True)
    ]


def _checked(name: str, values: Sequence[float], sizes: Sequence[float]) -> list[float | None]:
    """Return the values, None where all scores are 0; refuse what is no number."""
    checked = [v if size != 0 else None for v, size in zip(values, sizes, strict=True)]
    if not all(value is None or math.isfinite(value) for value in checked):
        raise FaithbenchError(
            f"max_sensitivity: {name} gave a score that is not finite for a "
            "perturbed input; scores must be numbers"
        )
    return checked


def draw_perturbations(seed: int, samples: int, tokens: int, width: int) -> torch.Tensor:
    """Draw [samples, tokens, width] numbers from -1 to 1, the same on every machine."""
    stream = int.from_bytes(hashlib.sha256(f"sensitivity:{seed}".encode()).digest()[:7])
    draw = torch.Generator("cpu").manual_seed(stream)
    shape = (samples, tokens, width)
    return 2 * torch.rand(shape, generator=draw, dtype=torch.float32, device="cpu") - 1


def perturbed_words(
    model: Model, batch: Batch, radius: float, samples: int
) -> tuple[Model, torch.Tensor]:
    """Return a model with perturbed copies of the batch's words, and the inputs made of them.

    The inputs are token ids [samples, examples, tokens]. The words of an example are its
    distinct token ids in ascending order, special tokens left out.
    """
    table = _embedding(model.network).weight.detach()
    kept = [*model.tokenizer.all_special_ids, int(model.network.config.pad_token_id)]
    ids = batch.ids.repeat(samples, 1, 1)
    added, originals = [table], [np.arange(len(table))]
    size = len(table)
    for row, (encoding, seed) in enumerate(zip(batch.encodings, batch.seeds, strict=True)):
        positions = np.flatnonzero(~np.isin(encoding.ids, kept))
        words, which = np.unique(encoding.ids[positions], return_inverse=True)
        noise = draw_perturbations(seed, samples, len(words), table.shape[1]).to(table)
        embeddings = table[torch.tensor(words, device=table.device)]
        added.append((embeddings + radius * noise).flatten(0, 1))
        originals.append(np.tile(words, samples))
        # Id of word w of sample s: this example's block starts at `size`, one run of words per
        # sample, in the order in which their embeddings are added to the table.
        new = size + len(words) * np.arange(samples)[:, None] + which[None, :]
        ids[:, row, torch.tensor(positions, device=ids.device)] = torch.tensor(
            new, device=ids.device
        )
        size += samples * len(words)
    longer = torch.cat(added)
    tokenizer = _speller(model.tokenizer, np.concatenate(originals))
    # Twins that the model has are grown too: made anew, they would copy every weight. Words are
    # moved first, since a twin may lie where the model's own device lacks its type.
    twins = {
        dtype: _grown(twin, longer.to(twin.device).to(dtype))
        for dtype, twin in model._twins.items()
    }
    network = _grown(model.network, longer)
    # A network that lives for one chunk is not worth compiling.
    grown = replace(model, network=network, tokenizer=tokenizer, compiled=False, _twins=twins)
    return grown, ids


def _grown(network: PreTrainedModel, table: torch.Tensor) -> PreTrainedModel:
    """Return the network with another table of words; it shares every other weight."""
    # A deep copy that finds a parameter in its memo takes it as it is.
    shared: dict[int, Any] = {id(p): p for p in network.parameters()}
    grown = copy.deepcopy(network, shared)
    longer = torch.nn.Parameter(table, requires_grad=False)
    words_before = _embedding(grown).weight
    for module in grown.modules():  # a decoder looks words up once more, in a module of its own
        if isinstance(module, torch.nn.Embedding) and module.weight is words_before:
            module.weight = longer
    return grown


def _erasable_scores(session: Session, explainer: Explainer, batch: Batch) -> torch.Tensor:
    return _masked(explain(session, explainer, batch), batch)


def _masked(scores: torch.Tensor, batch: Batch) -> torch.Tensor:
    """Return scores in float64, those of tokens that may not be erased as 0."""
    # On the CPU: some devices have no float64.
    return scores.detach().cpu().double().masked_fill(~batch.erasable.cpu(), 0)


def _copies(batch: Batch, ids: torch.Tensor) -> Iterator[tuple[list[int], Batch]]:
    """Yield the perturbed copies of all examples in batches, with the example of each row.

    A batch has at most `TOKENS` padded tokens, or one row, and is no wider than it must be.
    """
    lengths = [len(encoding.ids) for encoding in batch.encodings]
    waiting = [(row, sample) for row in range(len(lengths)) for sample in range(len(ids))]
    while waiting:
        width, count = 0, 0
        for row, _ in waiting:
            wider = max(width, lengths[row])
            if count and (count + 1) * wider > TOKENS:
                break
            width, count = wider, count + 1
        taken, waiting = waiting[:count], waiting[count:]
        rows, samples = [row for row, _ in taken], [sample for _, sample in taken]
        part = ids[samples, rows, :width]
        table = part.cpu().numpy()
        yield (
            rows,
            replace(
                batch,
                encodings=tuple(
                    _respelt(batch.encodings[row], table[place, : lengths[row]])
                    for place, row in enumerate(rows)
                ),
                ids=part,
                types=batch.types[rows, :width],
                attention=batch.attention[rows, :width],
                erasable=batch.erasable[rows, :width],
                targets=batch.targets[rows],
                seeds=tuple(batch.seeds[row] for row in rows),
            ),
        )


def _respelt(encoding: Encoding, ids: Ints) -> Encoding:
    """Return an encoding with other token ids; the same tokens in the rows of other choices too."""
    new = dict(zip(encoding.ids.tolist(), ids.tolist(), strict=True))
    others = tuple(
        replace(other, ids=np.array([new.get(i, i) for i in other.ids.tolist()], dtype=np.int64))
        for other in encoding.others
    )
    return replace(encoding, ids=ids, others=others)


def _embedding(network: PreTrainedModel) -> Any:
    table: Any = network.get_input_embeddings()
    if not isinstance(getattr(table, "weight", None), torch.nn.Parameter):
        raise FaithbenchError(
            f"max_sensitivity: a {network.config.model_type} model has no table of word "
            "embeddings to perturb; leave this metric out"
        )
    return table


def _speller(tokenizer: PreTrainedTokenizerBase, originals: Ints) -> PreTrainedTokenizerBase:
    """Return a tokenizer that spells new ids like the words they stand for."""
    speller: Any = copy.copy(tokenizer)

    def back(ids: Any) -> Any:
        return originals[np.asarray(ids)].tolist()

    for name in ("convert_ids_to_tokens", "decode"):
        spell = getattr(tokenizer, name)
        setattr(speller, name, lambda ids, *a, spell=spell, **k: spell(back(ids), *a, **k))
    result: PreTrainedTokenizerBase = speller
    return result
