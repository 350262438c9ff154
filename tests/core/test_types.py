"""The nouns of a run: derived values, and the order that scores give."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from faithbench.core.types import Answer, Attribution, Case, Encoding, Example, Outputs, rank

EXAMPLE = Example("a", "good film", 1)


def test_rank_is_by_descending_score() -> None:
    assert rank(np.array([0.1, -2.0, 0.5, 0.0])).tolist() == [2, 0, 3, 1]


def test_ties_go_to_the_earlier_token() -> None:
    assert rank(np.array([1.0, 2.0, 1.0, 2.0, 1.0])).tolist() == [1, 3, 0, 2, 4]
    # Long enough for a sort that is not stable to show.
    assert rank(np.tile([0.0, 2.0, 1.0], 40)).tolist() == [
        *range(1, 120, 3),
        *range(2, 120, 3),
        *range(0, 120, 3),
    ]
    assert rank(np.array([0.0, -0.0, 0.0])).tolist() == [0, 1, 2]


def test_a_case_orders_positions_by_score() -> None:
    every = np.array([9.0, 0.5, 2.0, 0.5, 9.0])
    positions = np.array([1, 2, 3])
    case = Case(every[positions], positions, math.log(0.25), every, positions)
    assert (case.n, case.order.tolist()) == (3, [2, 1, 3])
    assert case.probability == pytest.approx(0.25)


def test_outputs_are_kept_as_logarithms() -> None:
    outputs = Outputs(np.log([0.5, 0.125]), np.array([True, False]))
    assert outputs.probability.tolist() == pytest.approx([0.5, 0.125])


def test_an_attribution_counts_erasable_tokens_only() -> None:
    encoding = Encoding(
        example=EXAMPLE,
        ids=np.array([101, 7, 8, 102]),
        types=np.zeros(4, dtype=np.int64),
        erasable=np.array([False, True, True, False]),
        words=np.array([-1, 0, 1, -1]),
        spans=((0, 0), (0, 4), (5, 9), (0, 0)),
        word_spans=((0, 4), (5, 9)),
        truncated=0,
    )
    scores = np.array([5.0, 0.1, -0.2, 5.0])
    attribution = Attribution(encoding, 1, scores, seconds=0.1, forwards=1, backwards=0)
    assert attribution.scores.tolist() == [0.1, -0.2]


def test_examples_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        EXAMPLE.label = 0
    assert (EXAMPLE.text_b, EXAMPLE.rationale, EXAMPLE.answers) == (None, None, ())
    assert Answer(5, "film") == Answer(5, "film")
