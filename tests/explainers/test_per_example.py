"""Per-example explainers: questions of all examples answered together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.per_example import per_example
from faithbench.explainers.perturbation import Occlusion
from faithbench.models.session import Session
from faithbench.testing.conformance import check_explainer

TEXTS = ["good film", "the plot is not very good", "dull"]


@per_example
@dataclass(frozen=True)
class DropOne:
    """Ask twice: the full input first, then all tokens one by one."""

    def __call__(self, probs, example):
        n = len(example.tokens)
        (full,) = probs(np.ones((1, n), dtype=bool))
        return full - probs(~np.eye(n, dtype=bool))


def test_it_equals_occlusion(tiny_model, batch_of) -> None:
    model = tiny_model()
    batch = batch_of(model, TEXTS, [0, 1, 0])
    ours, theirs = DropOne()(Session(model), batch), Occlusion()(Session(model), batch)
    np.testing.assert_allclose(ours.numpy(), theirs.double().numpy(), atol=1e-12)


def test_questions_of_all_examples_share_passes(tiny_model, batch_of) -> None:
    model = tiny_model()
    session = Session(model)
    session.clear()
    before = session.meter.total
    DropOne()(session, batch_of(model, TEXTS))
    spent = session.meter.since(before)
    assert spent.forwards == 3 + (2 + 6 + 1), "three full inputs, one row per token"
    assert spent.passes == 2, "two questions each, whatever the number of examples"
    session.clear()


def test_it_keeps_the_rules() -> None:
    check_explainer(DropOne(), architectures=("bert", "gpt2"))


def test_an_error_of_one_example_reaches_the_caller(tiny_model, batch_of) -> None:
    @per_example
    @dataclass(frozen=True)
    class Fails:
        def __call__(self, probs, example):
            if len(example.tokens) == 1:
                raise ZeroDivisionError("one token")
            return probs(np.ones((1, len(example.tokens)), dtype=bool)).repeat(len(example.tokens))

    model = tiny_model()
    with pytest.raises(ZeroDivisionError, match="one token"):
        Fails()(Session(model), batch_of(model, TEXTS))


@pytest.mark.parametrize(("wrong", "message"), [("ask", "marks for"), ("answer", "of shape")])
def test_wrong_lengths_are_named(tiny_model, batch_of, wrong: str, message: str) -> None:
    @per_example
    @dataclass(frozen=True)
    class Wrong:
        def __call__(self, probs, example):
            if wrong == "ask":
                probs(np.ones((1, 99), dtype=bool))
            return np.zeros(99)

    model = tiny_model()
    with pytest.raises(FaithbenchError, match=message):
        Wrong()(Session(model), batch_of(model, ["good film"]))
