"""Kernel SHAP: exact on short texts, complete on all, against the textbook and captum."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from faithbench.explainers.perturbation import ask
from faithbench.explainers.surrogate import KernelShap, draw_coalitions, fit_shapley
from faithbench.models.session import Session
from tests.explainers.test_perturbation import additive_model, logit_model
from tests.explainers.test_surrogate import LONG, TEXTS, drop_of_all, every_mask, game
from tests.support.architectures import MODELS, reference_batch


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


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_kernel_shap_is_exact_on_short_texts(
    n: int, architecture: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture, 3)
    batch = batch_of(model, [" ".join(LONG.split()[:n])], [2])
    expected = shapley(n, game(model, batch))
    found = KernelShap()(Session(model), batch)[0, 1:-1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
    assert abs(found.sum() - drop_of_all(model, batch, 0)) < 1e-12


@pytest.mark.parametrize("samples", [2, 3, 64, 256])
def test_kernel_shap_is_complete(samples: int, tiny_model: Any, batch_of: Any) -> None:
    """The scores sum to f(x) - f(all masked), however few coalitions are drawn."""
    model = tiny_model("bert")
    long = " ".join(f"w{i}" for i in range(60))
    batch = batch_of(model, [*TEXTS, LONG, long], [0, 1, 0, 1, 1, 0])
    found = KernelShap(samples=samples)(Session(model), batch).sum(dim=1)
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
    found = KernelShap(samples=200, ridge=ridge)(Session(model), batch)[0, 1:-1]
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
        found = KernelShap(samples=samples)(Session(model), batch)[0, 1:-1].numpy()
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
    found = fit_shapley(keep, ask(Session(logit_model()), batch, [keep])[0], weights, 1.0)
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
