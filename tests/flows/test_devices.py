"""Every tensor is made where its input is: a missing device= is caught without a GPU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.explainers.passes.capture import run_capture
from faithbench.explainers.passes.heads import (
    HeadStatistics,
    PositionFacts,
    cached_heads,
    write_heads,
)
from faithbench.explainers.passes.lrp import run_relevance
from faithbench.explainers.passes.lrp_rules import HeadRule
from faithbench.explainers.selection import find_explainers
from faithbench.models.encoding import collate
from faithbench.models.engine import Engine
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.training.head_statistics import strongest_keys
from tests.support.explainers import USUAL


@pytest.mark.parametrize("name", USUAL)
def test_explainers_create_tensors_on_the_model_s_device(
    name: str, tiny_model, batch_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path))
    model = replace(tiny_model(), name="guarded")  # a model of its own shares no earlier pass
    write_heads(some_heads(model), cached_heads(model))
    batch = batch_of(model, ["good film", "the plot is not very dull"], [0, 1])
    (chosen,) = find_explainers(name)
    with every_tensor_placed():
        scores = chosen.explainer(Session(model), batch)
    assert scores.shape == (2, 8)
    assert torch.isfinite(scores[batch.erasable]).all()


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_passes_create_tensors_on_the_model_s_device(
    architecture: str, tiny_model, batch_of
) -> None:
    model = tiny_model(architecture)
    batch = batch_of(model, ["good film", "the plot is not very dull"], [0, 1])
    groups = torch.tensor([[[1, 0, 1, 0], [0, 1, 0, 1]], [[0, 0, 0, 1], [1, 1, 0, 0]]])
    plain, seen = run_relevance(model.eager(), batch), run_capture(model.eager(), batch)
    with every_tensor_placed():
        again = collate(model, batch.encodings, [0, 1], batch.seeds)
        captured = run_capture(model.eager(), batch)
        unmasked = run_relevance(model.eager(), batch)
        for rule in (HeadRule(groups), HeadRule(groups, released=True)):
            assert len(run_relevance(model.eager(), batch, rule).arrived) == 2
        _, logits = Engine(model)._forward([(e.ids, e.types) for e in batch.encodings])
        assert logits.shape == (2, 2)
        assert [k.shape for k in strongest_keys(model, batch.encodings)] == [(2, 4, 4), (2, 4, 8)]
    assert torch.equal(again.ids, batch.ids)
    assert torch.equal(captured.embedding_gradients, seen.embedding_gradients)
    assert torch.equal(unmasked.hidden[0], plain.hidden[0])


@pytest.mark.parametrize(
    "make",
    [
        lambda **where: torch.zeros(2, **where),
        lambda **where: torch.eye(2, **where),
        lambda **where: torch.tensor([1.0], **where),
        lambda **where: torch.arange(2, **where),
        lambda **where: torch.full((2,), 1.0, **where),
        lambda **where: torch.rand(2, **where),
    ],
    ids=["zeros", "eye", "tensor", "arange", "full", "rand"],
)
def test_a_tensor_that_is_not_placed_is_caught(make: Callable[..., torch.Tensor]) -> None:
    """Also in a backward pass, where the relevance rules run."""

    class Rule(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, relevance: torch.Tensor) -> torch.Tensor:
            return relevance + make().sum()

    x = torch.ones(3, requires_grad=True)
    with every_tensor_placed():
        assert torch.zeros_like(make(device="cpu")).device == x.device
        with pytest.raises(AssertionError, match=r"torch\.\w+ without a device in .*test_devices"):
            make()
        with pytest.raises(AssertionError, match=r"torch\.\w+ without a device in .*test_devices"):
            torch.autograd.grad(Rule.apply(x).sum(), x)
    assert make().device.type == "cpu", "torch is itself again"


FACTORIES = (
    *("tensor", "as_tensor", "scalar_tensor"),
    *("zeros", "ones", "full", "empty", "eye", "arange", "linspace", "logspace"),
    *("rand", "randn", "randint", "randperm", "tril_indices", "triu_indices"),
)
# These fill a table of scores from the engine's answers, which are numpy arrays: their scores
# are on the CPU by design, where the run wants them, and meet no tensor of the model.
ON_THE_CPU = {
    "faithbench.explainers.per_example",
    "faithbench.explainers.controls",
    "faithbench.explainers.perturbation",
}


@contextmanager
def every_tensor_placed() -> Iterator[None]:
    """Refuse faithbench's code a tensor without a device: beside a CUDA model it would be lost.

    Libraries may create a tensor and move it afterwards. A draw from a generator is where the
    generator is: on the CPU by design, so that every device sees the same random numbers.
    """
    with pytest.MonkeyPatch.context() as patch:
        for name in FACTORIES:
            patch.setattr(torch, name, placed(name, getattr(torch, name)))
        yield


def placed(name: str, make: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def guarded(*args: Any, **options: Any) -> torch.Tensor:
        who = sys._getframe(1).f_globals["__name__"]
        ours = who.startswith("faithbench") or who == __name__
        if ours and who not in ON_THE_CPU and not options.keys() & {"device", "generator"}:
            raise AssertionError(f"torch.{name} without a device in {who}")
        return make(*args, **options)

    return guarded


def some_heads(model: Model) -> HeadStatistics:
    """Return statistics by which three of the tiny model's eight heads are positional."""
    return HeadStatistics(
        task="mini",
        model=model.name,
        weights_sha256=model.weights_sha256,
        parser="none",
        split="train",
        sentences=1,
        data_sha256="",
        relations={},
        positions=PositionFacts(
            rows=10,
            best_offset=((1, 1, -1, 1), (1, 1, 1, 1)),
            share=((0.9, 0.2, 0.9, 0.2), (0.2, 0.2, 0.9, 0.2)),
        ),
        thresholds={"paper": (0.1, 0.8), "calibrated": (0.1, 0.8)},
    )
