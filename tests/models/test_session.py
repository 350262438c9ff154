"""A session: passes made once per batch, charged to every reader, gone when dropped."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from faithbench.core.types import Example
from faithbench.models import session as sessions
from faithbench.models.engine import Engine
from faithbench.models.meter import Cost
from faithbench.models.session import Session, moved, rows_per_second
from faithbench.testing.conformance import batch_of as conformance_batch
from faithbench.testing.tiny import tiny_model as build_tiny


def test_a_pass_is_made_once_and_charged_twice(tiny_model, batch_of) -> None:
    session, made = Session(tiny_model()), []
    batch = batch_of(session.model, ["good film", "dull"])

    def make() -> str:
        made.append(1)
        return "value"

    assert session.share(batch, "x", make, forwards=3, backwards=2) == "value"
    assert session.meter.total == Cost(forwards=6, backwards=4, passes=1)
    before = session.meter.total
    assert session.share(batch, "x", make, forwards=3, backwards=2) == "value"
    again = session.meter.since(before)
    assert (again.forwards, again.backwards, len(made)) == (6, 4, 1)
    assert again.shared_seconds > 0
    session.drop_passes()
    session.share(batch, "x", make)
    assert len(made) == 2


def test_names_and_batches_do_not_mix(tiny_model, batch_of) -> None:
    session = Session(tiny_model())
    first, second = (batch_of(session.model, ["good film"]) for _ in range(2))
    assert session.share(first, "x", lambda: 1) == 1
    assert session.share(first, "y", lambda: 2) == 2
    assert session.share(second, "x", lambda: 3) == 3
    assert session.share(first, "x", lambda: 4) == 1


def test_two_sessions_of_one_model_know_nothing_of_each_other(tiny_model, batch_of) -> None:
    model = tiny_model()
    batch = batch_of(model, ["good film"])
    first, second = Session(model), Session(model)
    assert first.share(batch, "x", lambda: 1) == 1
    assert second.share(batch, "x", lambda: 2) == 2
    rows = [(e.ids, e.types) for e in batch.encodings]
    logs = first.engine.log_probabilities(rows)
    assert (first.engine.distinct, second.engine.distinct) == (1, 0)
    assert second.meter.total == Cost(forwards=1, backwards=1, passes=1)
    np.testing.assert_array_equal(second.engine.log_probabilities(rows), logs)


def test_leaving_a_session_drops_all_it_holds(tiny_model, batch_of) -> None:
    model = tiny_model()
    batch = batch_of(model, ["good film"])
    with Session(model) as session:
        session.share(batch, "x", lambda: 1)
        session.engine.log_probabilities([(e.ids, e.types) for e in batch.encodings])
    assert session.share(batch, "x", lambda: 2) == 2
    session.engine.log_probabilities([(e.ids, e.types) for e in batch.encodings])
    assert session.engine.distinct == 2, "the row is computed again"


def test_a_question_answerer_has_two_outputs() -> None:
    session = Session(build_tiny("bert", qa=True))
    batch = conformance_batch(session.model, [Example("a", "the film is good", 0, "good")])
    start, end = session.per_output(batch)
    assert (start.output, end.output) == ("start_logits", "end_logits")
    # [CLS] good [SEP] the film is good [SEP]: the last two tokens of the text.
    assert (start.targets.tolist(), end.targets.tolist()) == ([5], [6])
    assert session.per_output(batch)[0] is start, "the same objects, so that passes are shared"


def test_a_classifier_has_one(tiny_model, batch_of) -> None:
    session = Session(tiny_model())
    batch = batch_of(session.model, ["good"])
    assert session.per_output(batch) == (batch,)


def test_rows_that_share_no_pass_are_companies_of_their_own(batch_of) -> None:
    """FNet reads padding: rows of one length go together, and are no wider than they need."""
    session = Session(build_tiny("fnet", 2))
    batch = batch_of(session.model, ["good film", "the plot is dull", "not bad"])
    pairs, alone = session.companies(batch)
    assert (pairs.rows, alone.rows) == ((0, 2), (1,))
    assert pairs.batch.ids.shape == (2, 4) and alone.batch.ids.shape == (1, 6)
    assert pairs.batch.encodings == (batch.encodings[0], batch.encodings[2])
    assert pairs.batch.targets.tolist() == batch.targets[[0, 2]].tolist()
    assert pairs.batch.attention.all() and alone.batch.attention.all()
    assert session.companies(batch)[0] is pairs, "passes are shared by the batch's identity"
    session.drop_passes()
    assert session.companies(batch)[0] is not pairs


def test_most_networks_take_a_batch_as_it_is(tiny_model, batch_of) -> None:
    session = Session(tiny_model())
    batch = batch_of(session.model, ["good film", "the plot is dull"])
    (company,) = session.companies(batch)
    assert company.batch is batch and company.rows == (0, 1)


def test_the_cpu_keeps_its_budget_and_other_devices_find_theirs(
    tiny_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def rate(_engine: Engine, budget: int) -> float:
        tried.append(budget)
        return min(budget, 400)

    monkeypatch.setattr(sessions, "rows_per_second", rate)
    model = tiny_model()
    session = Session(model, budget=100)
    session.tune()
    assert (session.engine.budget, tried) == (100, [])
    elsewhere = Session(
        replace(model, network=copy.deepcopy(model.network).to("meta"), _twins={}), budget=100
    )
    elsewhere.tune()
    assert (elsewhere.engine.budget, tried) == (400, [100, 200, 400, 800])


def test_rows_per_second_leaves_the_engine_as_it_was(tiny_model) -> None:
    engine = Engine(tiny_model(), 50)
    assert rows_per_second(engine, 128, passes=3) > 0
    assert (engine.budget, engine._known) == (50, {})
    # Twelve rows of 32 tokens, four to a pass, run twice.
    assert (engine.asked, engine.meter.total.passes) == (24, 6)


def test_a_batch_moves_as_a_whole(tiny_model, batch_of) -> None:
    batch = batch_of(tiny_model(), ["good film", "dull"])
    assert moved(batch, torch.device("cpu")) is batch
    there = moved(batch, torch.device("meta"))
    tensors = (there.ids, there.types, there.attention, there.erasable, there.targets)
    assert {tensor.device.type for tensor in tensors} == {"meta"}
    assert there.encodings == batch.encodings
