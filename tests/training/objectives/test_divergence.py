"""Divergence from another model: scipy's values, its gradient, and what training makes of it."""

from __future__ import annotations

import json
from dataclasses import replace
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon

from faithbench.core.errors import FaithbenchError
from faithbench.models.encoding import encode
from faithbench.models.model import Model, load_model
from faithbench.training.fit import fit
from faithbench.training.forward import forward, make_readable
from faithbench.training.items import TrainingItem, TrainingSet, collate_items
from faithbench.training.objectives import divergence as module
from faithbench.training.objectives.divergence import CAPTURES, Divergence, jensen_shannon
from faithbench.training.objectives.protocol import prepared
from faithbench.training.recipe import Recipe
from tests.support.training import label_splits, load_weights, save_base, silent

SCRATCH = Recipe(
    arch="bilstm", vectors="random", width=6, method="full", epochs=1, batch_size=4,
    learning_rate=1e-2, encoder_dropout=0.0,
)  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BiLSTM to differ from."""
    folder = tmp_path_factory.mktemp("divergence") / "base"
    fit(label_splits(), SCRATCH, folder, silent, device="cpu")
    return folder


def load(folder: Path) -> Model:
    return load_model(str(folder), labels=("no", "yes"), device="cpu")


def training_set(model: Model) -> TrainingSet:
    examples = label_splits().train.examples
    items = [TrainingItem(encode(model, example), (example.label,)) for example in examples]
    return TrainingSet(tuple(items), None, {})


def test_the_divergence_is_scipy_s() -> None:
    """The square of its distance, in nats; sparse rows and a padded column among them."""
    draw = np.random.default_rng(0)
    first, second = draw.dirichlet(np.ones(7), (2, 40))
    first[:20, :3], second[10:30, 2:5], first[:, 6], second[:, 6] = 0, 0, 0, 0
    first, second = (rows / rows.sum(axis=1, keepdims=True) for rows in (first, second))
    found = jensen_shannon(torch.tensor(first), torch.tensor(second))
    expected = jensenshannon(first, second, axis=1) ** 2
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_it_goes_from_0_to_ln_2() -> None:
    first = torch.tensor([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]], dtype=torch.float64)
    second = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.3, 0.7], [0.5, 0.5, 0.0]], dtype=torch.float64)
    half = (2 * (0.75 * log(4 / 3) + 0.25 * log(4)) - log(2)) / 2
    assert jensen_shannon(first, second).tolist() == pytest.approx([0, log(2), half], abs=1e-15)


def test_its_gradient_is_finite_at_0_and_that_of_differences_elsewhere() -> None:
    scores = torch.tensor([[0.3, -1.0, 0.8, 0.1]], dtype=torch.float64, requires_grad=True)
    other = torch.tensor([[0.0, 0.6, 0.4, 0.0]], dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda z: jensen_shannon(z.softmax(dim=1), other).sum(), scores)
    sparse = torch.tensor([[0.5, 0.5, 0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(jensen_shannon(sparse, other).sum(), sparse)
    # d/dp of -p ln p terms: (ln p - ln m) / 2 where p > 0.
    assert gradient[0, :2].tolist() == pytest.approx(
        [log(0.5 / 0.25) / 2, log(0.5 / 0.55) / 2], abs=1e-12
    )
    assert torch.isfinite(gradient).all()


def test_the_loss_is_ln_2_minus_the_mean_of_a_batch(
    base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the attention of each text alone, though the other model is asked in parts of 5."""
    monkeypatch.setattr(module, "TOGETHER", 5)
    model, other = load(base), load(base)
    model.network.query.weight.data *= -3
    data = training_set(model)
    loss: Any = prepared(Divergence(str(base), 0.5), model, data)
    batch = collate_items(model, data.items[3:9], None)
    found = loss(batch, forward(model, batch, CAPTURES))
    rows = []
    for item in data.items[3:9]:
        ids = torch.tensor(item.encoding.ids)[None]
        pair = [one.network(ids, output_attentions=True).attentions[0] for one in (model, other)]
        rows.append(jensenshannon(*(a[0, 0, 0].detach().double().numpy() for a in pair)) ** 2)
    assert min(rows) > 1e-3
    assert found.item() == pytest.approx(0.5 * (log(2) - np.mean(rows)), abs=1e-6)


def test_training_with_it_moves_attention_and_weight_0_changes_no_bit(
    base: Path, tmp_path: Path
) -> None:
    splits = label_splits()
    recipe = replace(SCRATCH, seed=1, epochs=4)
    fit(splits, recipe, tmp_path / "plain", silent, device="cpu")
    for name, weight in {"zero": 0, "much": 50}.items():
        told = replace(recipe, objectives=(f"divergence:model={base},weight={weight}",))
        fit(splits, told, tmp_path / name, silent, device="cpu")
    plain = load_weights(tmp_path / "plain")
    for key, value in load_weights(tmp_path / "zero").items():
        assert torch.equal(value, plain[key]), key
    left = {}
    for name in ("plain", "much"):
        model = load(tmp_path / name)
        data = training_set(model)
        loss: Any = prepared(Divergence(str(base)), model, data)
        batch = collate_items(model, data.items, None)
        left[name] = float(loss(batch, forward(model, batch, CAPTURES)))
    # Nothing is further from an attention than all of it on the word that has least.
    corners = [
        max(jensenshannon(theirs, corner) ** 2 for corner in np.eye(len(theirs)))
        for theirs in loss.theirs.values()
    ]
    floor = log(2) - np.mean(corners)
    assert floor < left["much"] < floor + 0.02 < floor + 0.1 < left["plain"] < log(2)


def test_a_card_names_the_weights_and_no_folder_of_this_machine(base: Path, tmp_path: Path) -> None:
    recipe = replace(SCRATCH, objectives=(f"divergence:model={base},weight=0.1",))
    card = fit(label_splits(), recipe, tmp_path / "out", silent, device="cpu")
    sha256 = json.loads((base / "card.json").read_text())["weights_sha256"]
    assert card["recipe"]["objectives"] == [
        {"name": "cross-entropy", "settings": {}},
        {
            "name": "divergence",
            "settings": {"model": "base", "model_sha256": sha256, "weight": 0.1},
        },
    ]
    for path in (tmp_path / "out").iterdir():
        assert str(base.parent).encode() not in path.read_bytes(), path.name


def test_the_other_model_must_be_there_and_read_the_same_words(base: Path, tmp_path: Path) -> None:
    model = load(base)
    data = training_set(model)
    with pytest.raises(FaithbenchError, match="divergence needs a model to differ from; give"):
        prepared(Divergence(), model, data)
    with pytest.raises(FaithbenchError, match="no-such-folder"):
        prepared(Divergence(str(tmp_path / "no-such-folder")), model, data)
    splits = label_splits()
    fewer = replace(splits.train, examples=splits.train.examples[:2])
    other = tmp_path / "other"
    fit(replace(splits, train=fewer), SCRATCH, other, silent, device="cpu")
    with pytest.raises(FaithbenchError, match="model 'other' reads other tokens than the one in"):
        prepared(Divergence(str(other)), model, data)


def test_it_has_to_be_prepared() -> None:
    nothing: Any = None
    with pytest.raises(FaithbenchError, match="divergence has to be prepared with its training"):
        Divergence("folder")(nothing, nothing)


def test_a_model_without_attention_is_refused(base: Path, tmp_path: Path) -> None:
    recipe = replace(SCRATCH, arch="cnn", objectives=(f"divergence:model={base}",))
    with pytest.raises(FaithbenchError, match="gives no attention"):
        fit(label_splits(), recipe, tmp_path / "out", silent, device="cpu")
    assert not (tmp_path / "out").exists(), "the folder is free for another try"


def test_the_row_of_an_encoder_diverges_by_nothing_from_its_own(tmp_path: Path) -> None:
    """BERT's first row: that of equal weights, so that the loss is ln 2."""
    folder = save_base(tmp_path, "bert")
    model = load(folder)
    make_readable(model, CAPTURES)
    data = training_set(model)
    loss: Any = prepared(Divergence(str(folder)), model, data)
    batch = collate_items(model, data.items[:4], None)
    with torch.no_grad():
        found = float(loss(batch, forward(model, batch, CAPTURES)))
    assert found == pytest.approx(log(2), abs=1e-6)
