"""Sentence embeddings: the mean of attended states, whatever shares a pass."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, BertConfig, BertModel

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256
from faithbench.models.files.weights import BASE_SHA256
from faithbench.models.sentence_encoder import TOKENS, embed, encoder_sha256

TEXTS = ["good film", "the plot is not very good and the film is dull", "dull", "a", "w1 w2 w3"]


@pytest.fixture(scope="module")
def encoder(tokenizer, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("encoder")
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=40,
    )  # fmt: skip
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def by_hand(encoder: Path, tokenizer, text: str, longest: int = 40) -> np.ndarray:
    """Embed one text alone, without padding."""
    network = AutoModel.from_pretrained(encoder).eval()
    ids = tokenizer(text, truncation=True, max_length=longest, return_tensors="pt")["input_ids"]
    with torch.no_grad():
        mean = network(input_ids=ids).last_hidden_state[0].mean(dim=0).numpy()
    return mean / np.linalg.norm(mean)


def test_the_mean_state_at_length_one(encoder: Path, tokenizer) -> None:
    found = embed(TEXTS, str(encoder), "cpu")
    assert found.dtype == np.float32 and found.shape == (5, 16)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    for row, text in zip(found, TEXTS, strict=True):
        np.testing.assert_allclose(row, by_hand(encoder, tokenizer, text), atol=1e-6)


def test_a_marker_in_a_text_is_text(encoder: Path, tokenizer) -> None:
    """`[SEP]` is read as three unknown pieces, not as the end of a text."""
    (marked,), (spelt,) = embed(["a [SEP]"], str(encoder)), embed(["a ξ ψ 語"], str(encoder))
    np.testing.assert_allclose(marked, spelt, atol=1e-6)


def test_the_order_changes_nothing(encoder: Path) -> None:
    order = [3, 0, 4, 2, 1]
    again = embed([TEXTS[i] for i in order], str(encoder), "cpu")
    np.testing.assert_allclose(again, embed(TEXTS, str(encoder), "cpu")[order], atol=1e-6)


def test_long_texts_are_cut_where_the_network_ends(encoder: Path, tokenizer) -> None:
    long = " ".join(f"w{i}" for i in range(60))
    (found,) = embed([long], str(encoder), "cpu")
    np.testing.assert_allclose(found, by_hand(encoder, tokenizer, long), atol=1e-6)


def test_a_sentence_encoder_says_how_much_it_reads(encoder: Path, tokenizer, tmp_path) -> None:
    for file in encoder.iterdir():
        (tmp_path / file.name).symlink_to(file)
    settings = tmp_path / "sentence_bert_config.json"
    settings.write_text(json.dumps({"max_seq_length": 5}))
    (found,) = embed([TEXTS[1]], str(tmp_path), "cpu")
    np.testing.assert_allclose(found, by_hand(encoder, tokenizer, TEXTS[1], 5), atol=1e-6)
    settings.write_text("{")
    with pytest.raises(FaithbenchError, match="not JSON"):
        embed(TEXTS, str(tmp_path), "cpu")


def test_progress_ends_with_all_texts(encoder: Path) -> None:
    seen: list[tuple[str, int, int]] = []
    count = TOKENS // 3 + 1  # one more than a pass takes
    embed(["a"] * count, str(encoder), "cpu", lambda *said: seen.append(said))
    assert seen == [("embedding", count - 1, count), ("embedding", count, count)]


def test_no_texts(encoder: Path) -> None:
    assert embed([], str(encoder), "cpu").shape == (0, 16)


def test_the_checksum_of_an_encoder(encoder: Path) -> None:
    assert encoder_sha256(str(encoder)) == file_sha256(encoder / "model.safetensors")
    assert encoder_sha256() == BASE_SHA256


def test_the_bundled_encoder_knows_what_is_alike() -> None:
    found = embed(["A wonderful film.", "This movie is great!", "Shares fell sharply."])
    cosines = found @ found.T
    assert found.shape == (3, 384)
    assert cosines[0, 1] > 0.6 and cosines[0, 2] < 0.2
