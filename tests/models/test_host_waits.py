"""Every way to ask a tensor for a value counts as one wait, and nothing else does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from faithbench.models.host_waits import count_host_waits

X = torch.tensor([3.0, 0.0, 3.0])
MASK = X > 0


@pytest.mark.parametrize("inference", [False, True])
@pytest.mark.parametrize(
    ("work", "name"),
    [
        (lambda x: x[0].item(), "item|_local_scalar_dense"),
        (lambda x: float(x[0]), "item|_local_scalar_dense"),
        (lambda x: bool(MASK.any()), "item|is_nonzero|_local_scalar_dense"),
        (lambda x: x.nonzero(), "nonzero"),
        (lambda x: torch.where(MASK), "nonzero|where"),
        (lambda x: x.unique(), "_unique2"),
        (lambda x: x.unique_consecutive(), "unique_consecutive"),
        (lambda x: x[MASK], "index"),
        (lambda x: x.clone().index_put_((MASK,), torch.ones(2)), "index_put"),
        (lambda x: x.masked_select(MASK), "masked_select"),
        (lambda x: torch.equal(x, x), "equal"),
        (lambda x: x.repeat_interleave(torch.tensor([1, 2, 0])), "repeat_interleave"),
        (lambda x: x.cpu(), "cpu"),
        (lambda x: x.to("cpu"), "to"),
        (lambda x: x.tolist(), "tolist"),
    ],
)
def test_asking_for_values_is_one_wait(
    work: Callable[[torch.Tensor], object], name: str, inference: bool
) -> None:
    with torch.inference_mode(inference), count_host_waits() as waits:
        work(X)
    assert waits.count == 1, waits.places
    assert any(waits.places[0].startswith(part) for part in name.split("|"))


def test_work_that_stays_on_the_device_has_none() -> None:
    with count_host_waits() as waits:
        y = torch.where(MASK, X, 1).masked_fill(MASK, 2)[torch.tensor([0, 2])]
        y = y.to(X.device).double().softmax(dim=0)
    assert waits.count == 0, waits.places
    assert waits.operations >= 5
    assert y.dtype == torch.float64


def test_backward_passes_are_seen() -> None:
    x = X.clone().requires_grad_()
    picked = x[MASK]
    with count_host_waits() as waits:
        torch.autograd.grad(picked.sum(), x)
    assert [place.split()[0] for place in waits.places] == ["index_put"]
