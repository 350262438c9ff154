"""Rationales by hand, and as the released code of SaLoss extracts them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.models.encoding import encode
from faithbench.training.fresh.extraction import (
    Extraction,
    best_window,
    choose,
    kept_count,
    rationale,
    top_words,
)

# Scores, words, ratio, and what the released thresholders return.
RELEASED: list[tuple[list[float], int, float, list[int], list[int]]] = [
    ([0.248, 0.937, 0.622, 0.259, 0.69, 0.483, 0.965, 0.142], 6, 0.1, [6], [6]),
    (
        [
            0.753,
            0.47,
            0.297,
            0.576,
            0.757,
            0.975,
            0.142,
            0.393,
            0.838,
            0.984,
            0.252,
            0.895,
            0.925,
            0.766,
            0.783,
            0.076,
            0.613,
            0.489,
            0.45,
            0.34,
            0.081,
            0.762,
            0.929,
            0.934,
            0.941,
            0.671,
        ],
        24,
        0.2,
        [9, 5, 24, 23, 22],
        [21, 22, 23, 24, 25],
    ),
    (
        [
            0.633,
            0.217,
            0.788,
            0.35,
            0.094,
            0.88,
            0.002,
            0.59,
            0.036,
            0.484,
            0.686,
            0.528,
            0.06,
            0.219,
            0.846,
            0.925,
            0.852,
            0.833,
            0.757,
        ],
        17,
        0.5,
        [15, 5, 16, 14, 17, 2, 18, 10, 0],
        [10, 11, 12, 13, 14, 15, 16, 17, 18],
    ),
    (
        [
            0.897,
            0.85,
            0.949,
            0.203,
            0.089,
            0.232,
            0.955,
            0.741,
            0.151,
            0.138,
            0.06,
            0.183,
            0.019,
            0.476,
            0.827,
            0.489,
            0.814,
            0.453,
            0.127,
            0.114,
            0.572,
            0.323,
            0.843,
            0.089,
            0.84,
            0.48,
        ],
        24,
        0.1,
        [6, 2, 0],
        [0, 1, 2],
    ),
    ([0.358, 0.109, 0.224, 0.85, 0.816], 3, 0.2, [3], [3]),
    (
        [
            0.608,
            0.142,
            0.076,
            0.726,
            0.625,
            0.905,
            0.605,
            0.375,
            0.293,
            0.639,
            0.03,
            0.682,
            0.416,
            0.893,
            0.939,
            0.222,
            0.221,
            0.968,
            0.815,
            0.694,
            0.811,
            0.793,
        ],
        20,
        0.5,
        [17, 14, 5, 13, 18, 20, 21, 3, 19, 11],
        [12, 13, 14, 15, 16, 17, 18, 19, 20, 21],
    ),
]


@pytest.mark.parametrize(("scores", "length", "ratio", "topk", "contiguous"), RELEASED)
def test_the_released_thresholders_are_reproduced(
    scores: list[float], length: int, ratio: float, topk: list[int], contiguous: list[int]
) -> None:
    """Top words come in the order of their scores there."""
    count = kept_count(ratio, length)
    assert choose(np.array(scores), count, "topk").tolist() == topk
    assert choose(np.array(scores), count, "contiguous").tolist() == contiguous


@pytest.mark.parametrize(
    ("ratio", "units", "count"),
    [(0.2, 5, 1), (0.2, 6, 2), (0.1, 30, 3), (0.7, 10, 7), (0.2, 1, 1), (0.2, 0, 1), (1, 4, 4)],
)
def test_a_share_is_rounded_up(ratio: float, units: int, count: int) -> None:
    assert kept_count(ratio, units) == count


def test_ties_go_to_the_earlier_word_and_window() -> None:
    assert top_words(np.array([1.0, 2.0, 2.0, 1.0]), 3).tolist() == [1, 2, 0]
    # .1 + .2 + .3 and .3 + .2 + .1 differ in the last bit.
    assert best_window(np.array([0.1, 0.2, 0.3, 0.2, 0.1]) * 1e-9, 4).tolist() == [0, 1, 2, 3]
    assert best_window(np.array([0.1, 0.2, 0.3, -9, 0.3, 0.2, 0.1]), 3).tolist() == [0, 1, 2]
    assert best_window(np.array([-1.0, -1.0, -0.5]), 2).tolist() == [1, 2]
    assert best_window(np.array([1.0, 2.0]), 5).tolist() == [0, 1], "no more than there are"


def extracted(model: Any, text: str, scores: list[float], how: Extraction, **more: Any) -> Example:
    evidence = more.pop("evidence", "text")
    encoding = encode(model, Example("e", text, 1, **more), evidence)
    return rationale(encoding, np.array(scores), how, model.tokenizer.unk_token_id)


def test_pieces_are_added_up_and_words_keep_their_order(tiny_model: Any) -> None:
    """`goodly` is good + ##ly: 2 + 2 is above the 3 of `film`."""
    how, scores = Extraction(0.5), [3.0, 2.0, 2.0, 0.0, 0.0]
    kept = extracted(tiny_model(), "Film goodly the plot", scores, how)
    assert kept == Example("e", "Film goodly", 1), "as it is spelt in the text"
    one = extracted(tiny_model(), "Film goodly the plot", scores, Extraction(0.25))
    assert one.text == "goodly"
    window = extracted(tiny_model(), "Film goodly the plot", scores, Extraction(0.5, "contiguous"))
    assert window.text == "Film goodly"
    apart = [3.0, 0.0, 0.0, 2.0, 2.0]
    assert extracted(tiny_model(), "Film goodly the plot", apart, how).text == "Film the"
    window = extracted(tiny_model(), "Film goodly the plot", apart, Extraction(0.5, "contiguous"))
    assert window.text == "the plot"


def test_the_released_form_counts_pieces_and_never_takes_the_last_word(tiny_model: Any) -> None:
    """Five pieces but one, half of them: two words, the better one first."""
    scores = [1.0, 2.0, 2.0, 0.0, 9.0]
    released = Extraction(0.5, form="released")
    assert extracted(tiny_model(), "film goodly the plot", scores, released).text == "goodly film"
    window = Extraction(0.75, "contiguous", "released")  # three of four words: the first three
    assert extracted(tiny_model(), "film goodly the plot", scores, window).text == "film goodly the"
    assert extracted(tiny_model(), "film", [1.0], released).text == "film", "nothing else is there"


def test_a_query_stays_whole_and_texts_are_cut_apart(tiny_model: Any) -> None:
    texts = {"text": "good film the plot", "text_b": "a dull plot"}
    one = extracted(tiny_model(), scores=[1.0, 0, 0, 0], how=Extraction(0.2), **texts)
    assert (one.text, one.text_b) == ("good", "a dull plot")
    scores = [0.0, 1, 0, 0, 0, 9, 0]
    both = extracted(tiny_model(), scores=scores, how=Extraction(0.2), evidence="both", **texts)
    assert (both.text, both.text_b) == ("film", "dull"), "9 does not count for the other text"
    second = extracted(
        tiny_model(), scores=[0.0, 0, 1], how=Extraction(0.2), evidence="text_b", **texts
    )
    assert (second.text, second.text_b) == ("good film the plot", "plot")


def test_words_that_cannot_be_read_are_not_left_alone(tiny_model: Any) -> None:
    """`zzz` is unknown to the tokenizer: alone, it would be no input."""
    scores = [9.0, 1.0, 2.0, 0.0]
    assert extracted(tiny_model(), "zzz good film the", scores, Extraction(0.2)).text == "film"
    assert extracted(tiny_model(), "zzz good film the", scores, Extraction(0.5)).text == "zzz film"


def test_words_beyond_the_models_input_are_not_chosen(tiny_model: Any) -> None:
    """62 of 80 words are read: a fifth of those is 13."""
    text = " ".join(f"w{i % 60}" for i in range(80))
    kept = extracted(tiny_model(), text, list(map(float, range(62))), Extraction(0.2))
    assert kept.text.split() == [f"w{i % 60}" for i in range(49, 62)]


@pytest.mark.parametrize("ratio", [0, -0.1, 1.01, math.nan, math.inf])
def test_what_is_no_share_is_refused(ratio: float) -> None:
    with pytest.raises(FaithbenchError, match=r"--ratio .* should be a share of the words"):
        Extraction(ratio)


def test_unknown_choices_are_refused() -> None:
    with pytest.raises(FaithbenchError, match="no selection of words named 'topp'; did you mean"):
        Extraction(0.2, "topp")
    with pytest.raises(FaithbenchError, match="no form of FRESH named 'code'"):
        Extraction(0.2, form="code")


def test_evidence_without_a_word_is_one_line(tiny_model: Any) -> None:
    """Tokens that belong to no word: what a tokenizer might make of marks we do not know."""
    from dataclasses import replace

    encoding = encode(tiny_model(), Example("e", "good film", 1))
    bare = replace(encoding, words=np.full_like(encoding.words, -1))
    with pytest.raises(FaithbenchError, match="example 'e': the support model reads no word of"):
        rationale(bare, np.zeros(2), Extraction(0.2))
