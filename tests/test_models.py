"""Tokens mapped to words, padded batches, shared weights, devices, and models from a folder."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench import tiny
from faithbench.capture import run_capture
from faithbench.catalog import EXPLAINERS
from faithbench.encoding import collate, encode, inputs_of, pad_rows
from faithbench.errors import FaithbenchError
from faithbench.forward import Engine
from faithbench.head_statistics import strongest_keys
from faithbench.heads import HeadStatistics, PositionFacts, cached_heads, write_heads
from faithbench.models import Model, build_model, choose_device, load_model
from faithbench.relevance import run_relevance
from faithbench.relevance_rules import HeadRule
from faithbench.selection import find_explainers
from faithbench.types import Example
from faithbench.weights import Found, sha256_of_weights

LABELS = ("class 0", "class 1")
PAIR = Example("p", "good plot", 1, "the film")


def test_encode_one_text(tiny_model) -> None:
    found = encode(tiny_model(), Example("e", "Good films, not greatly", 1))
    assert found.ids.tolist() == [2, 5, 7, 18, 21, 12, 14, 17, 3]
    assert found.types.tolist() == [0] * 9
    assert found.erasable.tolist() == [False] + [True] * 7 + [False]
    assert found.words.tolist() == [-1, 0, 1, 1, 2, 3, 4, 4, -1]
    assert found.spans == (
        *((0, 0), (0, 4), (5, 9), (9, 10), (10, 11)),
        *((12, 15), (16, 21), (21, 23), (0, 0)),
    )
    assert found.word_spans == ((0, 4), (5, 10), (10, 11), (12, 15), (16, 23))
    assert found.truncated == 0
    assert (found.ids.dtype, found.types.dtype, found.words.dtype) == (np.int64,) * 3


def test_the_pieces_of_a_contraction_are_one_word(tiny_model) -> None:
    found = encode(tiny_model(), Example("e", "the film's plot", 1))
    assert found.ids.tolist() == [2, 8, 7, 22, 1, 10, 3]  # `s` alone is unknown
    assert found.words.tolist() == [-1, 0, 1, 1, 1, 2, -1]


@pytest.mark.parametrize(
    ("evidence", "erasable"), [("text", [1, 2]), ("text_b", [4, 5]), ("both", [1, 2, 4, 5])]
)
def test_encode_a_pair(tiny_model, evidence: Any, erasable: list[int]) -> None:
    found = encode(tiny_model(), PAIR, evidence)
    assert found.ids.tolist() == [2, 5, 10, 3, 8, 7, 3]
    assert found.types.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert np.flatnonzero(found.erasable).tolist() == erasable
    # Words are numbered through both texts; spans count from the start of their own text.
    assert found.words.tolist() == [-1, 0, 1, -1, 2, 3, -1]
    assert found.word_spans == ((0, 4), (5, 9), (0, 3), (4, 8))
    assert found.spans[4:6] == ((0, 3), (4, 8))


def test_a_question_comes_before_its_text() -> None:
    """As published question answerers were trained; words are still numbered text first."""
    model = tiny.tiny_model("bert", qa=True)
    found = encode(model, PAIR, "text")
    assert found.ids.tolist() == [2, 8, 7, 3, 5, 10, 3]
    assert found.types.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert np.flatnonzero(found.erasable).tolist() == [4, 5]
    assert found.words.tolist() == [-1, 2, 3, -1, 0, 1, -1]
    assert found.word_spans == ((0, 4), (5, 9), (0, 3), (4, 8))
    assert found.spans[4:6] == ((0, 4), (5, 9))
    long = encode(model, Example("e", words(150), 0, "good film"))
    assert (len(long.ids), int(long.erasable.sum()), long.truncated) == (64, 59, 91)
    assert long.ids[1:4].tolist() == [5, 7, 3]
    with pytest.raises(FaithbenchError, match="its second text leaves no room for the first"):
        encode(model, Example("e", "good film", 0, words(70)))


@pytest.mark.parametrize(("length", "truncated"), [(62, 0), (63, 1), (100, 38), (250, 188)])
def test_a_long_text_is_cut_and_counted(tiny_model, length: int, truncated: int) -> None:
    found = encode(tiny_model(), Example("e", words(length), 0))
    assert len(found.ids) == min(length + 2, 64)
    assert found.truncated == truncated
    assert found.ids[-1] == 3, "the last token is still [SEP]"


def test_the_first_text_of_a_pair_is_cut_when_it_is_the_evidence(tiny_model) -> None:
    """Of 64 tokens, three are special and two are the second text: 59 are left."""
    found = encode(tiny_model(), Example("e", words(100), 0, "good film"))
    assert (len(found.ids), int(found.erasable.sum()), found.truncated) == (64, 59, 41)
    assert found.ids[-3:].tolist() == [5, 7, 3]
    two_pieces = encode(tiny_model(), Example("e", words(150), 0, "good film"))
    assert (int(two_pieces.erasable.sum()), two_pieces.truncated) == (59, 91)


def test_both_texts_of_a_pair_are_cut_when_both_are_evidence(tiny_model) -> None:
    found = encode(tiny_model(), Example("e", words(100), 0, words(100)), "both")
    assert (len(found.ids), int(found.erasable.sum()), found.truncated) == (64, 61, 1)
    assert encode(tiny_model(), PAIR, "both").truncated == 0


def test_a_second_text_without_room_for_the_first(tiny_model) -> None:
    with pytest.raises(
        FaithbenchError,
        match=r"example 'e': its second text leaves no room .* 64 tokens of model 'tiny-bert'",
    ):
        encode(tiny_model(), Example("e", "good film", 0, words(70)))


@pytest.mark.parametrize(
    ("text", "found"), [("", "no token"), (" \n", "no token"), ("ξψ 語", "only unknown characters")]
)
def test_a_text_of_which_the_model_sees_nothing(tiny_model, text: str, found: str) -> None:
    with pytest.raises(
        FaithbenchError,
        match=re.escape(f"example 'e7': model 'tiny-bert' finds {found} in {text!r}; give"),
    ):
        encode(tiny_model(), Example("e7", text, 0))
    assert encode(tiny_model(), Example("e7", f"{text} good", 0)).ids[-2] == 5


def test_collate_pads_on_the_right(tiny_model) -> None:
    model = tiny_model()
    encodings = [encode(model, e) for e in (Example("a", "bad", 0), PAIR)]
    batch = collate(model, encodings, [1, 0], [7, 8])
    assert batch.encodings == tuple(encodings)
    assert batch.ids.tolist() == [[2, 6, 3, 0, 0, 0, 0], [2, 5, 10, 3, 8, 7, 3]]
    assert batch.types.tolist() == [[0] * 7, [0, 0, 0, 0, 1, 1, 1]]
    assert batch.attention.tolist() == [[1, 1, 1, 0, 0, 0, 0], [1] * 7]
    assert batch.erasable.tolist() == [[i == 1 for i in range(7)], [i in (1, 2) for i in range(7)]]
    assert (batch.targets.tolist(), batch.seeds) == ([1, 0], (7, 8))
    assert (batch.ids.dtype, batch.erasable.dtype) == (torch.int64, torch.bool)


def test_rows_are_padded_with_the_id_asked_for() -> None:
    rows = [(np.array([5]), np.array([1])), (np.array([6, 7, 8]), np.array([0, 1, 1]))]
    ids, types, attention = pad_rows(rows, 9)
    assert ids.tolist() == [[5, 9, 9], [6, 7, 8]]
    assert types.tolist() == [[1, 0, 0], [0, 1, 1]]
    assert attention.tolist() == [[1, 0, 0], [1, 1, 1]]


def test_segments_go_only_to_networks_that_know_them(tiny_model) -> None:
    two = {"input_ids", "attention_mask"}
    for architecture, names in (("bert", two | {"token_type_ids"}), ("distilbert", two)):
        network = tiny_model(architecture).network
        assert set(inputs_of(network, *torch.ones(3, 1, 4, dtype=torch.long))) == names


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


@pytest.mark.parametrize(
    ("cuda", "mps", "auto"), [(False, False, "cpu"), (False, True, "mps"), (True, True, "cuda")]
)
def test_choose_device(monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, auto: str) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert choose_device("auto") == torch.device(auto)
    assert choose_device("cpu") == torch.device("cpu")
    for name, there in (("cuda", cuda), ("mps", mps)):
        if there:
            assert choose_device(name) == torch.device(name)
        else:
            with pytest.raises(FaithbenchError, match=f"'{name}' is not on this machine; use"):
                choose_device(name)
    with pytest.raises(FaithbenchError, match="'tpu' is not one of auto, cuda, mps, cpu"):
        choose_device("tpu")


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
    assert model.weights_sha256 == sha256_of_weights(Found(str(saved), folder=saved))
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


def test_loading_says_what_cannot_be(saved: Path) -> None:
    with pytest.raises(
        FaithbenchError, match="dtype 'int8' is not one of float32, float64, bf16, fp16"
    ):
        load_model(str(saved), labels=LABELS, dtype="int8")
    with pytest.raises(FaithbenchError, match="device 'tpu' is not one of"):
        load_model(str(saved), labels=LABELS, device="tpu")
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
    assert model.heads == ("start_logits", "end_logits")
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


@pytest.mark.parametrize("name", EXPLAINERS)
def test_explainers_create_tensors_on_the_model_s_device(
    name: str, tiny_model, batch_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path))
    model = replace(tiny_model(), name="guarded")  # a model of its own shares no earlier pass
    write_heads(some_heads(model), cached_heads(model))
    batch = batch_of(model, ["good film", "the plot is not very dull"], [0, 1])
    (chosen,) = find_explainers(name)
    with every_tensor_placed():
        scores = chosen.explainer(model, batch)
    assert scores.shape == (2, 8)
    assert torch.isfinite(scores[batch.erasable]).all()


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_passes_create_tensors_on_the_model_s_device(
    architecture: str, tiny_model, batch_of
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, ["good film", "the plot is not very dull"], [0, 1])
    groups = torch.tensor([[[1, 0, 1, 0], [0, 1, 0, 1]], [[0, 0, 0, 1], [1, 1, 0, 0]]])
    plain, seen = run_relevance(model.eager(), batch), run_capture(model.eager(), batch)
    with every_tensor_placed():
        again = collate(model, batch.encodings, [0, 1], batch.seeds)
        captured = run_capture(model.eager(), batch)
        unmasked = run_relevance(model.eager(), batch)
        for rule in (HeadRule(groups), HeadRule(groups, released=True)):
            assert len(run_relevance(model.eager(), batch, rule).arrived) == 2
        assert Engine(model)._forward([(e.ids, e.types) for e in batch.encodings]).shape == (2, 2)
        assert [k.shape for k in strongest_keys(model, batch.encodings)] == [(2, 4, 4), (2, 4, 8)]
    assert torch.equal(again.ids, batch.ids)
    assert torch.equal(captured.embedding_gradients, seen.embedding_gradients)
    assert torch.equal(unmasked.hidden[0], plain.hidden[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda **where: torch.zeros(2, **where),
        lambda **where: torch.eye(2, **where),
        lambda **where: torch.tensor([1.0], **where),
        lambda **where: torch.arange(2, **where),
        lambda **where: torch.full((2,), 1.0, **where),
        lambda **where: torch.rand(2, **where),
    ],
    ids=["zeros", "eye", "tensor", "arange", "full", "rand"],
)
def test_a_tensor_that_is_not_placed_is_caught(make: Callable[..., torch.Tensor]) -> None:
    """Also in a backward pass, where the relevance rules run."""

    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, relevance: torch.Tensor) -> torch.Tensor:
            return relevance + make().sum()

    x = torch.ones(3, requires_grad=True)
    with every_tensor_placed():
        assert torch.zeros_like(make(device="cpu")).device == x.device
        with pytest.raises(AssertionError, match=r"torch\.\w+ without a device in .*test_models"):
            make()
        with pytest.raises(AssertionError, match=r"torch\.\w+ without a device in .*test_models"):
            torch.autograd.grad(Rule.apply(x).sum(), x)
    assert make().device.type == "cpu", "torch is itself again"


FACTORIES = (
    *("tensor", "as_tensor", "scalar_tensor"),
    *("zeros", "ones", "full", "empty", "eye", "arange", "linspace", "logspace"),
    *("rand", "randn", "randint", "randperm", "tril_indices", "triu_indices"),
)
# These fill a table of scores from the engine's answers, which are numpy arrays: their scores
# are on the CPU by design, where the run wants them, and meet no tensor of the model.
ON_THE_CPU = {
    "faithbench.black_box",
    "faithbench.explainers.controls",
    "faithbench.explainers.perturbation",
}


@contextmanager
def every_tensor_placed() -> Iterator[None]:
    """Refuse faithbench's code a tensor without a device: beside a CUDA model it would be lost.

    Libraries may create a tensor and move it afterwards. A draw from a generator is where the
    generator is: on the CPU by design, so that every device sees the same random numbers.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in FACTORIES:
            patch.setattr(torch, name, placed(name, getattr(torch, name)))
        yield


def placed(name: str, make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def guarded(*args: Any, **options: Any) -> torch.Tensor:
        who = sys._getframe(1).f_globals["__name__"]
        ours = who.startswith("faithbench") or who == __name__
        if ours and who not in ON_THE_CPU and not options.keys() & {"device", "generator"}:
            raise AssertionError(f"torch.{name} without a device in {who}")
        return make(*args, **options)

    return guarded


def words(count: int) -> str:
    """Return so many words of one token each."""
    return " ".join(f"w{i % 60}" for i in range(count))


def fresh(model: Model) -> Model:
    """Return a copy that a test may change."""
    network = copy.deepcopy(model.network)
    return build_model("fresh", network, model.tokenizer, labels=model.labels)


def special(tokenizer: Any, **tokens: str) -> Any:
    """Return the tokenizer with these special tokens and no others."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(tokenizer_object=tokenizer.backend_tokenizer, **tokens)


def some_heads(model: Model) -> HeadStatistics:
    """Return statistics by which three of the tiny model's eight heads are positional."""
    return HeadStatistics(
        task="mini",
        model=model.name,
        weights_sha256=model.weights_sha256,
        parser="none",
        split="train",
        sentences=1,
        data_sha256="",
        relations={},
        positions=PositionFacts(
            rows=10,
            best_offset=((1, 1, -1, 1), (1, 1, 1, 1)),
            share=((0.9, 0.2, 0.9, 0.2), (0.2, 0.2, 0.9, 0.2)),
        ),
        thresholds={"paper": (0.1, 0.8), "calibrated": (0.1, 0.8)},
    )
