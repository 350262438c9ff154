"""Masks that are corrupted (Song et al., Figure 4): which heads are switched on, and refusals."""

from __future__ import annotations

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.passes.heads import (
    corrupted_masks,
    corruption,
    count_heads,
    named_masks,
)
from tests.explainers.passes.test_heads import facts

# By the paper's thresholds, two blocks of three heads: four are in the mask, two are left out.
OUT = ((1, 0), (1, 2))


def test_nothing_is_switched_on_at_0_percent() -> None:
    mask = named_masks(facts(), "paper", "both")
    assert mask == [[[2, 0, 1], [0, 1, 0]], [[0, 1, 0], [0, 0, 0]]]
    assert corrupted_masks(facts(), "paper", 0, [1, 2, 3]) == [mask] * 3


def test_every_head_is_on_at_100_percent() -> None:
    for groups in corrupted_masks(facts(), "paper", 100, range(5)):
        assert groups[:2] == named_masks(facts(), "paper", "both")
        assert groups[2] == [[0, 0, 0], [1, 0, 1]], "what was left out is a group of its own"
        assert count_heads(groups) == 6


@pytest.mark.parametrize(
    ("percent", "count"), [(20, 0), (25, 0), (26, 1), (50, 1), (74, 1), (75, 2)]
)
def test_as_many_are_switched_on_as_the_share_comes_to(percent: int, count: int) -> None:
    """Of two heads that are left out; halves are rounded to the even number, as Python does."""
    for groups in corrupted_masks(facts(), "paper", percent, range(10)):
        assert count_heads(groups) == 4 + count
        on = {(b, h) for b in range(2) for h in range(3) if len(groups) > 2 and groups[2][b][h]}
        assert len(on) == count and on <= set(OUT)


def test_a_seed_draws_the_same_heads_whatever_its_company() -> None:
    drawn = [str(groups) for groups in corrupted_masks(facts(), "paper", 50, range(20))]
    assert len(set(drawn)) == 2, "either of the two"
    again = [str(groups) for groups in corrupted_masks(facts(), "paper", 50, [7, 3])]
    assert again == [drawn[7], drawn[3]]


def test_a_mask_of_all_heads_has_nothing_to_corrupt() -> None:
    assert corrupted_masks(facts(thresholds={"calibrated": None}), "calibrated", 50, [1]) == [
        [[[1, 1, 1], [1, 1, 1]]]
    ]


@pytest.mark.parametrize(
    ("mask", "percent"),
    [("corrupted-0", 0), ("corrupted-30", 30), ("corrupted-100", 100), ("both", None),
     ("random", None), ("ones", None)],
)  # fmt: skip
def test_the_share_is_in_the_name_of_the_mask(mask: str, percent: int | None) -> None:
    assert corruption(mask) == percent


@pytest.mark.parametrize(
    "mask",
    [f"corrupted{end}" for end in ("-x", "-130", "-101", "-", "", "--5", "-1.5", "-30%", "- 3")],
)
def test_a_share_that_is_none_is_refused_in_one_line(mask: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        corruption(mask)
    assert str(caught.value) == (
        f"mask {mask!r} is not corrupted-<percent>, such as corrupted-30, of at most 100"
    )
