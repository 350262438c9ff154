"""The optional members of explainers, each looked up in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.explainers import protocol
from faithbench.explainers.gradient import DeepShap, Gradient
from faithbench.explainers.lrp import LrpMask
from faithbench.models.session import Session
from faithbench.testing.tiny import tiny_model as build_tiny


@dataclass(frozen=True)
class Plain:
    def __call__(self, session: Session, batch: Any) -> torch.Tensor:
        return torch.zeros(batch.ids.shape)


@dataclass(frozen=True)
class Everything(Plain):
    stochastic: ClassVar[bool] = True
    needs_rationale: ClassVar[bool] = True
    reads_model: ClassVar[bool] = False
    replayed: ClassVar[bool] = True
    seconds: float | None = 2.5

    def check(self, model: Any, encodings: Any) -> None:
        raise FaithbenchError(f"{len(encodings)} are too many")

    def gaps(self, session: Session, batch: Any, scores: torch.Tensor) -> torch.Tensor:
        return scores.sum(dim=1) - 1

    def assets(self, model: Any) -> dict[str, str]:
        return {"table": "abc"}

    @property
    def needs_training(self) -> bool:
        return True

    def with_training(self, train: Any, model: Any) -> Plain:
        return Plain()


def test_an_explainer_without_members_has_the_usual_answers(tiny_model, batch_of) -> None:
    session = Session(tiny_model())
    batch = batch_of(session.model, ["good", "dull film"])
    plain = Plain()
    assert not protocol.is_stochastic(plain)
    assert not protocol.needs_rationale(plain)
    assert protocol.reads_model(plain)
    assert not protocol.is_replayed(plain)
    assert protocol.replayed_seconds(plain) is None
    protocol.check_inputs(plain, session.model, batch.encodings)
    assert protocol.gaps_of(plain, session, batch, plain(session, batch)) == [None, None]
    assert protocol.assets_of(plain, session.model) == {}
    assert not protocol.needs_training(plain)
    nothing: Any = None  # never looked at
    assert protocol.taught(plain, nothing, session.model) is plain


def test_members_are_found(tiny_model, batch_of) -> None:
    session = Session(tiny_model())
    batch = batch_of(session.model, ["good", "dull film"])
    full = Everything()
    assert protocol.is_stochastic(full) and protocol.needs_rationale(full)
    assert not protocol.reads_model(full)
    assert protocol.is_replayed(full) and protocol.replayed_seconds(full) == 2.5
    with pytest.raises(FaithbenchError, match="2 are too many"):
        protocol.check_inputs(full, session.model, batch.encodings)
    assert protocol.gaps_of(full, session, batch, full(session, batch)) == [-1.0, -1.0]
    assert protocol.assets_of(full, session.model) == {"table": "abc"}
    assert protocol.needs_training(full)
    nothing: Any = None  # never looked at
    assert protocol.taught(full, nothing, session.model) == Plain()


def test_a_sum_is_promised_for_one_output_only(batch_of) -> None:
    from faithbench.core.types import Example
    from faithbench.testing.conformance import batch_of as conformance_batch

    session = Session(build_tiny("bert", qa=True))
    batch = conformance_batch(session.model, [Example("a", "the film is good", 0, "good")])
    assert protocol.gaps_of(DeepShap(), session, batch, torch.zeros(batch.ids.shape)) == [None]


def test_built_ins() -> None:
    assert isinstance(LrpMask(), protocol.HasAssets)
    assert isinstance(DeepShap(), protocol.PromisesSum)
    assert not isinstance(Gradient(), protocol.PromisesSum)
