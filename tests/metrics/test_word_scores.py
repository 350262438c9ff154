"""From token scores to words and sentences, and the mask that takes a rationale away."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from faithbench.core.types import Example
from faithbench.data.rationales import without_rationale
from faithbench.metrics.word_scores import (
    WordScores,
    by_sentence,
    mean_rationale_share,
    with_mean_share,
    words_of,
)
from faithbench.models.encoding import encode


def tokens_of(model: Any, encoding: Any) -> list[str]:
    return model.tokenizer.convert_ids_to_tokens(encoding.ids.tolist())


def test_a_word_is_the_sum_of_its_tokens(tiny_model: Any) -> None:
    model = tiny_model()
    text = "Goodly film , plots."
    encoding = encode(model, Example("a", text, 0, rationale=((0, 6), (16, 17))))
    assert tokens_of(model, encoding)[1:-1] == ["good", "##ly", "film", ",", "plot", "##s", "."]
    found = words_of(encoding, np.array([1.0, -3.0, 4.0, 0.5, 2.0, 2.5, -1.0]))
    assert found.scores.tolist() == [-2.0, 4.0, 0.5, 4.5, -1.0]
    assert found.strings == ("goodly", "film", ",", "plots", ".")
    assert found.spans == ((0, 6), (7, 11), (12, 13), (14, 19), (19, 20))
    # One marked character marks the word.
    assert found.rationale is not None
    assert found.rationale.tolist() == [True, False, False, True, False]
    assert found.second == 0


def test_a_score_per_erasable_token(tiny_model: Any) -> None:
    encoding = encode(tiny_model(), Example("a", "good film", 0))
    with pytest.raises(IndexError):
        words_of(encoding, np.zeros(3))


def test_words_of_both_texts_count_where_both_are_evidence(tiny_model: Any) -> None:
    model = tiny_model()
    example = Example("a", "good film", 0, "Goodly plot", rationale=((5, 9),))
    both = words_of(encode(model, example, "both"), np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert both.strings == ("good", "film", "goodly", "plot")
    assert both.scores.tolist() == [1, 2, 7, 5]
    assert both.spans == ((0, 4), (5, 9), (0, 6), (7, 11))
    assert both.rationale is not None and both.second == 2
    assert both.rationale.tolist() == [False, True, False, False]
    first = words_of(encode(model, example, "text"), np.array([1.0, 2.0]))
    assert (first.strings, first.second) == (("good", "film"), 0)
    last = words_of(encode(model, example, "text_b"), np.array([3.0, 4.0, 5.0]))
    assert (last.strings, last.second) == (("goodly", "plot"), 2)
    assert last.rationale is None, "what is marked is no evidence"


def test_a_question_before_its_text_changes_nothing(qa_model: Any) -> None:
    example = Example("a", "good film", 0, "the plot")
    found = words_of(encode(qa_model, example, "both"), np.array([1.0, 2.0, 3.0, 4.0]))
    assert found.strings == ("good", "film", "the", "plot")
    assert found.scores.tolist() == [3, 4, 1, 2]


def test_what_is_cut_off_does_not_appear(tiny_model: Any) -> None:
    # 64 tokens at most: 62 words, each of two characters and a space.
    text = " ".join(["is"] * 80)
    example = Example("a", text, 0, rationale=((180, 191), (200, 239)))
    encoding = encode(tiny_model(), example)
    found = words_of(encoding, np.arange(62.0))
    assert len(found.strings) == len(found.scores) == len(found.spans) == 62
    assert found.rationale is not None
    assert np.flatnonzero(found.rationale).tolist() == [60, 61]
    lost = encode(tiny_model(), Example("b", text, 0, rationale=((200, 239),)))
    assert words_of(lost, np.arange(62.0)).rationale is None
    assert words_of(encode(tiny_model(), Example("c", text, 0)), np.zeros(62)).rationale is None


def test_sentences_take_their_best_word() -> None:
    text = "Good film. Dull plot.\nthe end"
    spans = ((0, 4), (5, 9), (9, 10), (11, 15), (16, 20), (20, 21), (22, 25), (26, 29))
    scores = np.array([1.0, 3.0, 0.0, -2.0, -1.0, -5.0, 0.5, 0.25])
    marked = np.array([0, 0, 0, 0, 1, 0, 0, 0], dtype=bool)
    found = by_sentence(WordScores(scores, ("w",) * 8, spans, marked), text)
    assert found.scores.tolist() == [3.0, -1.0, 0.5]
    assert found.strings == ("good film.", "dull plot.", "the end")
    assert found.spans == ((0, 10), (11, 21), (22, 29))
    assert found.rationale is not None and found.rationale.tolist() == [False, True, False]
    # Sentences of which no word is read do not appear.
    cut = by_sentence(WordScores(scores[:2], ("w",) * 2, spans[:2], None), text)
    assert cut.strings == ("good film.",) and cut.rationale is None
    assert by_sentence(WordScores(scores[:0], (), (), None), text).strings == ()


def test_sentences_of_two_texts_stay_apart(tiny_model: Any) -> None:
    example = Example("a", "good. Film", 0, "dull. Plot is", rationale=((6, 10),))
    encoding = encode(tiny_model(), example, "both")
    words = words_of(encoding, np.array([1.0, 0.0, 2.0, 3.0, 0.0, 4.0, 5.0]))
    found = by_sentence(words, example.text, example.text_b or "")
    assert found.strings == ("good.", "film", "dull.", "plot is")
    assert found.scores.tolist() == [1, 2, 3, 5]
    assert found.rationale is not None and found.second == 2
    assert found.rationale.tolist() == [False, True, False, False]


def test_a_rationale_is_taken_away_from_the_evidence(tiny_model: Any) -> None:
    model = tiny_model()
    example = Example("a", "goodly film is dull", 0, "good", rationale=((0, 6), (15, 19)))
    encoding = encode(model, example, "both")
    keep = without_rationale(encoding)
    assert keep is not None
    left = [t for t, kept in zip(tokens_of(model, encoding), keep, strict=True) if kept]
    assert left == ["[CLS]", "film", "is", "[SEP]", "good", "[SEP]"]
    assert without_rationale(encode(model, example, "text_b")) is None
    assert without_rationale(encode(model, Example("b", "good film", 0))) is None


def marked_words(count: int, rationale: list[int] | None) -> WordScores:
    marked = None if rationale is None else np.array(rationale, dtype=bool)
    return WordScores(np.zeros(count), ("w",) * count, ((0, 1),) * count, marked)


def test_mean_share_is_of_examples_with_a_rationale() -> None:
    examples = [marked_words(4, [1, 0, 0, 0]), marked_words(2, None), marked_words(2, [1, 1])]
    assert mean_rationale_share(examples) == pytest.approx((1 / 4 + 1) / 2)
    assert mean_rationale_share(examples[1:2]) is None
    assert mean_rationale_share([]) is None


def test_every_example_is_told_the_share_of_all() -> None:
    examples = [marked_words(4, [1, 0, 0, 0]), marked_words(2, None), marked_words(2, [1, 1])]
    assert [words.share for words in with_mean_share(examples)] == [pytest.approx(0.625)] * 3
    assert [words.share for words in examples] == [None] * 3
    assert [words.share for words in with_mean_share(examples[1:2])] == [None]
