"""The network before its first step: base, head, adapter and dropout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256
from faithbench.core.types import Example
from faithbench.models.encoding import encode
from faithbench.models.evaluation import evaluate
from faithbench.models.files.weights import BASE_NAME, BASE_SHA256, base_encoder
from faithbench.models.model import load_model
from faithbench.training.base import Base, find_base, settle, start_model
from faithbench.training.fit import fit
from tests.support.builders import make_task
from tests.support.training import ADAPTER, WHOLE, label_splits, load_weights, save_base, silent


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder with dropout, in a folder."""
    return save_base(tmp_path_factory.mktemp("bases"), "bert")


def test_a_base_is_the_bundled_encoder_or_a_folder(base: Path) -> None:
    assert find_base(None) == Base(BASE_NAME, base_encoder(), BASE_SHA256)
    assert find_base(str(base)) == Base(base.name, base, file_sha256(base / "model.safetensors"))


@pytest.mark.parametrize("architecture", ["bert", "roberta", "distilbert", "electra", "gpt2"])
def test_an_adapter_goes_on_every_linear_map_of_the_blocks(
    architecture: str, tmp_path: Path
) -> None:
    base = find_base(str(save_base(tmp_path, architecture)))
    recipe = settle(ADAPTER, base)
    network = start_model(label_splits().train.task, recipe, base, "cpu").network
    adapted = {name.split(".lora_A")[0] for name, _ in network.named_modules() if "lora_A" in name}
    # GPT-2 writes its linear maps as convolutions of width 1.
    linear = {
        name.removesuffix(".base_layer")
        for name, module in network.named_modules()
        if type(module).__name__ in ("Linear", "Conv1D") and "lora_" not in name
    }
    # Blocks are numbered: `encoder.layer.0`, `transformer.layer.0`, `h.0`.
    in_blocks = {name for name in linear if any(part.isdecimal() for part in name.split("."))}
    assert in_blocks and in_blocks <= adapted


def test_targets_of_one_s_own_and_whole_models_stay_as_they_are(base: Path) -> None:
    recipe = replace(ADAPTER, targets=("query",))
    assert settle(recipe, find_base(str(base))) == recipe
    assert settle(WHOLE, find_base(str(base))) == WHOLE


def test_only_the_adapter_and_the_head_are_trained(base: Path) -> None:
    start = find_base(str(base))
    network = start_model(label_splits().train.task, settle(ADAPTER, start), start, "cpu").network
    trained = {name for name, weight in network.named_parameters() if weight.requires_grad}
    assert all("lora_" in name or "classifier" in name for name in trained)
    assert {name.split(".")[-1] for name in trained if "classifier" in name} == {"weight", "bias"}
    whole = start_model(label_splits().train.task, WHOLE, start, "cpu").network
    assert all(weight.requires_grad for weight in whole.parameters())


@pytest.mark.parametrize("architecture", ["roberta", "distilbert", "electra", "gpt2"])
def test_every_architecture_takes_an_adapter(architecture: str, tmp_path: Path) -> None:
    folder = save_base(tmp_path, architecture)
    splits = label_splits()
    once = replace(ADAPTER, epochs=1)
    card = fit(splits, once, tmp_path / "out", silent, base=str(folder), device="cpu")
    model = load_model(str(tmp_path / "out"), labels=("no", "yes"), device="cpu")
    assert evaluate(model, splits.test)["accuracy"] == card["test"]["accuracy"]
    expected = {"distilbert": "q_lin", "gpt2": "c_attn"}.get(architecture, "query")
    assert card["recipe"]["targets"][0] == expected


def test_texts_are_cut_for_training_only_as_far_as_the_model_reads(base: Path) -> None:
    task = label_splits().train.task
    model = start_model(
        task, replace(ADAPTER, targets=("query",), max_tokens=8), find_base(str(base))
    )
    assert len(encode(model, Example("e", "good film " * 9, 0)).ids) == 8
    with pytest.raises(FaithbenchError) as caught:
        start_model(task, replace(WHOLE, max_tokens=65), find_base(str(base)))
    assert str(caught.value) == ("asked for --max-tokens 65, but the model reads 64; give fewer")


def test_a_head_of_other_classes_gives_way(base: Path) -> None:
    model = start_model(make_task(labels=list("abc"), hub=None), WHOLE, find_base(str(base)))
    assert model.network.classifier.weight.shape == (3, 32)
    same = load_weights(base)["bert.encoder.layer.0.output.dense.weight"]
    assert torch.equal(model.network.bert.encoder.layer[0].output.dense.weight, same)


def test_dropout_is_the_recipe_s(base: Path) -> None:
    recipe = replace(ADAPTER, targets=("query",), dropout=0.25, encoder_dropout=0.125)
    model = start_model(label_splits().train.task, recipe, find_base(str(base)))
    rates = {m.p for m in model.network.modules() if isinstance(m, torch.nn.Dropout)}
    assert rates == {0.25, 0.125}
    assert model.network.config.attention_probs_dropout_prob == 0.125
