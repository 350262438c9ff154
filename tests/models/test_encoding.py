"""Texts, pairs and questions as the model reads them, and batches of them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.models.encoding import collate, encode, ids_of_text, inputs_of, pad_rows
from faithbench.testing import tiny

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


def test_rows_without_tokens_are_padding_alone() -> None:
    nothing = np.array([], dtype=np.int64)
    ids, types, attention = pad_rows([(nothing, nothing)] * 2, 9)
    assert (ids.tolist(), types.tolist(), attention.tolist()) == ([[9]] * 2, [[0]] * 2, [[0]] * 2)


def test_segments_go_only_to_networks_that_know_them(tiny_model) -> None:
    two = {"input_ids", "attention_mask"}
    for architecture, names in (("bert", two | {"token_type_ids"}), ("distilbert", two)):
        network = tiny_model(architecture).network
        assert set(inputs_of(network, *torch.ones(3, 1, 4, dtype=torch.long))) == names


def test_markers_that_a_text_spells_are_text(tiny_model) -> None:
    """`[`, `sep` and `]` are pieces that the tiny vocabulary does not know: 1."""
    found = encode(tiny_model(), Example("e", "good [SEP] film [MASK]", 1, "[CLS] [PAD]"), "both")
    assert found.ids.tolist() == [2, 5, 1, 1, 1, 7, 1, 1, 1, 3, 1, 1, 1, 1, 1, 1, 3]
    assert np.flatnonzero(~found.erasable).tolist() == [0, 9, 16]
    assert found.spans[1:6] == ((0, 4), (5, 6), (6, 9), (9, 10), (11, 15))
    assert found.words[:10].tolist() == [-1, *range(8), -1]
    assert [found.example.text[slice(*span)] for span in found.word_spans[:8]] == [
        *("good", "[", "SEP", "]", "film", "[", "MASK", "]"),
    ]


def test_markers_of_a_byte_level_tokenizer_are_text(tiny_model) -> None:
    model = replace(tiny_model(), tokenizer=byte_level_tokenizer())
    found = encode(model, Example("e", "the <s> </s><mask>", 1))
    tokens = model.tokenizer.convert_ids_to_tokens(found.ids.tolist())
    assert tokens == [*("<s>", "t", "h", "e", "Ġ", "<", "s", ">"),
                      *("Ġ", "<", "/", "s", ">", "<", "m", "a", "s", "k", ">", "</s>")]  # fmt: skip
    assert found.erasable.tolist() == [False] + [True] * 18 + [False]
    pieces = [found.example.text[slice(*span)] for span in found.spans[1:-1]]
    assert "".join(pieces) == "the<s></s><mask>"
    # A piece that is nothing but a space is of no word.
    assert found.words[1:9].tolist() == [0, 0, 0, -1, 1, 2, 3, -1]
    assert found.words[9:].tolist() == [4, 5, 6, 7, 8, 9, 9, 9, 9, 10, -1]


def test_a_marker_that_is_a_word_of_the_vocabulary_is_unknown(tiny_model) -> None:
    """A Unigram model may read `</s>` as the one piece that ends its texts."""
    model = replace(tiny_model(), tokenizer=unigram_tokenizer())
    found = encode(model, Example("e", "a </s>b", 1))
    assert found.ids.tolist() == [0, 5, 6, 5, 2, 7, 1]  # <s> _ a _ <unk> b </s>
    assert found.erasable.tolist() == [False, True, True, True, True, True, False]
    assert found.spans[4] == (2, 6)
    model.tokenizer.unk_token = None
    with pytest.raises(FaithbenchError, match="a text spells '</s>', which this tokenizer reads"):
        ids_of_text(model.tokenizer, [0, 1, 1], [1, 0, 1])


def choices_of(text: str, *choices: str, question: str | None = None) -> Example:
    return Example("c", text, 0, question, choices=choices)


def test_choices_share_the_text() -> None:
    model = tiny.tiny_model(choices=True)
    found = encode(model, choices_of("good plot", "bad", "the film"))
    assert found.joint and found.ids.tolist() == [2, 5, 10, 3, 6, 3, 8, 7, 3]
    assert found.types.tolist() == [0, 0, 0, 0, 1, 1, 1, 1, 1]
    assert [places.tolist() for places in found.windows] == [
        [0, 1, 2, 3, 4, 5],
        [0, 1, 2, 3, 6, 7, 8],
    ]
    assert np.flatnonzero(found.erasable).tolist() == [1, 2]
    assert found.words.tolist() == [-1, 0, 1, -1, -1, -1, -1, -1, -1]
    batch = collate(model, [found, found], [0, 1], [7, 8])
    assert batch.ids.tolist() == [[2, 5, 10, 3, 6, 3, 0], [2, 5, 10, 3, 8, 7, 3]]
    assert [encoding.choice for encoding in batch.encodings] == [0, 1]
    inputs = inputs_of(model.network, batch.ids, batch.types, batch.attention)
    assert {tuple(tensor.shape) for tensor in inputs.values()} == {(2, 1, 7)}
    with pytest.raises(FaithbenchError, match="example 'c' has no choices"):
        encode(model, choices_of("good plot"))


@pytest.mark.parametrize(
    ("evidence", "erasable"), [("text", [1, 2]), ("text_b", [4, 5]), ("both", [1, 2, 4, 5])]
)
def test_a_question_stands_before_each_choice(evidence: Any, erasable: list[int]) -> None:
    model = tiny.tiny_model(choices=True)
    found = encode(model, choices_of("good plot", "bad", "a", question="is it"), evidence)
    assert found.ids.tolist() == [2, 5, 10, 3, 11, 1, 6, 3, 9, 3]
    assert np.flatnonzero(found.erasable).tolist() == erasable
    assert found.words.tolist() == [-1, 0, 1, -1, 2, 3, -1, -1, -1, -1]
    assert found.spans[4:6] == ((0, 2), (3, 5))


def test_a_long_text_is_cut_for_all_choices_alike() -> None:
    """Of 64 tokens, three are special and five are the longest choice: 56 of 100 are left."""
    model = tiny.tiny_model(choices=True)
    found = encode(model, choices_of(words(100), "bad", words(5), "the film"))
    assert (int(found.erasable.sum()), found.truncated) == (56, 44)
    assert [len(places) for places in found.windows] == [60, 64, 61]
    alone = encode(tiny.tiny_model(), Example("e", words(100), 0, words(5)))
    assert found.ids[found.windows[1]].tolist() == alone.ids.tolist()


def byte_level_tokenizer() -> Any:
    """Return a tokenizer of RoBERTa's kind that knows single bytes only."""
    special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner: Any = Tokenizer(models.BPE({e: i for i, e in enumerate((*special, *alphabet))}, []))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, cls_token="<s>", sep_token="</s>", pad_token="<pad>",
        unk_token="<unk>", mask_token=AddedToken("<mask>", lstrip=True), model_max_length=64,
    )  # fmt: skip


def unigram_tokenizer() -> Any:
    pieces = ("<s>", "</s>", "<unk>", "<pad>", "<mask>", "▁", "a", "b", "<", ">", "/", "s")
    inner: Any = Tokenizer(models.Unigram([(p, -float(i > 4)) for i, p in enumerate(pieces)], 2))
    inner.pre_tokenizer = pre_tokenizers.Metaspace()
    inner.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, cls_token="<s>", sep_token="</s>", pad_token="<pad>",
        unk_token="<unk>", mask_token="<mask>", model_max_length=64,
    )  # fmt: skip


def words(count: int) -> str:
    """Return so many words of one token each."""
    return " ".join(f"w{i % 60}" for i in range(count))


def test_a_classifier_with_a_decoder_needs_the_end_that_it_reads() -> None:
    """It would read the state of another token, or fail without a word."""
    model = tiny.tiny_model("bart", 2)
    assert encode(model, Example("e", "good film", 0)).ids[-1] == model.network.config.eos_token_id
    model.network.config.eos_token_id = 1
    with pytest.raises(FaithbenchError, match=r"reads the end token \(id 1\), and its tokenizer"):
        encode(model, Example("e", "good film", 0))
