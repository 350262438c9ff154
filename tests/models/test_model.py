"""Shared weights, erasure tokens, and models from a folder."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.models.encoding import inputs_of
from faithbench.models.files.weights import Located, sha256_of_weights
from faithbench.models.model import (
    Model,
    build_model,
    load_model,
    longest_input,
)
from faithbench.testing import tiny
from tests.support.builders import REVISION
from tests.support.tasks import use_hub_cache

LABELS = ("class 0", "class 1")


@pytest.mark.parametrize(
    ("architecture", "pad", "longest"),
    [("bert", 0, 70), ("gpt2", 0, 70), ("roberta", 0, 69), ("roberta", 1, 68)],
)
def test_the_longest_input_is_as_long_as_the_network_can_read(
    tiny_model, tokenizer, architecture: str, pad: int, longest: int
) -> None:
    """All have 70 positions; RoBERTa leaves out those up to that of its padding token."""
    from transformers import AutoModelForSequenceClassification

    config = copy.deepcopy(tiny_model(architecture).network.config)
    config.pad_token_id = pad
    network = AutoModelForSequenceClassification.from_config(config)
    patient = copy.deepcopy(tokenizer)
    patient.model_max_length = 1000
    model = build_model("m", network, patient, labels=LABELS)
    assert model.max_tokens == longest
    assert build_model("m", network, tokenizer, labels=LABELS).max_tokens == 64
    network(input_ids=torch.full((1, longest), 5))
    with pytest.raises((IndexError, RuntimeError)):
        network(input_ids=torch.full((1, longest + 1), 5))


def test_the_readable_twin_shares_every_weight(tiny_model, batch_of) -> None:
    model = fresh(tiny_model())
    twin = model.eager()
    assert twin is model.eager() is model.eager(torch.float64)
    assert twin is not model.network
    mine, its = dict(model.network.named_parameters()), dict(twin.named_parameters())
    assert len(mine) == 41 and mine.keys() == its.keys()
    assert all(mine[name].data_ptr() == its[name].data_ptr() for name in mine)
    assert twin.config._attn_implementation == "eager"
    assert model.network.config._attn_implementation == "sdpa"
    batch = batch_of(model, ["good film", "the plot is not very dull"])
    inputs = inputs_of(twin, batch.ids, batch.types, batch.attention)
    expected = model.network(**inputs).logits
    out = twin(**inputs, output_attentions=True)
    torch.testing.assert_close(out.logits, expected, rtol=0, atol=1e-12)
    assert [a.shape for a in out.attentions] == [(2, 4, 8, 8)] * 2
    model.network.classifier.bias.add_(1)
    torch.testing.assert_close(twin(**inputs).logits, expected + 1, rtol=0, atol=1e-12)


def test_a_twin_of_another_precision_stands_alone(tiny_model) -> None:
    model = fresh(tiny_model(dtype=torch.float32))
    twin = model.eager(torch.float64)
    assert (twin.dtype, model.dtype, model.network.dtype) == (
        *(torch.float64, torch.float32, torch.float32),
    )
    assert model.eager(torch.float64) is twin is not model.eager()
    assert twin.config._attn_implementation == "eager"
    for mine, its in zip(model.network.parameters(), twin.parameters(), strict=True):
        assert torch.equal(mine.double(), its)
        assert not its.requires_grad
    before = model.network.classifier.bias.clone()
    twin.classifier.bias.add_(1)
    assert torch.equal(model.network.classifier.bias, before)


def test_a_built_model_is_frozen_and_can_pad(tiny_model, tokenizer) -> None:
    network = copy.deepcopy(tiny_model().network)
    network.train().requires_grad_()
    network.config.pad_token_id = None
    no_pad = special(tokenizer, unk_token="[UNK]", eos_token="[SEP]")
    assert no_pad.pad_token is None
    model = build_model("m", network, no_pad, labels=LABELS)
    assert not network.training
    assert not any(p.requires_grad for p in network.parameters())
    assert (model.tokenizer.pad_token, network.config.pad_token_id) == ("[SEP]", 3)
    assert (model.device.type, model.dtype, model.folder) == ("cpu", torch.float64, None)


@pytest.mark.parametrize(
    ("tokens", "mask", "pad"),
    [
        (("mask", "unk", "pad", "eos"), ("[MASK]", 4), ("[PAD]", 0)),
        (("unk", "pad", "eos"), ("[UNK]", 1), ("[PAD]", 0)),
        (("pad", "eos"), ("[PAD]", 0), ("[PAD]", 0)),
        (("eos",), ("[SEP]", 3), ("[SEP]", 3)),
    ],
)
def test_the_token_to_erase_with(
    tiny_model, tokenizer, tokens: tuple[str, ...], mask: tuple[str, int], pad: tuple[str, int]
) -> None:
    there = {"mask": "[MASK]", "unk": "[UNK]", "pad": "[PAD]", "eos": "[SEP]"}
    chosen = special(tokenizer, **{f"{name}_token": there[name] for name in tokens})
    model = build_model("m", tiny_model().network, chosen, labels=LABELS)
    assert model.erasure_token("mask") == mask
    assert model.erasure_token("pad") == pad


def test_no_token_to_erase_with(tiny_model, tokenizer) -> None:
    model = build_model("bare", tiny_model().network, special(tokenizer), labels=LABELS)
    for operator in ("mask", "pad"):
        with pytest.raises(FaithbenchError, match=r"'bare' has no token .* use --operator delete"):
            model.erasure_token(operator)


@pytest.fixture(scope="module")
def saved(tiny_model, tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("saved")
    tiny_model(dtype=torch.float32).network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("dtype", "expected", "error"),
    [
        ("float32", torch.float32, 0),
        ("float64", torch.float64, 1e-6),
        ("bf16", torch.bfloat16, 0.02),
        ("fp16", torch.float16, 2e-3),
    ],
)
def test_a_saved_folder_gives_the_same_model(
    tiny_model, batch_of, saved: Path, dtype: str, expected: torch.dtype, error: float
) -> None:
    original = tiny_model(dtype=torch.float32)
    model = load_model(str(saved), labels=LABELS, device="cpu", dtype=dtype)
    assert (model.name, model.folder, model.labels) == (str(saved), saved, LABELS)
    assert (model.dtype, model.device.type, model.revision) == (expected, "cpu", None)
    assert model.weights_sha256 == sha256_of_weights(Located(str(saved), folder=saved))
    assert not model.network.training
    assert not any(p.requires_grad for p in model.network.parameters())
    batch = batch_of(model, ["good film", "the plot is not very dull"])
    logits = []
    for network in (original.network, model.network):
        with torch.no_grad():
            inputs = inputs_of(network, batch.ids, batch.types, batch.attention)
            logits.append(network(**inputs).logits.double())
    assert (logits[0] - logits[1]).abs().max() <= error
    assert logits[0].abs().max() > 0.1


def test_the_same_weights_with_another_activation_are_another_model(
    saved: Path, tmp_path: Path
) -> None:
    before = load_model(str(saved), labels=LABELS, device="cpu")
    changed = Path(shutil.copytree(saved, tmp_path / "m"))
    config = json.loads((changed / "config.json").read_text())
    (changed / "config.json").write_text(json.dumps(config | {"hidden_act": "relu"}))
    after = load_model(str(changed), labels=LABELS, device="cpu")
    assert before.weights_sha256 == after.weights_sha256 and before.sha256 != after.sha256
    assert after.is_known_by(None, before.weights_sha256), "as older files know it"
    assert after.is_known_by(after.sha256, "") and not after.is_known_by(before.sha256, "")


def test_loading_says_what_cannot_be(saved: Path) -> None:
    with pytest.raises(
        FaithbenchError, match="dtype 'int8' is not one of float32, float64, bf16, fp16"
    ):
        load_model(str(saved), labels=LABELS, dtype="int8")
    with pytest.raises(FaithbenchError, match="device 'tpu' is not one of"):
        load_model(str(saved), labels=LABELS, device="tpu")
    with pytest.raises(FaithbenchError, match="--compiled is for GPUs: on the CPU it takes"):
        load_model(str(saved), labels=LABELS, device="cpu", compiled=True)
    for labels in (("only",), ("a", "b", "c")):
        with pytest.raises(
            FaithbenchError,
            match=f"has 2 classes, the task has {len(labels)}; choose a model that was trained",
        ):
            load_model(str(saved), labels=labels)


def test_a_question_answerer_is_known_by_its_configuration(
    tokenizer, saved: Path, tmp_path: Path
) -> None:
    original = tiny.tiny_model("bert", qa=True, dtype=torch.float32)
    original.network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = load_model(str(tmp_path), labels=("answerable",), kind="qa", device="cpu")
    assert model.outputs == ("start_logits", "end_logits")
    assert model.labels == ("answerable",)
    assert torch.equal(model.network.qa_outputs.weight, original.network.qa_outputs.weight)
    for folder, kind, sort in (
        (tmp_path, "pair", "question answerer"),
        (saved, "qa", "classifier"),
    ):
        with pytest.raises(FaithbenchError) as caught:
            load_model(str(folder), labels=LABELS, kind=kind)
        assert str(caught.value) == (
            f"model '{folder}' is a {sort}, the task is of kind {kind}; "
            "choose a model that was trained for this task with --model"
        )


def test_an_adapter_of_another_task_is_refused() -> None:
    with pytest.raises(FaithbenchError, match="'bundled:sst2' has 2 classes, the task has 3"):
        load_model("bundled:sst2", labels=("a", "b", "c"))


@pytest.mark.parametrize(
    ("architecture", "body", "missing"),
    [
        ("bert", "bert", "classifier.bias, classifier.weight"),
        ("gpt2", "transformer", "score.weight"),
    ],
)
def test_an_encoder_without_classifier_is_refused(
    tiny_model, tokenizer, tmp_path: Path, architecture: str, body: str, missing: str
) -> None:
    """transformers would draw a head at random, and only log it."""
    getattr(tiny_model(architecture).network, body).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(FaithbenchError, match=rf"no trained classifier \(no {missing}\); choose"):
        load_model(str(tmp_path), labels=LABELS)


def fresh(model: Model) -> Model:
    """Return a copy that a test may change."""
    network = copy.deepcopy(model.network)
    return build_model("fresh", network, model.tokenizer, labels=model.labels)


def special(tokenizer: Any, **tokens: str) -> Any:
    """Return the tokenizer with these special tokens and no others."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, **tokens)


@pytest.mark.parametrize(
    ("model_type", "longest"),
    [("bert", 70), ("roberta", 68), ("camembert", 68), ("longformer", 68), ("xlm-roberta", 68)],
)
def test_positions_that_are_never_used_are_not_counted(model_type: str, longest: int) -> None:
    config = SimpleNamespace(max_position_embeddings=70, pad_token_id=1, model_type=model_type)
    patient, strict = (SimpleNamespace(model_max_length=n) for n in (10**30, 16))
    assert longest_input(config, patient) == longest
    assert longest_input(config, strict) == 16
    bare = SimpleNamespace(model_type=model_type, pad_token_id=None)
    assert longest_input(bare, strict) == 16, "a network without a limit of its own"


def test_a_model_of_the_hub_by_name_and_revision(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = use_hub_cache(tmp_path, monkeypatch)
    folder = cache / "models--owner--tiny" / "snapshots" / REVISION
    folder.mkdir(parents=True)
    made = tiny.tiny_model()
    made.network.save_pretrained(folder)
    tiny.tiny_tokenizer().save_pretrained(folder)
    assert (folder / "model.safetensors").is_file()
    found = load_model("owner/tiny", labels=("no", "yes"), revision=REVISION, device="cpu")
    assert (found.name, found.revision) == ("owner/tiny", REVISION)
    there = {name: value.sum().item() for name, value in found.network.state_dict().items()}
    for name, value in made.network.state_dict().items():
        assert there[name] == pytest.approx(value.sum().item(), rel=1e-5, abs=1e-5)
