"""LIME and SHAP: by enumeration, against sklearn, captum and shap, and per example."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.erasure import erase
from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.partition import PartitionShap
from faithbench.explainers.perturbation import ask
from faithbench.explainers.surrogate import KernelShap, Lime, draw_masks, nearness
from faithbench.models.encoding import collate
from faithbench.models.engine import Engine
from faithbench.models.model import Model
from faithbench.models.session import Session
from tests.explainers.test_perturbation import additive_model, one
from tests.support.architectures import ARCHITECTURES

# shap would compile its loops for ten seconds; they are as right without.
os.environ.setdefault("NUMBA_DISABLE_JIT", "1")

TEXTS = [
    "good film",
    "the plot is not very dull , and the film is great .",
    "a badly plot .",
    "bad",
]
LONG = "the plot is not very dull , and the film is"  # 11 tokens
EXPLAINERS = [Lime(), KernelShap(), PartitionShap()]


@pytest.fixture(params=EXPLAINERS, ids=["lime", "kernel-shap", "partition-shap"])
def explainer(request: pytest.FixtureRequest) -> Any:
    return request.param


def every_mask(n: int) -> np.ndarray:
    return np.array(list(itertools.product([False, True], repeat=n)))


def game(model: Model, batch: Batch, row: int = 0) -> Callable[[np.ndarray], float]:
    """Answer any keep-mask of one example from a table of all of them."""
    single = one(model, batch, row)
    masks = every_mask(int(single.encodings[0].erasable.sum()))
    values = np.exp(ask(Session(model), single, [masks])[0])
    table = {mask.tobytes(): value for mask, value in zip(masks, values, strict=True)}
    return lambda mask: table[np.asarray(mask, dtype=bool).tobytes()]


def drop_of_all(model: Model, batch: Batch, row: int) -> float:
    single = one(model, batch, row)
    n = int(single.encodings[0].erasable.sum())
    none, full = np.exp(ask(Session(model), single, [np.array([[False] * n, [True] * n])])[0])
    return float(full - none)


# What all three promise.


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_example_is_explained_alone(
    explainer: Any, architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    """Company and padding change nothing; special tokens and padding have no score."""
    model = tiny_model(architecture, 3)
    batch = batch_of(model, TEXTS, [0, 1, 2, 1])
    session = Session(model)
    session.clear()
    together = explainer(session, batch)
    assert together.shape == batch.ids.shape
    assert not together[~batch.erasable].any()
    assert together[batch.erasable].all()
    for row, encoding in enumerate(batch.encodings):
        alone = explainer(session, one(model, batch, row))[0]
        np.testing.assert_allclose(together[row, : len(encoding.ids)], alone, rtol=0, atol=1e-9)


def test_only_evidence_is_erased(explainer: Any, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    for evidence, tokens in (("text", [1, 2, 3]), ("text_b", [5, 6])):
        batch = batch_of(model, ["the good film || dull plot"], [1], evidence)
        found = explainer(Session(model), batch)
        assert found[0].nonzero()[:, 0].tolist() == tokens


@pytest.mark.parametrize("kind", [Lime, KernelShap])
def test_draws_come_from_the_examples_seed(kind: Any, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    encodings = batch_of(model, [LONG]).encodings * 3
    found = kind(samples=64)(Session(model), collate(model, encodings, [1, 1, 1], [7, 8, 7]))
    assert torch.equal(found[0], found[2])
    assert (found[0] - found[1]).abs().max() > 1e-4


@pytest.mark.parametrize(("kind", "most"), [(Lime, 64), (KernelShap, 66)])
def test_all_rows_go_in_one_call(
    kind: Any, most: int, tiny_model: Any, batch_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, [LONG, LONG + " plot", "good film"])
    calls, answer = [], Engine.log_probabilities

    def spy(self: Engine, rows: Any, output: str = "logits") -> Any:
        calls.append(len(rows))
        return answer(self, rows, output)

    monkeypatch.setattr(Engine, "log_probabilities", spy)
    session = Session(model)
    before = session.meter.total
    kind(samples=64)(session, batch)
    # Two words have four masks; KernelShap asks for each once, LIME for some of them often.
    assert calls == [2 * most + (most if kind is Lime else 4)]
    assert session.meter.since(before).forwards <= 2 * most + 4


# LIME.


def test_lime_finds_the_weights_of_a_bag_of_words(tokenizer: Any, batch_of: Any) -> None:
    weights = {"good": 0.2, "bad": -0.1, "great": 0.05, "not": -0.15, "film": 0.01}
    model = additive_model(tokenizer, weights)
    words = ["film", "great", "a", "not", "bad", "the", "good"]
    expected = [weights.get(word, 0.0) for word in words]
    batch = batch_of(model, [" ".join(words)], targets=[1])
    exact = Lime(ridge=1e-12)(Session(model), batch)[0, 1:-1]
    np.testing.assert_allclose(exact, expected, rtol=0, atol=1e-9)
    found = Lime()(Session(model), batch)[0, 1:-1].numpy()
    order = np.argsort(expected)
    assert (np.diff(found[order])[np.diff(np.array(expected)[order]) > 0] > 0).all()


def test_lime_is_weighted_ridge_regression(tiny_model: Any, batch_of: Any) -> None:
    from sklearn.linear_model import Ridge
    from sklearn.metrics.pairwise import cosine_distances

    model = tiny_model("bert")
    batch = batch_of(model, TEXTS, [1, 0, 1, 0])
    found = Lime(samples=100, width=0.4, ridge=0.7)(Session(model), batch)
    for row, encoding in enumerate(batch.encodings):
        n = int(encoding.erasable.sum())
        keep = draw_masks(n, 100, np.random.default_rng(batch.seeds[row]))
        distance = cosine_distances(keep.astype(float), np.ones((1, n)))[:, 0]
        weights = np.exp(-(distance**2) / 0.4**2)
        np.testing.assert_allclose(nearness(keep, 0.4), weights, rtol=0, atol=1e-12)
        values = np.exp(ask(Session(model), one(model, batch, row), [keep])[0])
        expected = Ridge(alpha=0.7).fit(keep, values, sample_weight=weights).coef_
        np.testing.assert_allclose(found[row, 1 : n + 1], expected, rtol=0, atol=1e-10)


def test_captums_lime_with_the_same_masks(tiny_model: Any, batch_of: Any) -> None:
    """captum's LimeBase, given our masks, kernel and ridge; it computes in float32."""
    from captum._utils.models.linear_model import SkLearnRidge
    from captum.attr import LimeBase

    model = tiny_model("bert")
    batch = batch_of(model, [LONG], [1])
    (encoding,) = batch.encodings
    keeps = draw_masks(11, 256, np.random.default_rng(batch.seeds[0]))
    replay = iter(torch.tensor(keeps[:, None]))

    def masked(keep: torch.Tensor, _: torch.Tensor, **__: Any) -> torch.Tensor:
        row = erase(encoding, keep[0].bool().numpy(), "mask", model.tokenizer.mask_token_id)
        return torch.tensor(row[0])[None]

    library = LimeBase(
        lambda ids: model.network(ids).logits.softmax(dim=-1),
        SkLearnRidge(alpha=1.0),
        similarity_func=lambda _, __, keep, **___: float(nearness(keep.numpy(), 0.25)[0]),
        perturb_func=lambda _, **__: next(replay),
        perturb_interpretable_space=True,
        from_interp_rep_transform=masked,
        to_interp_rep_transform=None,
    )
    expected = library.attribute(batch.ids, target=1, n_samples=256, perturbations_per_eval=64)
    found = Lime()(Session(model), batch)[0, 1:-1]
    np.testing.assert_allclose(found, expected[0], rtol=0, atol=1e-6)


def test_masks_keep_every_number_of_tokens() -> None:
    keep = draw_masks(5, 2000, np.random.default_rng(0))
    assert keep.shape == (2000, 5) and keep[0].all()
    counted = np.bincount(keep[1:].sum(axis=1), minlength=6)
    assert counted[5] == 0 and (abs(counted[:5] - 400) < 80).all()
    assert (abs(keep[1:].mean(axis=0) - 0.4) < 0.05).all()


def test_nearness_by_hand() -> None:
    keep = np.array([[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)
    # Cosine distances 0, 1 - 1 / 2 and 1; divided by 0.25 and squared.
    np.testing.assert_allclose(nearness(keep, 0.25), np.exp([0, -4, -16]), rtol=1e-12)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (Lime, {"samples": 1}, "lime: samples is at least 2, found 1"),
        (Lime, {"width": 0.0}, "lime: width is above 0, found 0.0"),
        (Lime, {"ridge": math.nan}, "lime: ridge is above 0, found nan"),
        (KernelShap, {"samples": 0}, "kernel-shap: samples is at least 2, found 0"),
        (KernelShap, {"ridge": -1.0}, "kernel-shap: ridge is at least 0, found -1.0"),
        (PartitionShap, {"evaluations": 3}, "partition-shap: evaluations is at least 4, found 3"),
    ],
)
def test_settings_that_make_no_sense(kind: Any, settings: Any, message: str) -> None:
    with pytest.raises(FaithbenchError) as error:
        kind(**settings)
    assert str(error.value) == message
