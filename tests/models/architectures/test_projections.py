"""Projections onto the simplex: reference values, gradients, padding and names."""

from __future__ import annotations

import json

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.models.architectures.projections import project, projection_name
from tests.support.paths import GOLDEN

CASES = json.loads((GOLDEN / "metrics" / "projections.json").read_text())
NAMES = ("softmax", "sparsemax", "entmax15", "sparsegen:-5", "sparsegen:0.5", "sparsegen:0.9")


def whole(name: str, scores: torch.Tensor) -> torch.Tensor:
    return project(name, scores, torch.ones_like(scores, dtype=torch.bool))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case['z'])} scores")
def test_the_reference_values(case: dict) -> None:
    expected = {name: case[name] for name in ("softmax", "sparsemax", "entmax15")}
    expected |= {f"sparsegen:{x}": values for x, values in case["sparsegen_lin"].items()}
    assert len(expected) == 9
    scores = torch.tensor(case["z"], dtype=torch.float64)
    for name, values in expected.items():
        found = whole(name, scores)
        wanted = torch.tensor(values, dtype=torch.float64)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
        if name != "softmax":
            assert torch.equal(found == 0, wanted == 0), f"the support of {name}"


@pytest.mark.parametrize("name", NAMES)
def test_first_and_second_gradients(name: str) -> None:
    torch.manual_seed(0)
    scores = torch.randn(4, 7, dtype=torch.float64, requires_grad=True)
    there = torch.ones(4, 7, dtype=torch.bool)
    there[1, 4:] = there[2, 1:] = there[3] = False

    def masked(scores: torch.Tensor) -> torch.Tensor:
        return project(name, scores, there)

    assert torch.autograd.gradcheck(masked, scores)
    assert torch.autograd.gradgradcheck(lambda scores: masked(scores).square(), scores)


@pytest.mark.parametrize("name", NAMES)
def test_padding_is_exactly_0_and_changes_nothing(name: str) -> None:
    torch.manual_seed(1)
    scores = torch.randn(2, 3, 5, dtype=torch.float64)
    padded = torch.cat([scores, torch.full((2, 3, 4), 50.0, dtype=torch.float64)], dim=2)
    there = torch.arange(9) < 5
    found = project(name, padded, there.expand(2, 3, 9))
    torch.testing.assert_close(found[..., :5], whole(name, scores), rtol=0, atol=1e-15)
    assert (found[..., 5:] == 0).all()
    torch.testing.assert_close(found.sum(dim=-1), torch.ones(2, 3, dtype=torch.float64))


@pytest.mark.parametrize("name", NAMES)
def test_a_row_that_is_all_padding_is_all_0(name: str) -> None:
    scores = torch.tensor([[1.0, 2.0], [3.0, 1.0]], requires_grad=True)
    found = project(name, scores, torch.tensor([[False, False], [True, False]]))
    assert found.tolist() == [[0, 0], [1, 0]]
    (gradient,) = torch.autograd.grad(found[:, 0].sum(), scores)
    assert gradient.abs().max() == 0


@pytest.mark.parametrize("name", NAMES)
def test_equal_scores_share_and_large_ones_do_not_overflow(name: str) -> None:
    assert whole(name, torch.tensor([7.0, 7.0, 7.0, 7.0])).tolist() == [0.25] * 4
    assert whole(name, torch.tensor([3e4, -3e4, 3e4])).tolist() == pytest.approx([0.5, 0, 0.5])


def test_a_higher_lambda_is_sparser_and_0_is_sparsemax() -> None:
    torch.manual_seed(2)
    scores = torch.randn(20, 30, dtype=torch.float64)
    names = [f"sparsegen:{x}" for x in (-10, -1, 0, 0.5, 0.9)]
    sizes = [(whole(name, scores) > 0).sum().item() for name in names]
    assert sizes == sorted(sizes, reverse=True) and len(set(sizes)) == 5
    assert torch.equal(whole("sparsegen:0", scores), whole("sparsemax", scores))


def test_equal_projections_have_equal_names() -> None:
    assert projection_name("entmax15") == "entmax15"
    assert {projection_name(f"sparsegen:{x}") for x in ("0.5", ".50", "5e-1")} == {"sparsegen:0.5"}
    assert projection_name("sparsegen:-10.0") == "sparsegen:-10"


@pytest.mark.parametrize("number", ["1", "1.5", "inf", "-inf", "nan", "much", ""])
def test_a_lambda_of_1_or_more_or_none_is_refused(number: str) -> None:
    with pytest.raises(FaithbenchError, match="needs a lambda below 1, such as") as error:
        projection_name(f"sparsegen:{number}")
    assert "\n" not in str(error.value)


def test_an_unknown_projection_is_refused() -> None:
    with pytest.raises(FaithbenchError, match="no projection named 'sparsmax'; did you mean"):
        projection_name("sparsmax")
    with pytest.raises(FaithbenchError, match="needs a lambda below 1"):
        projection_name("sparsegen")
    with pytest.raises(FaithbenchError, match="no projection named 'softmax:2'"):
        projection_name("softmax:2")
