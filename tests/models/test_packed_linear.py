"""Joined linear layers against the layers themselves, packed and plain."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from faithbench.models import packed_linear as dense
from faithbench.models.packed_linear import Dense, join_linear


@pytest.fixture
def layers() -> tuple[nn.Linear, nn.Linear]:
    torch.manual_seed(0)
    return nn.Linear(8, 4), nn.Linear(8, 6)


@pytest.fixture(params=[False, True], ids=["plain", "packed"])
def joined(
    request: pytest.FixtureRequest,
    layers: tuple[nn.Linear, nn.Linear],
    monkeypatch: pytest.MonkeyPatch,
) -> Dense:
    if request.param and not hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        pytest.skip("this build of PyTorch cannot pack linear layers")
    monkeypatch.setattr(dense, "packs", lambda weight: request.param)
    found = join_linear(*layers, pack=True)
    assert found.packed is request.param
    return found


def both(layers: tuple[nn.Linear, nn.Linear], x: Tensor) -> Tensor:
    return torch.cat([layer(x) for layer in layers], dim=-1)


@torch.inference_mode()
def test_it_gives_what_its_layers_give(layers, joined: Dense) -> None:
    x = torch.randn(5, 8)
    torch.testing.assert_close(joined(x), both(layers, x))


@pytest.mark.parametrize("activation", [F.gelu, nn.GELU(approximate="tanh"), torch.relu])
@torch.inference_mode()
def test_an_activation_follows(layers, joined: Dense, activation) -> None:
    x = torch.randn(5, 8)
    torch.testing.assert_close(joined.activated(x, activation), activation(both(layers, x)))


@torch.inference_mode()
def test_an_addition_follows_and_changes_nothing(layers, joined: Dense) -> None:
    x, other = torch.randn(5, 8), torch.randn(5, 10)
    before = other.clone()
    torch.testing.assert_close(joined.added(x, other), both(layers, x) + other)
    assert torch.equal(other, before)


def test_what_asks_for_no_packing_is_plain(layers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dense, "packs", lambda weight: True)
    assert not join_linear(*layers, pack=False).packed


def test_double_precision_is_never_packed() -> None:
    assert not dense.packs(torch.zeros(2, 2, dtype=torch.float64))


def test_layers_of_another_kind_are_refused(layers) -> None:
    class Own(nn.Linear):
        pass

    with pytest.raises(AttributeError, match="plain linear"):
        join_linear(layers[0], Own(8, 4), pack=False)
