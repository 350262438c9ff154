"""From a batch to attributions: checked, timed and counted."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.core.errors import FaithbenchError, WrongAnswerError
from faithbench.core.types import Batch
from faithbench.explainers.passes import capture as capturing
from faithbench.explainers.passes.capture import capture
from faithbench.explainers.selection import Selected, find_explainers
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.run.attribute import attribute, seed_of

TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]


@dataclass(frozen=True)
class Made:
    """Give the scores that a function makes of the batch."""

    scores: Callable[[Batch], torch.Tensor]

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        return self.scores(batch)


def made(scores: Callable[[Batch], torch.Tensor]) -> Selected:
    return Selected("made-up", Made(scores))


def ascending(batch: Batch) -> torch.Tensor:
    """Score each token by its place."""
    return torch.arange(batch.ids.numel(), dtype=torch.float32).view(batch.ids.shape)


def put_wrong(batch: Batch) -> torch.Tensor:
    """Complain as the adapter of per-example explainers does."""
    raise WrongAnswerError("example 'e0' got scores of shape (1,) for 2 tokens")


def test_one_score_per_erasable_token(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS, [1, 0, 1])
    found = attribute(Session(model), made(ascending), batch)
    # Rows of 15 tokens, of which the first and the last real one are special.
    assert [a.scores.tolist() for a in found] == [
        [1, 2],
        list(range(16, 29)),
        list(range(31, 36)),
    ]
    assert [a.target for a in found] == [1, 0, 1]
    assert [a.encoding for a in found] == list(batch.encodings)
    assert found[0].scores.dtype == np.float64
    # Special tokens keep theirs, padding goes: some released code ranks them.
    assert [a.every_score.tolist() for a in found] == [
        [0, 1, 2, 3],
        list(range(15, 30)),
        list(range(30, 37)),
    ]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (lambda batch: None, "explainer 'made-up' returned a NoneType; it must return a tensor"),
        (put_wrong, r"explainer 'made-up': example 'e0' got scores of shape \(1,\) for 2 tokens"),
    ],
)
def test_what_is_no_answer_names_the_explainer(
    scores: Any, message: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model("bert")
    with pytest.raises(FaithbenchError, match=message):
        attribute(Session(model), made(scores), batch_of(model, TEXTS[:1]))


def test_a_pair_keeps_the_scores_of_its_evidence(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, ["good film || dull plot"], evidence="text_b")
    assert [a.scores.tolist() for a in attribute(Session(model), made(ascending), batch)] == [
        [4, 5]
    ]


@pytest.mark.parametrize(
    ("scores", "shape"),
    [
        (lambda batch: torch.zeros(batch.ids.shape[1]), r"\(15,\)"),
        (lambda batch: torch.zeros(3, 14), r"\(3, 14\)"),
        (lambda batch: torch.zeros(3, 15, 32), r"\(3, 15, 32\)"),
    ],
)
def test_a_wrong_shape_is_refused(scores: Any, shape: str, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    said = rf"explainer 'made-up' gave scores of shape {shape} for tokens of shape \(3, 15\)"
    with pytest.raises(FaithbenchError, match=said):
        attribute(Session(model), made(scores), batch_of(model, TEXTS))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_score_that_is_not_finite_is_refused(
    value: float, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model("bert")

    def broken(batch: Batch) -> torch.Tensor:
        scores = torch.zeros(batch.ids.shape)
        scores[2, 3] = value
        return scores

    said = "explainer 'made-up' gave a score that is not finite for example 'e2'"
    with pytest.raises(FaithbenchError, match=said):
        attribute(Session(model), made(broken), batch_of(model, TEXTS))


@settings(deadline=None, max_examples=25)
@given(
    st.sampled_from([math.nan, math.inf, -math.inf]),
    st.integers(0, 19),
    st.sampled_from([torch.float32, torch.float64, torch.float16]),
)
def test_whichever_score_is_not_finite_names_its_example(
    tiny_model: Any, batch_of: Any, value: float, place: int, dtype: torch.dtype
) -> None:
    """The three texts have 2 + 13 + 5 tokens that may be erased."""
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    scores = torch.zeros(batch.ids.shape, dtype=dtype)
    row, column = batch.erasable.nonzero()[place].tolist()
    scores[row, column] = value
    with pytest.raises(FaithbenchError) as caught:
        attribute(Session(model), made(lambda _: scores), batch)
    assert str(caught.value) == (
        f"explainer 'made-up' gave a score that is not finite for example 'e{row}'; "
        "scores must be numbers"
    )


def test_special_tokens_and_padding_may_get_any_score(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    found = attribute(Session(model), made(lambda b: torch.where(b.erasable, 1.0, math.nan)), batch)
    assert [set(a.scores.tolist()) for a in found] == [{1.0}] * 3


def test_an_answer_has_a_pair_of_targets(qa_model: Model, batch_of: Any) -> None:
    """Start and end are explained apart and added: twice the scores of either."""
    batch = batch_of(qa_model, ["the good film || is it"], [(5, 6)])
    (found,) = attribute(Session(qa_model), made(ascending), batch)
    assert found.target == (5, 6)
    # [CLS] is it [SEP] the good film [SEP]: the text comes second.
    assert found.every_score.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    assert found.scores.tolist() == [8, 10, 12]
    assert found.gap is None


def test_a_shared_pass_is_charged_to_each_reader(
    tiny_model: Any, batch_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that only the passes move: 6 s for the shared one, 3 s for reading it."""
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def slow(half: str, seconds: float) -> None:
        run = getattr(capturing, half)

        def half_of_the_pass(*args: Any) -> Any:
            now[0] += seconds
            return run(*args)

        monkeypatch.setattr(capturing, half, half_of_the_pass)

    slow("run_forward", 2.0)
    slow("run_backward", 4.0)
    session = Session(tiny_model("bert"))
    batch = batch_of(session.model, TEXTS)

    def read(own: Batch) -> torch.Tensor:
        seen = capture(session, own)
        now[0] += 3.0
        return seen.attentions[-1][:, 0, 0]

    for _ in range(3):
        found = attribute(session, made(read), batch)
        assert [a.seconds for a in found] == [3.0, 3.0, 3.0]
        assert [(a.forwards, a.backwards) for a in found] == [(1, 1)] * 3
    assert now[0] == 6.0 + 3 * 3.0


def test_cost_of_known_explainers(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    costs = {}
    for chosen in find_explainers("random,attention,lrp-mask:mask=ones"):
        found = attribute(Session(model), chosen, batch)
        costs[chosen.name] = {(a.forwards, a.backwards) for a in found}
        assert all(a.seconds > 0 for a in found)
    assert costs == {"random": {(0, 0)}, "attention": {(1, 0)}, "lrp-mask": {(2, 2)}}


def test_passes_of_another_network_are_shared_out_in_equal_parts(
    tiny_model: Any, batch_of: Any
) -> None:
    session = Session(tiny_model("bert"))

    def small(own: Batch) -> torch.Tensor:
        session.meter.charge(elsewhere=0.1875)
        return ascending(own)

    for _ in range(2):
        found = attribute(session, made(small), batch_of(session.model, TEXTS))
        assert [(a.forwards, a.backwards, a.elsewhere) for a in found] == [(0, 0, 0.0625)] * 3
    (other,) = find_explainers("gradient")
    found = attribute(session, other, batch_of(session.model, TEXTS))
    assert [a.elsewhere for a in found] == [0.0] * 3


# Seeds


def test_seeds_are_stable_numbers() -> None:
    """The first seven bytes of sha256("<seed>:<id>"), as one number."""
    assert seed_of(0, "e1") == 0xE3124B369A276C
    assert seed_of(1, "e1") != seed_of(0, "e1")
    assert seed_of(0, "e2") != seed_of(0, "e1")
    # Torch takes seeds below 2^63.
    assert all(0 <= seed_of(0, str(i)) < 2**56 for i in range(100))
    assert len({seed_of(s, str(i)) for s in range(10) for i in range(100)}) == 1000


def test_the_completeness_gap_is_measured_outside_the_clock(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model()
    batch = batch_of(model, ["good film", "the plot is dull"], [0, 1])
    (fine,) = find_explainers("integrated-gradients:steps=50")
    (coarse,) = find_explainers("integrated-gradients:steps=1")
    (other,) = find_explainers("random")
    assert all(abs(a.gap) < 1e-9 for a in attribute(Session(model), fine, batch))
    assert all(abs(a.gap) > 1e-6 for a in attribute(Session(model), coarse, batch))
    assert [a.gap for a in attribute(Session(model), other, batch)] == [None, None]
    assert [a.forwards for a in attribute(Session(model), fine, batch)] == [50, 50]


def test_the_example_an_explainer_fails_on_is_found_by_halving(
    tiny_model: Any, batch_of: Any
) -> None:
    sizes = []

    def failing(batch: Batch) -> torch.Tensor:
        sizes.append(len(batch.encodings))
        if any(encoding.example.id == "e4" for encoding in batch.encodings):
            raise ZeroDivisionError
        return ascending(batch)

    model = tiny_model("bert")
    with pytest.raises(FaithbenchError) as caught:
        attribute(Session(model), made(failing), batch_of(model, [TEXTS[0]] * 6))
    assert str(caught.value) == (
        "explainer 'made-up' failed on example 'e4': ZeroDivisionError: no message "
        "(--debug shows the traceback)"
    )
    assert sizes == [6, 3, 1, 1, 1]  # all; e0 to e2; e3; e4; e4 alone, to be sure


def test_a_failure_of_a_whole_batch_names_the_batch(tiny_model: Any, batch_of: Any) -> None:
    def failing(batch: Batch) -> torch.Tensor:
        if len(batch.encodings) > 1:
            raise ValueError("one at a time")
        return ascending(batch)

    model = tiny_model("bert")
    with pytest.raises(FaithbenchError, match=r"on a batch of 3 examples \('e0' to 'e2'\): Val"):
        attribute(Session(model), made(failing), batch_of(model, TEXTS))


@pytest.mark.parametrize("error", [FaithbenchError("no"), torch.OutOfMemoryError("no")])
def test_errors_that_are_answered_elsewhere_pass(
    tiny_model: Any, batch_of: Any, error: Exception
) -> None:
    def failing(batch: Batch) -> torch.Tensor:
        raise error

    model = tiny_model("bert")
    with pytest.raises(type(error), match=r"^no$"):
        attribute(Session(model), made(failing), batch_of(model, TEXTS))


def test_who_has_not_learned_yet_is_refused(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model()
    (untaught,) = find_explainers("salience:kind=chi2")
    with pytest.raises(FaithbenchError, match="'salience:kind=chi2' learns from a task's training"):
        attribute(Session(model), untaught, batch_of(model, TEXTS))
