"""Each relevance rule on numbers small enough to work out by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from faithbench.explainers.passes.lrp_rules import (
    AddRule,
    AttentionValueRule,
    HeadRule,
    IdentityRule,
    LinearRule,
    MatmulRule,
    share,
    totals,
)
from faithbench.models.magnitudes import Factors


def numbers(values: Any, *, leaf: bool = False) -> Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=leaf)


def check(found: Tensor, expected: Any) -> None:
    torch.testing.assert_close(found, numbers(expected), rtol=0, atol=1e-12)


def draw(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# share and totals


def test_share_gives_nothing_through_nothing() -> None:
    check(share(numbers([1, 2, 3, 0]), numbers([2, 0, -4, 0])), [0.5, 0, -0.75, 0])


def test_share_leaves_its_arguments_alone() -> None:
    amount, whole = numbers([1, 2]), numbers([0, 4])
    share(amount, whole)
    check(amount, [1, 2])
    check(whole, [0, 4])


def test_totals_are_per_example() -> None:
    check(totals(numbers([[[1, 2], [3, 4]], [[5, 6], [7, -8]]])), [[[10]], [[10]]])
    check(totals(numbers([[1, 2], [3, 4]])), [[3], [7]])


# IdentityRule


def test_identity_passes_relevance_to_the_type_it_came_from() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    out = IdentityRule.apply(x, numbers([5, 6]))
    check(out.detach(), [5, 6])
    out.backward(numbers([0.25, 0.75]))
    assert x.grad.dtype == torch.float32
    assert x.grad.tolist() == [0.25, 0.75]


# LinearRule


def test_linear_by_hand() -> None:
    """Output 0 is reached by 1*3 and -2*-1; nothing positive reaches output 1."""
    x = numbers([[1, -2]], leaf=True)
    out = LinearRule.apply(x, numbers([[3, -1], [-2, 4]]), None)
    check(out.detach(), [[5, -10]])
    out.backward(numbers([[10, 7]]))
    check(x.grad, [[6, 4]])


def test_linear_with_a_part_that_is_not_positive() -> None:
    """Of 1*4 + 2*-1 = 2 only 1*4 counts, and takes all."""
    x = numbers([[1, 2]], leaf=True)
    out = LinearRule.apply(x, numbers([[4, -1]]), None)
    check(out.detach(), [[2]])
    out.backward(numbers([[3]]))
    check(x.grad, [[3, 0]])


@pytest.mark.parametrize("kept", [0, 2, 9, 10], ids="{} rows carry relevance".format)
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear_is_its_definition(with_bias: bool, kept: int) -> None:
    """R_in = x+ (S W+) + x- (S W-) with S = R / (x+ W+ + x- W-); a bias takes no part."""
    x, weight, bias = draw(2, 5, 4, seed=1), draw(3, 4, seed=2), draw(3, seed=3)
    relevance = draw(10, 3, seed=4)
    relevance[kept:] = 0
    relevance = relevance.view(2, 5, 3)
    leaf = x.clone().requires_grad_()
    out = LinearRule.apply(leaf, weight, bias if with_bias else None)
    torch.testing.assert_close(out.detach(), x @ weight.T + (bias if with_bias else 0))
    value = out.detach().clone()
    out.backward(relevance)

    expected = torch.zeros_like(x)
    for example in range(2):
        for token in range(5):
            for output in range(3):
                parts = x[example, token] * weight[output]
                # Equal signs make a positive contribution.
                positive = parts * (parts > 0)
                if positive.sum() > 0:
                    per = relevance[example, token, output] / positive.sum()
                    expected[example, token] += positive * per
    torch.testing.assert_close(leaf.grad, expected, rtol=0, atol=1e-12)
    # The rule works in place on copies only.
    assert torch.equal(leaf.detach(), x)
    assert torch.equal(out.detach(), value)
    assert torch.equal(weight, draw(3, 4, seed=2))


def test_linear_conserves_where_something_positive_arrives() -> None:
    x, weight = draw(6, 8, seed=5), draw(5, 8, seed=6)
    # One shared positive sign reaches every output.
    x[:, 0], weight[:, 0] = x[:, 0].abs(), weight[:, 0].abs()
    leaf = x.requires_grad_()
    relevance = draw(6, 5, seed=7)
    LinearRule.apply(leaf, weight, None).backward(relevance)
    torch.testing.assert_close(leaf.grad.sum(-1), relevance.sum(-1), rtol=0, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_linear_passes_nothing_on_where_all_is_negative_but_for_rounding(
    dtype: torch.dtype,
) -> None:
    """Only the first of six outputs has positive contributions: its 1 is all that arrives."""
    x = draw(5, 384, seed=8).abs().to(dtype).requires_grad_()
    weight = -draw(6, 384, seed=9).abs().to(dtype)
    weight[0] *= -1
    LinearRule.apply(x, weight, None).backward(torch.ones(5, 6, dtype=dtype))
    products = x.detach() * weight[0]
    expected = products / products.sum(-1, keepdim=True)
    torch.testing.assert_close(x.grad, expected, rtol=1e-4, atol=1e-9)


def test_linear_with_products_of_float32() -> None:
    """As good as float32 where all is double; relevance beyond float32's exponents arrives."""
    x, weight = draw(7, 384, seed=10), draw(64, 384, seed=11)
    sizes = numbers([1, 1e-60, 1e60, 1e-20, 1e20, 1, 0])
    relevance = draw(7, 64, seed=12) * sizes[:, None]
    found = []
    low = weight.float()
    for factors in (None, Factors(low, low.abs())):
        leaf = x.clone().requires_grad_()
        out = LinearRule.apply(leaf, weight, None, factors)
        assert torch.equal(out.detach(), x @ weight.T)
        out.backward(relevance)
        assert leaf.grad.dtype == torch.float64
        found.append(leaf.grad / sizes.masked_fill(sizes == 0, 1)[:, None])
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=1e-6)
    assert found[0].abs().amax(-1)[:6].min() > 1e-3
    assert not torch.equal(found[0], found[1])
    # A row without relevance passes none.
    assert not found[1][6].any()


# MatmulRule


def test_matmul_by_hand() -> None:
    """Of 1*3 + 2*4 = 11 each product keeps its part, half for each factor."""
    a, b = numbers([[1, 2]], leaf=True), numbers([[3], [4]], leaf=True)
    out = MatmulRule.apply(a, b)
    check(out.detach(), [[11]])
    out.backward(numbers([[22]]))
    check(a.grad, [[3, 8]])
    check(b.grad, [[3], [8]])


def test_matmul_of_squares_by_hand() -> None:
    """A product that is 0 hands nothing back: the relevance 5 of the last entry is lost."""
    a, b = numbers([[1, 2], [3, -1]], leaf=True), numbers([[1, 1], [1, 3]], leaf=True)
    out = MatmulRule.apply(a, b)
    check(out.detach(), [[3, 7], [2, 0]])
    out.backward(numbers([[3, 7], [2, 5]]))
    # S = [[1, 1], [1, 0]]; S b^T = [[2, 4], [1, 1]]; a^T S = [[4, 1], [1, 2]].
    check(a.grad, [[1, 4], [1.5, -0.5]])
    check(b.grad, [[2, 0.5], [0.5, 3]])
    assert (a.grad.sum() + b.grad.sum()).item() == pytest.approx(12)


def test_matmul_conserves_per_matrix() -> None:
    a, b = draw(2, 3, 4, 5, seed=1).requires_grad_(), draw(2, 3, 5, 6, seed=2).requires_grad_()
    relevance = draw(2, 3, 4, 6, seed=3)
    MatmulRule.apply(a, b).backward(relevance)
    found = a.grad.sum((2, 3)) + b.grad.sum((2, 3))
    torch.testing.assert_close(found, relevance.sum((2, 3)), rtol=0, atol=1e-10)


# AddRule


A = [[4, 0], [1, 3]]
B = [[-1, 0], [1, 1]]
RELEVANCE = [[3, 5], [2, 4]]
OF_A = [[6.4, 0], [1, 3]]
OF_B = [[1.6, 0], [1, 1]]


def added(rows: slice) -> tuple[Tensor, Tensor]:
    a, b = numbers(A[rows], leaf=True), numbers(B[rows], leaf=True)
    out = AddRule.apply(a, b)
    check(out.detach(), [[3, 0], [2, 4]][rows])
    out.backward(numbers(RELEVANCE[rows]))
    return a.grad, b.grad


def test_add_by_hand() -> None:
    """Contributions 4 and -1 share the example's relevance 8 by size, 4 to 1."""
    of_a, of_b = added(slice(0, 1))
    check(of_a, OF_A[:1])
    check(of_b, OF_B[:1])
    of_a, of_b = added(slice(1, 2))
    check(of_a, OF_A[1:])
    check(of_b, OF_B[1:])


def test_add_is_per_example() -> None:
    of_a, of_b = added(slice(0, 2))
    check(of_a, OF_A)
    check(of_b, OF_B)


def test_add_needs_equal_shapes() -> None:
    with pytest.raises(ValueError, match=r"needs equal shapes, found .*\[1, 2\].*\[2\]"):
        AddRule.apply(numbers([[1, 2]], leaf=True), numbers([1, 2]))


# HeadRule


def passed(heads: list[float], groups: list[list[float]], *, released: bool = False) -> list[float]:
    """Apply a rule to one block whose heads have one token and one number each."""
    rule = HeadRule(numbers(groups)[:, None], released=released)
    relevance = numbers(heads)[None, :, None, None]
    found = rule.apply(0, relevance).flatten().tolist()
    check(relevance.flatten(), heads)
    return found


def test_groups_of_equal_sign_share_by_their_sums() -> None:
    """Heads 1 and 2 take the whole 8 as 1 to 2."""
    found = passed([1, 2, 5], [[1, 0, 0], [0, 1, 0]])
    assert found == pytest.approx([8 / 3, 16 / 3, 0])


def test_groups_of_opposite_sign_still_conserve() -> None:
    """3 and -1 share the whole 7 by size; the quotient by |3 - 1| would give 14."""
    found = passed([3, -1, 5], [[1, 0, 0], [0, 1, 0]])
    assert found == pytest.approx([5.25, 1.75, 0])


def test_a_negative_whole_is_conserved() -> None:
    found = passed([3, -1, -6], [[1, 0, 0], [0, 1, 0]])
    assert found == pytest.approx([-3, -1, 0])


def test_counts_are_weights() -> None:
    """A head that follows two relations counts twice: 2*1 and 1*2, scaled to 8."""
    assert passed([1, 2, 5], [[2, 1, 0]]) == pytest.approx([4, 4, 0])


def test_a_head_in_two_groups_gets_both_parts() -> None:
    """The groups hold 1+2 = 3 and 2+5 = 7, so 10 in all: scaled by 8 / 10."""
    assert passed([1, 2, 5], [[1, 1, 0], [0, 1, 1]]) == pytest.approx([0.8, 3.2, 4])


def test_an_empty_group_changes_nothing() -> None:
    assert passed([1, 2, 5], [[2, 1, 0], [0, 0, 0]]) == pytest.approx([4, 4, 0])


def test_all_heads_let_everything_pass() -> None:
    assert passed([1, -2, 5], [[1, 1, 1]]) == pytest.approx([1, -2, 5])


def test_released_mask_is_zero_or_one() -> None:
    """Counts are not weights there, groups are united, and nothing is renormalised."""
    assert passed([1, 2, 5], [[2, 0, 1]], released=True) == [1, 0, 5]
    assert passed([1, 2, 5], [[2, 0, 0], [1, 1, 0]], released=True) == [1, 2, 0]
    assert passed([1, 2, 5], [[0, 0, 0]], released=True) == [0, 0, 0]


def test_renormalisation_is_per_example_and_per_block() -> None:
    rule = HeadRule(numbers([[[1, 0], [0, 1]]]))
    relevance = numbers([[[[1, 2]], [[3, 4]]], [[[-5, 1]], [[2, 4]]]])
    # The wholes are 10 and 2, of which the first heads hold 3 and -4.
    check(rule.apply(0, relevance), [[[[10 / 3, 20 / 3]], [[0, 0]]], [[[2.5, -0.5]], [[0, 0]]]])
    check(rule.apply(1, relevance)[0], [[[0, 0]], [[30 / 7, 40 / 7]]])
    torch.testing.assert_close(rule.apply(1, relevance).sum((1, 2, 3)), relevance.sum((1, 2, 3)))


def test_a_block_is_open_by_any_group() -> None:
    groups = torch.tensor([[[0, 1], [0, 0], [0, 0]], [[0, 0], [2, 0], [0, 0]]])
    rule = HeadRule(groups)
    assert [rule.opens(block).tolist() for block in range(3)] == [[True], [True], [False]]
    assert HeadRule(groups, released=True).opens(2).all()


def test_examples_can_have_heads_of_their_own() -> None:
    """The first example passes head 0, the second both (2 to 1), the third none."""
    groups = numbers([[[[1, 0]]], [[[2, 1]]], [[[0, 0]]]])
    relevance = numbers([[[[1]], [[3]]], [[[4]], [[4]]], [[[5]], [[6]]]])
    rule = HeadRule(groups)
    assert rule.opens(0).tolist() == [True, True, False]
    check(rule.apply(0, relevance).flatten(1), [[4, 0], [16 / 3, 8 / 3], [0, 0]])
    released = HeadRule(groups, released=True)
    check(released.apply(0, relevance).flatten(1), [[1, 0], [4, 4], [0, 0]])
    assert released.opens(0).all()


# AttentionValueRule


@pytest.mark.parametrize(
    ("heads", "to_a", "to_v"),
    [
        (None, [[[[3, 8]], [[1, 1]]]], [[[[3], [8]], [[1], [1]]]]),
        (HeadRule(torch.tensor([[[1, 0]]]), released=True), [[[[3, 8]], [[0, 0]]]], None),
        # All 26 through the first head: 22 becomes 26.
        (HeadRule(torch.tensor([[[1, 0]]])), [[[[39 / 11, 104 / 11]], [[0, 0]]]], None),
    ],
    ids=["no rule", "released", "paper"],
)
def test_attention_times_values(heads: HeadRule | None, to_a: Any, to_v: Any) -> None:
    """Two heads, one query, two keys; what arrived is kept unmasked and whole."""
    a = numbers([[[[1, 2]], [[1, 1]]]], leaf=True)
    v = numbers([[[[3], [4]], [[2], [2]]]], leaf=True)
    arrived: dict[int, Tensor] = {}
    out = AttentionValueRule.apply(a, v, 0, heads, arrived)
    check(out.detach(), [[[[11]], [[4]]]])
    out.backward(numbers([[[[22]], [[4]]]]))
    check(a.grad, to_a)
    check(v.grad, to_v or a.grad.mT.tolist())
    if heads is not None:
        check(arrived[0], [[[[6, 16]], [[2, 2]]]])
