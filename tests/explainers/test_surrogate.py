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

from explainers import ARCHITECTURES, MODELS, reference_batch
from explainers.test_perturbation import additive_model, logit_model, one
from faithbench.encoding import collate
from faithbench.erasure import erase
from faithbench.errors import FaithbenchError
from faithbench.explainers.partition import PartitionShap
from faithbench.explainers.perturbation import ask
from faithbench.explainers.surrogate import (
    KernelShap,
    Lime,
    draw_coalitions,
    draw_masks,
    fit_shapley,
    nearness,
)
from faithbench.forward import Engine, engine_of
from faithbench.models import Model
from faithbench.types import Batch

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
    values = np.exp(ask(model, single, [masks])[0])
    table = {mask.tobytes(): value for mask, value in zip(masks, values, strict=True)}
    return lambda mask: table[np.asarray(mask, dtype=bool).tobytes()]


def shapley(n: int, value: Callable[[np.ndarray], float]) -> np.ndarray:
    """The definition, subset by subset."""
    scores = np.zeros(n)
    for mask in every_mask(n):
        size = int(mask.sum())
        for token in np.flatnonzero(~mask):
            more = mask.copy()
            more[token] = True
            weight = math.factorial(size) * math.factorial(n - size - 1) / math.factorial(n)
            scores[token] += weight * (value(more) - value(mask))
    return scores


def drop_of_all(model: Model, batch: Batch, row: int) -> float:
    single = one(model, batch, row)
    n = int(single.encodings[0].erasable.sum())
    none, full = np.exp(ask(model, single, [np.array([[False] * n, [True] * n])])[0])
    return float(full - none)


# What all three promise.


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_each_example_is_explained_alone(
    explainer: Any, architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    """Company and padding change nothing; special tokens and padding have no score."""
    model = tiny_model(architecture, 3)
    batch = batch_of(model, TEXTS, [0, 1, 2, 1])
    engine_of(model).forget()
    together = explainer(model, batch)
    assert together.shape == batch.ids.shape
    assert not together[~batch.erasable].any()
    assert together[batch.erasable].all()
    for row, encoding in enumerate(batch.encodings):
        alone = explainer(model, one(model, batch, row))[0]
        np.testing.assert_allclose(together[row, : len(encoding.ids)], alone, rtol=0, atol=1e-9)


def test_only_evidence_is_erased(explainer: Any, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    for evidence, tokens in (("text", [1, 2, 3]), ("text_b", [5, 6])):
        batch = batch_of(model, ["the good film || dull plot"], [1], evidence)
        found = explainer(model, batch)
        assert found[0].nonzero()[:, 0].tolist() == tokens


@pytest.mark.parametrize("kind", [Lime, KernelShap])
def test_draws_come_from_the_examples_seed(kind: Any, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    encodings = batch_of(model, [LONG]).encodings * 3
    found = kind(samples=64)(model, collate(model, encodings, [1, 1, 1], [7, 8, 7]))
    assert torch.equal(found[0], found[2])
    assert (found[0] - found[1]).abs().max() > 1e-4


@pytest.mark.parametrize(("kind", "most"), [(Lime, 64), (KernelShap, 66)])
def test_all_rows_go_in_one_call(
    kind: Any, most: int, tiny_model: Any, batch_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, [LONG, LONG + " plot", "good film"])
    calls, answer = [], Engine.log_probabilities

    def spy(self: Engine, rows: Any, head: str = "logits") -> Any:
        calls.append(len(rows))
        return answer(self, rows, head)

    monkeypatch.setattr(Engine, "log_probabilities", spy)
    before = model.meter.total
    kind(samples=64)(model, batch)
    # Two words have four masks; KernelShap asks for each once, LIME for some of them often.
    assert calls == [2 * most + (most if kind is Lime else 4)]
    assert model.meter.since(before).forwards <= 2 * most + 4


# LIME.


def test_lime_finds_the_weights_of_a_bag_of_words(tokenizer: Any, batch_of: Any) -> None:
    weights = {"good": 0.2, "bad": -0.1, "great": 0.05, "not": -0.15, "film": 0.01}
    model = additive_model(tokenizer, weights)
    words = ["film", "great", "a", "not", "bad", "the", "good"]
    expected = [weights.get(word, 0.0) for word in words]
    batch = batch_of(model, [" ".join(words)], targets=[1])
    exact = Lime(ridge=1e-12)(model, batch)[0, 1:-1]
    np.testing.assert_allclose(exact, expected, rtol=0, atol=1e-9)
    found = Lime()(model, batch)[0, 1:-1].numpy()
    order = np.argsort(expected)
    assert (np.diff(found[order])[np.diff(np.array(expected)[order]) > 0] > 0).all()


def test_lime_is_weighted_ridge_regression(tiny_model: Any, batch_of: Any) -> None:
    from sklearn.linear_model import Ridge
    from sklearn.metrics.pairwise import cosine_distances

    model = tiny_model("bert")
    batch = batch_of(model, TEXTS, [1, 0, 1, 0])
    found = Lime(samples=100, width=0.4, ridge=0.7)(model, batch)
    for row, encoding in enumerate(batch.encodings):
        n = int(encoding.erasable.sum())
        keep = draw_masks(n, 100, np.random.default_rng(batch.seeds[row]))
        distance = cosine_distances(keep.astype(float), np.ones((1, n)))[:, 0]
        weights = np.exp(-(distance**2) / 0.4**2)
        np.testing.assert_allclose(nearness(keep, 0.4), weights, rtol=0, atol=1e-12)
        values = np.exp(ask(model, one(model, batch, row), [keep])[0])
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
    found = Lime()(model, batch)[0, 1:-1]
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


# Kernel SHAP.


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_kernel_shap_is_exact_on_short_texts(
    n: int, architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture, 3)
    batch = batch_of(model, [" ".join(LONG.split()[:n])], [2])
    expected = shapley(n, game(model, batch))
    found = KernelShap()(model, batch)[0, 1:-1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert abs(found.sum() - drop_of_all(model, batch, 0)) < 1e-12


@pytest.mark.parametrize("samples", [2, 3, 64, 256])
def test_kernel_shap_is_complete(samples: int, tiny_model: Any, batch_of: Any) -> None:
    """The scores sum to f(x) - f(all masked), however few coalitions are drawn."""
    model = tiny_model("bert")
    long = " ".join(f"w{i}" for i in range(60))
    batch = batch_of(model, [*TEXTS, LONG, long], [0, 1, 0, 1, 1, 0])
    found = KernelShap(samples=samples)(model, batch).sum(dim=1)
    expected = [drop_of_all(model, batch, row) for row in range(6)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("words", "ridge"), [("good film bad film", 1.0), (LONG, 0.0)])
def test_kernel_shap_of_a_bag_of_words(
    words: str, ridge: float, tokenizer: Any, batch_of: Any
) -> None:
    """The weights themselves, 0 for a word the model ignores, the same for the same word."""
    weights = {"good": 0.2, "bad": -0.1, "the": 0.05, "is": -0.02, "not": -0.07}
    model = additive_model(tokenizer, weights)
    batch = batch_of(model, [words], targets=[1])
    found = KernelShap(samples=200, ridge=ridge)(model, batch)[0, 1:-1]
    expected = [weights.get(word, 0.0) for word in words.split()]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_symmetric_tokens_share_alike() -> None:
    """Tokens 0 and 1 count only together; token 2 never does."""
    keep, weights = draw_coalitions(3, 256, np.random.default_rng(0))
    found = fit_shapley(keep, (keep[:, 0] & keep[:, 1]).astype(float), weights, 1.0)
    np.testing.assert_allclose(found, [0.5, 0.5, 0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("ridge", [0.0, 1.0])
def test_the_constrained_regression_has_its_textbook_solution(ridge: float) -> None:
    """Lagrange: minimise sum w (z s - v)^2 + ridge |s - equal|^2 with the sum of s held."""
    draw = np.random.default_rng(0)
    keep, weights = draw_coalitions(12, 100, draw)
    values = draw.normal(size=len(keep))
    total = values[1] - values[0]
    x, w = keep[2:].astype(float), weights / weights.mean()
    system = np.ones((13, 13))
    system[:12, :12] = (x.T * w) @ x + ridge * np.eye(12)
    system[12, 12] = 0
    wanted = np.append((x.T * w) @ (values[2:] - values[0]) + ridge * total / 12, total)
    expected = np.linalg.solve(system, wanted)[:12]
    found = fit_shapley(keep, values, weights, ridge)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_kernel_shap_converges(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, ["good " + LONG], [1])
    expected = shapley(12, game(model, batch))
    spread, errors = expected.std(), []
    for samples in (64, 256, 1024, 2048, 4094):
        found = KernelShap(samples=samples)(model, batch)[0, 1:-1].numpy()
        errors.append(float(np.sqrt(((found - expected) ** 2).mean()) / spread))
    assert errors == sorted(errors, reverse=True)
    assert errors[1] < 0.05 and errors[3] < 0.01 and errors[4] < 1e-9


@pytest.mark.parametrize("name", ["s1_len8", "s2_len12", "s3_len24", "s5_pair17"])
def test_captums_kernel_shap_agrees_as_far_as_256_draws_can(name: str, golden: Any) -> None:
    """captum's stored values of the logit; it masks [CLS] and [SEP] too."""
    with np.load(MODELS.parent / "captum.npz") as file:
        expected = file[f"{name}_nl2/kernelshap_s0_n256"]
        target = int(file[f"{name}_nl2/target"])
    batch = reference_batch(golden, name, 2, targets=[target])
    keep, weights = draw_coalitions(len(expected), 256, np.random.default_rng(0))
    found = fit_shapley(keep, ask(logit_model(), batch, [keep])[0], weights, 1.0)
    assert abs(found.sum() - expected.sum()) < 1e-4
    assert np.corrcoef(found, expected)[0, 1] > 0.8


@pytest.mark.parametrize("n", [2, 3, 6])
def test_all_coalitions_have_the_shapley_kernel(n: int) -> None:
    keep, weights = draw_coalitions(n, 2**n - 2, np.random.default_rng(0))
    assert keep[:2].tolist() == [[False] * n, [True] * n]
    assert len(np.unique(keep, axis=0)) == len(keep) == 2**n
    size = keep[2:].sum(axis=1)
    expected = [(n - 1) / (math.comb(n, k) * k * (n - k)) for k in size.tolist()]
    np.testing.assert_allclose(weights, expected, rtol=1e-12)


@pytest.mark.parametrize(("n", "samples"), [(12, 256), (40, 256), (300, 64), (9, 3)])
def test_drawn_coalitions_come_in_pairs(n: int, samples: int) -> None:
    keep, weights = draw_coalitions(n, samples, np.random.default_rng(0))
    drawn = keep[2:]
    assert len(drawn) == len(weights) == samples - samples % 2
    assert sorted(mask.tobytes() for mask in drawn) == sorted(mask.tobytes() for mask in ~drawn)
    sizes = np.arange(1, n)
    assert weights.sum() == pytest.approx(((n - 1) / (sizes * (n - sizes))).sum())


def test_ridge_steadies_texts_of_half_as_many_tokens_as_samples() -> None:
    """Half the coalitions are complements, so 128 tokens of 256 samples are barely determined."""
    draw = np.random.default_rng(0)
    weights = draw.normal(size=128)
    keep, kernel = draw_coalitions(128, 256, draw)
    values = np.tanh(keep @ weights / 8 + 0.3 * np.sin(7 * keep @ draw.normal(size=128)))
    plain, steady = (fit_shapley(keep, values, kernel, ridge) for ridge in (0.0, 1.0))
    agree = [np.corrcoef(scores, weights)[0, 1] for scores in (plain, steady)]
    assert agree[0] < 0.4 and agree[1] > 0.6


# Partition SHAP.


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
