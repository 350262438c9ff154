"""Shared passes: made once per batch, charged to everyone, gone when released."""

from __future__ import annotations

from faithbench.core.types import Example
from faithbench.models.meter import Cost
from faithbench.models.shared_passes import per_output, release, shared
from faithbench.testing.tiny import tiny_model as build_tiny


def test_a_pass_is_made_once_and_charged_twice(tiny_model, batch_of) -> None:
    model = tiny_model()
    batch, made = batch_of(model, ["good film", "dull"]), []

    def make() -> str:
        made.append(1)
        return "value"

    start = model.meter.total
    assert shared(model, batch, "x", make, forwards=3, backwards=2) == "value"
    assert model.meter.since(start) == Cost(forwards=6, backwards=4, passes=1)
    middle = model.meter.total
    assert shared(model, batch, "x", make, forwards=3, backwards=2) == "value"
    again = model.meter.since(middle)
    assert (again.forwards, again.backwards, len(made)) == (6, 4, 1)
    assert again.shared_seconds > 0
    release(model)
    shared(model, batch, "x", make)
    assert len(made) == 2
    release(model)


def test_names_and_batches_do_not_mix(tiny_model, batch_of) -> None:
    model = tiny_model()
    one, other = batch_of(model, ["good film"]), batch_of(model, ["good film"])
    assert shared(model, one, "x", lambda: 1) == 1
    assert shared(model, one, "y", lambda: 2) == 2
    assert shared(model, other, "x", lambda: 3) == 3
    assert shared(model, one, "x", lambda: 4) == 1
    release(model)


def test_a_question_answerer_has_two_outputs() -> None:
    from faithbench.testing.conformance import batch_of

    model = build_tiny("bert", qa=True)
    batch = batch_of(model, [Example("a", "the film is good", 0, "good")])
    start, end = per_output(model, batch)
    assert (start.output, end.output) == ("start_logits", "end_logits")
    # [CLS] good [SEP] the film is good [SEP]: the last two tokens of the text.
    assert (start.targets.tolist(), end.targets.tolist()) == ([5], [6])
    assert per_output(model, batch)[0] is start, "the same objects, so that their passes are shared"
    release(model)


def test_a_classifier_has_one(tiny_model, batch_of) -> None:
    model = tiny_model()
    batch = batch_of(model, ["good"])
    assert per_output(model, batch) == (batch,)
