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
from collections.abc import Sequence
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
"""Padded tokens explained together, unless the batch itself has more."""


def max_sensitivity(
    model: Model, explainer: Explainer, batch: Batch, radius: float = 0.02, samples: int = 10
) -> list[float | None]:
    """Return each example's largest relative change of the scores under random perturbations.

    Yeh et al. 2019, Definition 1, as captum's `sensitivity_max` estimates it: the largest of
    `samples` values of |scores - perturbed scores| / |scores|, Euclidean norms over the tokens
    that may be erased. Perturbations are uniform within `radius` in every coordinate, one per
    distinct token of the text; special tokens keep their embeddings. They come from the
    example's seed by a stream of their own. Target, seed and all else stay, so an explainer
    that does not look at the network has exactly 0. None where all scores are 0. An explainer
    that tokenises the text by itself is not reached; the model's meter is not charged.
    """
    from captum.metrics import sensitivity_max

    if samples < 1 or not 0 <= radius < math.inf:
        raise FaithbenchError(
            f"max_sensitivity: asked for {samples} samples of radius {radius}; "
            "give at least 1, and a radius of 0 or more"
        )
    grown, ids = perturbed_words(model, batch, radius, samples)
    asked = _Asked(Session(grown), ids, explainer, batch)
    changes = sensitivity_max(
        asked.scores,
        batch.ids,
        perturb_func=asked.perturb,
        n_perturb_samples=samples,
        max_examples_per_batch=len(batch.ids) * min(max(1, TOKENS // batch.ids.numel()), samples),
    )
    values = [
        float(value) if scored else None
        for value, scored in zip(changes, asked.scored or (), strict=True)
    ]
    if not all(value is None or math.isfinite(value) for value in values):
        raise FaithbenchError(
            f"max_sensitivity: {type(explainer).__name__} gave a score that is not finite for a "
            "perturbed input; scores must be numbers"
        )
    return values


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
    # A deep copy that finds a parameter in its memo takes it as it is: all weights are shared.
    shared: dict[int, Any] = {id(p): p for p in model.network.parameters()}
    network = copy.deepcopy(model.network, shared)
    longer = torch.nn.Parameter(torch.cat(added), requires_grad=False)
    words_before = _embedding(network).weight
    for module in network.modules():  # a decoder looks words up once more, in a module of its own
        if isinstance(module, torch.nn.Embedding) and module.weight is words_before:
            module.weight = longer
    tokenizer = _speller(model.tokenizer, np.concatenate(originals))
    # A new model has no twins yet: those of the old one have the old embeddings.
    return replace(model, network=network, tokenizer=tokenizer, _twins={}), ids


@dataclass
class _Asked:
    """What captum asks for: an input's perturbed copies, sample after sample, and their scores."""

    session: Session
    ids: torch.Tensor
    explainer: Explainer
    batch: Batch
    used: int = 0
    scored: Sequence[bool] | None = None

    def perturb(self, inputs: torch.Tensor) -> torch.Tensor:
        """Return the next copies; captum repeats each example as often as it wants some."""
        first, self.used = self.used, self.used + len(inputs) // len(self.batch.ids)
        return self.ids[first : self.used].transpose(0, 1).flatten(0, 1)

    def scores(self, inputs: torch.Tensor | tuple[torch.Tensor]) -> tuple[torch.Tensor]:
        """Return the scores of inputs, those of tokens that may not be erased as 0."""
        ids = inputs[0] if isinstance(inputs, tuple) else inputs
        part = _with_ids(self.batch, ids)
        with torch.enable_grad():  # captum calls without
            scores_of_all = explain(self.session, self.explainer, part).detach().double()
        self.session.drop_passes()
        known = scores_of_all.masked_fill(~part.erasable.to(scores_of_all.device), 0)
        if self.scored is None:  # captum begins with the input as it is
            self.scored = (known != 0).any(dim=1).tolist()
        return (known,)  # a bare tensor would be read as a tuple of its rows


def _with_ids(batch: Batch, ids: torch.Tensor) -> Batch:
    """Return a batch of as many copies of each example, side by side, as there are ids for."""
    each = len(ids) // len(batch.ids)
    table = ids.cpu().numpy()
    encodings = [encoding for encoding in batch.encodings for _ in range(each)]
    copies = [
        _respelt(encoding, table[row, : len(encoding.ids)])
        for row, encoding in enumerate(encodings)
    ]
    types, attention, erasable, targets = (
        t.repeat_interleave(each, dim=0)
        for t in (batch.types, batch.attention, batch.erasable, batch.targets)
    )
    seeds = tuple(seed for seed in batch.seeds for _ in range(each))
    return Batch(
        encodings=tuple(copies),
        ids=ids,
        types=types,
        attention=attention,
        erasable=erasable,
        targets=targets,
        seeds=seeds,
        output=batch.output,
        seed=batch.seed,
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
