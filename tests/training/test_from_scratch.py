"""The start of a network trained from scratch: words, tokens, sizes and bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.training.base import find_base, settle, start_model
from faithbench.training.fit import fit
from faithbench.training.from_scratch import (
    SPECIAL,
    check_arch,
    settle_scratch,
    start_network,
    vectors_origin,
    word_tokenizer,
)
from faithbench.training.recipe import Recipe, Splits
from faithbench.training.vectors import word_vectors
from tests.support.builders import make_task
from tests.support.training import answer_splits, dataset, label_splits

CNN = Recipe(arch="cnn", vectors="random", width=8, method="full", encoder_dropout=0.5)
BILSTM = replace(CNN, arch="bilstm", projection="sparsegen:0.5", encoder_dropout=0.3)


def test_words_and_punctuation_in_lower_case_with_nothing_around_them() -> None:
    tokenizer = word_tokenizer(["good", "film", ",", "plot"])
    tokens = tokenizer("Good, FILM dull", "plot", return_token_type_ids=True)
    assert tokenizer.convert_ids_to_tokens(tokens["input_ids"]) == [
        "good", ",", "film", "[UNK]", "plot",
    ]  # fmt: skip
    assert tokens["token_type_ids"] == [0, 0, 0, 0, 1]
    assert tokenizer.pad_token_id == 0 and tokenizer.mask_token_id == 2


def test_the_vocabulary_is_that_of_train_and_what_vectors_have_of_the_others() -> None:
    splits = label_splits()
    more = dataset(splits.test.task, [Example("t", "a comedy of good manners", 1)], "test")
    splits = Splits(splits.train, splits.dev, more)
    task = splits.train.task
    torch.manual_seed(0)
    network, tokenizer = start_network(task, CNN, splits)
    train = {word for e in splits.train.examples for word in e.text.split()}
    assert set(tokenizer.get_vocab()) == {*SPECIAL, *train}, "random vectors have no other words"
    _, tokenizer = start_network(task, replace(CNN, vectors="minilm"), splits)
    assert set(tokenizer.get_vocab()) == {*SPECIAL, *train, "a", "comedy", "of", "manners"}
    weights = network.get_input_embeddings().weight
    assert weights[: len(SPECIAL)].abs().max() == 0
    words = sorted(train, key=tokenizer.get_vocab().__getitem__)
    expected = torch.tensor(word_vectors("random", words, 8, 0), dtype=torch.float32)
    assert torch.equal(weights[len(SPECIAL) :], expected)


def test_sizes_follow_the_training_texts_and_the_recipe() -> None:
    splits = label_splits()
    longest = max(len(e.text.split()) for e in splits.train.examples)
    network, tokenizer = start_network(splits.train.task, CNN, splits)
    config = network.config
    assert config.max_position_embeddings == tokenizer.model_max_length == longest == 6
    assert (config.hidden_size, config.query, config.dropout) == (8, False, 0.5)
    assert config.id2label == {0: "no", 1: "yes"}
    network, _ = start_network(splits.train.task, replace(CNN, max_tokens=4), splits)
    assert network.config.max_position_embeddings == 4
    task = make_task(kind="pair", hub=None)
    pairs = dataset(task, [Example("p", "good film", 1, "what is good"), Example("q", "a", 0, "b")])
    network, _ = start_network(task, CNN, Splits(pairs, pairs, pairs))
    assert network.config.query and network.config.max_position_embeddings == 5


@pytest.mark.parametrize("arch", ["bilstm", "transformer"])
def test_attentive_networks_have_their_vectors_width_and_read_longer_texts(arch: str) -> None:
    splits = label_splits()
    recipe = replace(BILSTM, arch=arch)
    network, tokenizer = start_network(splits.train.task, recipe, splits)
    config = network.config
    assert (config.embedding_size, config.hidden_size, config.dropout) == (8, 128, 0.3)
    assert config.projection == "sparsegen:0.5"
    assert config.max_position_embeddings == tokenizer.model_max_length == 512
    network, _ = start_network(splits.train.task, replace(recipe, max_tokens=4), splits)
    assert network.config.max_position_embeddings == 4


@pytest.mark.parametrize("projection", ["softmax", "sparsemax"])
@pytest.mark.parametrize("arch", ["bilstm", "transformer"])
def test_attentive_networks_learn_a_word(arch: str, projection: str, tmp_path: Path) -> None:
    splits = label_splits()
    recipe = replace(BILSTM, arch=arch, projection=projection, learning_rate=3e-3)
    recipe = replace(recipe, epochs=12, patience=12, batch_size=4)
    card = fit(splits, recipe, tmp_path, lambda *_: None, device="cpu")
    assert card["test"]["accuracy"] == 1 > card["majority"]["accuracy"]
    assert card["recipe"]["projection"] == projection and card["recipe"]["amsgrad"]


def test_the_same_seed_starts_with_the_same_weights() -> None:
    splits = label_splits()
    task, base = splits.train.task, find_base(None, CNN)
    first, second, other = (
        start_model(task, replace(CNN, seed=seed), base, "cpu", splits) for seed in (0, 0, 1)
    )
    states = [model.network.state_dict() for model in (first, second, other)]
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    assert not torch.equal(states[0]["hidden.weight"], states[2]["hidden.weight"])
    assert all(p.requires_grad for p in first.network.parameters())
    assert first.max_tokens == 6


def test_settings_that_are_filled_in() -> None:
    recipe = Recipe(arch="cnn")
    assert settle(recipe, find_base(None, recipe)).width == 100
    assert settle_scratch(replace(recipe, vectors="glove")).width == 50
    assert settle_scratch(replace(recipe, width=7)).width == 7
    assert settle_scratch(replace(recipe, method="lora")).method == "full"
    assert vectors_origin(CNN)[0] == "random vectors"
    assert settle_scratch(recipe).weight_decay == 0.01 and not settle_scratch(recipe).amsgrad
    attentive = settle_scratch(replace(recipe, arch="transformer"))
    assert (attentive.projection, attentive.weight_decay) == ("softmax", 0)
    assert attentive.amsgrad and attentive.width == 100
    assert settle_scratch(replace(BILSTM, projection="sparsegen:.50")).projection == "sparsegen:0.5"


def test_what_cannot_be_trained_from_scratch() -> None:
    with pytest.raises(FaithbenchError, match="no architecture named 'cnm'; did you mean 'cnn'"):
        settle_scratch(replace(CNN, arch="cnm"))
    with pytest.raises(FaithbenchError, match="a cnn is trained from scratch and has no base"):
        find_base("some/encoder", CNN)
    splits = answer_splits()
    with pytest.raises(FaithbenchError, match="of kind qa, and a cnn only classifies texts"):
        start_network(splits.train.task, CNN, splits)
    pairs = Splits(*[dataset(make_task(kind="pair", hub=None), [Example("p", "a", 1, "b")])] * 3)
    said = "of kind pair, and a bilstm only classifies single texts; train an encoder"
    with pytest.raises(FaithbenchError, match=said):
        start_network(pairs.train.task, BILSTM, pairs)


@pytest.mark.parametrize("recipe", [CNN, BILSTM])
def test_texts_without_words_and_vectors_of_another_width_are_refused(recipe: Recipe) -> None:
    task = make_task(hub=None)
    blank = Splits(*[dataset(task, [Example("a", " ", 1), Example("b", "\n", 0)])] * 3)
    with pytest.raises(FaithbenchError, match="the 2 training texts of task mini have no words"):
        start_network(task, recipe, blank)
    wide = replace(recipe, vectors="minilm", width=385)
    with pytest.raises(FaithbenchError, match="--width 385 is more than the 384 dimensions"):
        start_network(task, wide, label_splits())


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"projection": "sparsegen:1"}, "'sparsegen:1' needs a lambda below 1"),
        ({"projection": "sparsmax"}, "no projection named 'sparsmax'; did you mean 'sparsemax'"),
        ({"arch": "cnn"}, "give --arch bilstm or transformer, or leave it out"),
        ({"arch": ""}, "give --arch bilstm or transformer, or leave it out"),
        ({"arch": "lstm"}, "no architecture named 'lstm'; did you mean 'bilstm'"),
    ],
)
def test_a_projection_needs_a_name_and_an_attention(changes: dict[str, str], said: str) -> None:
    recipe = replace(BILSTM, **changes)
    with pytest.raises(FaithbenchError, match=said) as error:
        check_arch(recipe)
    assert "\n" not in str(error.value)
    with pytest.raises(FaithbenchError, match=said):
        settle(recipe, find_base(None, replace(BILSTM)))
