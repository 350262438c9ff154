"""The engine answers as one row at a time would, and computes each distinct row once."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import TokenRow
from faithbench.models.engine import Engine
from faithbench.models.fast_encoder import assemble_encoder
from faithbench.models.host_waits import count_host_waits
from faithbench.models.meter import Cost
from faithbench.models.model import Model
from faithbench.testing import tiny

LENGTHS = [5, 3, 9, 5, 12, 4, 9, 2]


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
@pytest.mark.parametrize("budget", [1, 50, 10_000])
def test_answers_are_those_of_one_row_at_a_time(tiny_model, architecture: str, budget: int) -> None:
    model = tiny_model(architecture, 3)
    rows = [row(length, seed) for seed, length in enumerate(LENGTHS)]
    answers = Engine(model, budget).log_probabilities(rows)
    assert answers.shape == (8, 3) and answers.dtype == np.float64
    np.testing.assert_allclose(answers, one_at_a_time(model, rows), rtol=0, atol=1e-12)
    np.testing.assert_allclose(np.exp(answers).sum(axis=1), 1, rtol=0, atol=1e-12)


def test_rows_keep_their_order(tiny_model) -> None:
    rows = [row(length, seed) for seed, length in enumerate(LENGTHS)]
    answers = Engine(tiny_model(), 30).log_probabilities(rows)
    order = [4, 0, 7, 2, 6, 1, 5, 3]
    again = Engine(tiny_model(), 30).log_probabilities([rows[i] for i in order])
    np.testing.assert_array_equal(again, answers[order])


def test_segments_make_another_row(tiny_model) -> None:
    ids = row(6)[0]
    rows = [(ids, np.zeros_like(ids)), (ids, np.array([0, 0, 0, 1, 1, 1]))]
    engine = Engine(tiny_model())
    answers = engine.log_probabilities(rows)
    np.testing.assert_allclose(answers, one_at_a_time(tiny_model(), rows), rtol=0, atol=1e-12)
    assert engine.distinct == 2
    assert abs(answers[0] - answers[1]).max() > 1e-3


def test_rows_are_packed_by_length_under_the_budget(
    tiny_model, monkeypatch: pytest.MonkeyPatch
) -> None:
    packs = watch(monkeypatch)
    Engine(tiny_model(), 20).log_probabilities([row(n, seed) for seed, n in enumerate(LENGTHS)])
    # 12 leaves room for one row, 9 for two, 5 for four, and what is left is short.
    assert packs == [[12], [9, 9], [5, 5, 4, 3], [2]]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_host_waits_once_per_call_however_many_passes(tiny_model, dtype: torch.dtype) -> None:
    engine = Engine(tiny_model("bert", 3, dtype), 30)
    assert engine._fast is not None
    with count_host_waits() as waits:
        engine.log_probabilities([row(n, seed) for seed, n in enumerate(LENGTHS)])
    assert engine.meter.total.passes == 3
    assert [place.split()[0] for place in waits.places] == ["cpu"]


@pytest.mark.parametrize("architecture", ["bert", "gpt2"])
def test_one_copy_for_all_passes_gives_the_same_bits(tiny_model, architecture: str) -> None:
    """The logits of each pass, copied and normalised by itself, as they were before."""
    engine = Engine(tiny_model(architecture, 3, torch.float32), 30)
    rows = sorted((row(n, seed) for seed, n in enumerate(LENGTHS)), key=lambda r: -len(r[0]))
    answers = engine.log_probabilities(rows)
    for pack in (slice(0, 2), slice(2, 5), slice(5, 8)):
        order, logits = engine._forward(rows[pack])
        alone = logits.cpu().double().log_softmax(dim=-1).numpy()
        np.testing.assert_array_equal(answers[pack], alone[order.argsort()])


def test_nothing_waits_before_the_copy(tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the meta device, which has no values, all passes of a call are made."""
    model = tiny_model("bert", 3)
    model = replace(model, network=copy.deepcopy(model.network).to("meta"), _twins={})
    engine = Engine(model, 30)
    monkeypatch.setattr(Engine, "_fast", assemble_encoder(model, differentiable=False))
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor"):
        engine.log_probabilities([row(n, seed) for seed, n in enumerate(LENGTHS)])
    assert engine.meter.total.passes == 3


def test_a_row_s_seconds_are_its_tokens_share(tiny_model) -> None:
    engine = Engine(tiny_model())
    engine.log_probabilities([row(4), row(12)])
    short, long = (engine._seconds[key] for key in sorted(engine._known, key=len))
    assert long / short == pytest.approx(3)


def test_duplicates_are_computed_once(tiny_model) -> None:
    model = tiny_model()
    engine = Engine(model, 10_000)
    before = engine.meter.total
    rows = [row(5, 0), row(5, 1), row(5, 0), row(7, 2), row(5, 0)]
    answers = engine.log_probabilities(rows)
    assert (engine.asked, engine.distinct) == (5, 3)
    assert engine.meter.since(before) == Cost(forwards=3, backwards=0, passes=1)
    np.testing.assert_array_equal(answers[[2, 4]], answers[[0, 0]])
    np.testing.assert_allclose(answers, one_at_a_time(model, rows), rtol=0, atol=1e-12)


def test_remembered_rows_are_not_computed_again_until_forgotten(tiny_model) -> None:
    model = tiny_model()
    engine = Engine(model)
    first = engine.log_probabilities([row(5, 0), row(5, 1)])
    before = engine.meter.total
    np.testing.assert_array_equal(engine.log_probabilities([row(5, 1), row(5, 0)]), first[::-1])
    spent = engine.meter.since(before)
    assert (spent.forwards, spent.passes) == (2, 0), "charged as if it had asked alone"
    assert spent.shared_seconds > 0
    assert (engine.asked, engine.distinct) == (4, 2)
    before = engine.meter.total
    engine.forget()
    np.testing.assert_array_equal(engine.log_probabilities([row(5, 0), row(5, 1)]), first)
    assert engine.meter.since(before) == Cost(forwards=2, passes=1)
    assert (engine.asked, engine.distinct) == (6, 4)


def test_no_rows_cost_nothing(tiny_model) -> None:
    model = tiny_model("bert", 3)
    engine = Engine(model)
    before = engine.meter.total
    assert engine.log_probabilities([]).shape == (0, 3)
    assert (engine.asked, engine.distinct, engine.meter.since(before)) == (0, 0, Cost())


def test_a_row_without_tokens_is_refused(tiny_model) -> None:
    """GPT-2 has no special tokens: deleting all words of a text leaves nothing."""
    nothing = np.array([], dtype=np.int64)
    with pytest.raises(FaithbenchError, match="'tiny-gpt2' was given an input without tokens"):
        Engine(tiny_model("gpt2")).log_probabilities([row(3), (nothing, nothing)])


def test_convolutions_read_a_row_without_tokens(tiny_model) -> None:
    """With nothing to read, the logits are those of the biases alone, whatever stands beside it."""
    model = tiny_model("cnn", 3)
    nothing = np.array([], dtype=np.int64)
    with torch.inference_mode():
        layers = model.network
        logits = layers.classifier(torch.relu(layers.hidden.bias))
    expected = torch.log_softmax(logits, dim=0).numpy()
    alone = Engine(model).log_probabilities([(nothing, nothing)])
    np.testing.assert_allclose(alone[0], expected, rtol=0, atol=1e-12)
    for budget in (1, 100):
        among = Engine(model, budget).log_probabilities([row(3), (nothing, nothing), row(2)])
        np.testing.assert_allclose(among[1], expected, rtol=0, atol=1e-12)
        np.testing.assert_allclose(
            among[[0, 2]], one_at_a_time(model, [row(3), row(2)]), rtol=0, atol=1e-12
        )


def test_too_little_memory_halves_the_budget(tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
    packs = watch(monkeypatch, room=30)
    model = tiny_model()
    engine = Engine(model, 100)
    rows = [row(5, seed) for seed in range(20)]
    before = engine.meter.total
    answers = engine.log_probabilities(rows)
    assert [len(pack) for pack in packs] == [20, 10, 5, 5, 5, 5]
    assert engine.budget == 25
    assert engine.meter.since(before) == Cost(forwards=20, passes=4)
    np.testing.assert_allclose(answers, one_at_a_time(model, rows), rtol=0, atol=1e-12)
    # The smaller budget is kept: the next call does not run into the same wall.
    engine.log_probabilities([row(5, seed) for seed in range(20, 25)])
    assert [len(pack) for pack in packs[6:]] == [5]


def test_too_little_memory_for_one_row_stops(tiny_model, monkeypatch: pytest.MonkeyPatch) -> None:
    packs = watch(monkeypatch, room=8)
    engine = Engine(tiny_model(), 40)
    with pytest.raises(torch.OutOfMemoryError):
        engine.log_probabilities([row(9, seed) for seed in range(4)])
    assert [len(pack) for pack in packs] == [4, 2, 1]
    # What does fit is still answered.
    rows = [row(4, 0)]
    answers = engine.log_probabilities(rows)
    np.testing.assert_allclose(answers, one_at_a_time(tiny_model(), rows), rtol=0, atol=1e-12)


some_rows = st.lists(
    st.lists(st.integers(1, 60), min_size=1, max_size=9).flatmap(
        lambda ids: st.lists(st.integers(0, 1), min_size=len(ids), max_size=len(ids)).map(
            lambda types: (np.array(ids), np.array(types))
        )
    ),
    max_size=8,
)


@settings(max_examples=40, deadline=None)
@given(some_rows, st.data())
def test_any_rows_in_any_packs(tiny_model, rows: list[TokenRow], data: st.DataObject) -> None:
    model = tiny_model()
    doubled = data.draw(st.permutations(rows + rows[:3]))
    engine = Engine(model, data.draw(st.integers(1, 60), label="budget"))
    before = engine.meter.total
    answers = engine.log_probabilities(doubled)
    distinct = len({(tuple(ids), tuple(types)) for ids, types in rows})
    assert (engine.asked, engine.distinct) == (len(doubled), distinct)
    assert engine.meter.since(before).forwards == distinct
    assert answers.shape == (len(doubled), 2)
    for answer, one in zip(answers, doubled, strict=True):
        np.testing.assert_allclose(answer, one_at_a_time(model, [one])[0], rtol=0, atol=1e-12)


def row(length: int, seed: int = 0) -> TokenRow:
    """Return [CLS], random words and [SEP]; segments are all 0."""
    draw = np.random.default_rng([length, seed])
    ids = np.array([2, *draw.integers(5, 80, length - 2), 3])
    return ids, np.zeros(length, dtype=np.int64)


def one_at_a_time(model: Model, rows: Sequence[TokenRow]) -> np.ndarray:
    """Answer without padding, packing, sorting or memory."""
    answers = []
    for ids, types in rows:
        inputs = {"input_ids": torch.tensor([ids.tolist()])}
        if model.network.config.model_type == "bert":
            inputs["token_type_ids"] = torch.tensor([types.tolist()])
        with torch.no_grad():
            logits = model.network(**inputs).logits[0]
        answers.append((logits - logits.exp().sum().log()).numpy())
    return np.array(answers)


def watch(monkeypatch: pytest.MonkeyPatch, room: float = float("inf")) -> list[list[int]]:
    """Return the lengths of the rows in each pack; a pack of more padded tokens has no room."""
    packs: list[list[int]] = []
    forward = Engine._forward

    def watched(self: Engine, rows: list[TokenRow]) -> tuple[np.ndarray, torch.Tensor]:
        packs.append([len(ids) for ids, _ in rows])
        if len(rows) * max(packs[-1]) > room:
            raise torch.OutOfMemoryError("no room")
        return forward(self, rows)

    monkeypatch.setattr(Engine, "_forward", watched)
    return packs


@pytest.mark.parametrize("architecture", ["fnet", "xlnet", "bart"])
def test_rows_that_share_no_pass_are_read_apart(architecture: str) -> None:
    """Texts of all lengths, and one with two end tokens, have the values that each has alone."""
    model = tiny.tiny_model(architecture, 3)
    rows = [np.array(ids) for ids in ([2, 5, 3], [2, 5, 6, 7, 3], [2, 3, 6, 3], [2, 8, 3])]
    tokens = [(ids, np.zeros_like(ids)) for ids in rows]
    together = Engine(model).log_probabilities(tokens)
    alone = np.concatenate([Engine(model).log_probabilities([row]) for row in tokens])
    assert np.abs(together - alone).max() < 1e-9
