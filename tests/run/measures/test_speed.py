"""Speed alone: the sample, the median and its interval, and that nothing is reused."""

from __future__ import annotations

import gc
import weakref
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from faithbench.core.types import Batch, Encoding, Example
from faithbench.explainers.gradient import InputXGradient
from faithbench.models.encoding import encode
from faithbench.models.session import Session
from faithbench.run.job import sample_by_length
from faithbench.run.measures import speed as memory
from faithbench.run.measures.speed import Alone, measure_alone, with_peak


def encoded(model: Any, *texts: str) -> list[Encoding]:
    return [encode(model, Example(f"e{i}", text, 0)) for i, text in enumerate(texts)]


def test_the_sample_is_spread_over_all_lengths(tiny_model: Any) -> None:
    texts = [" ".join(["good"] * n) for n in (9, 1, 5, 7, 3)]
    five = encoded(tiny_model(), *texts)
    assert [len(e.example.text.split()) for e in sample_by_length(five, 3)] == [1, 5, 9]
    # All five; six of twenty; a quarter of thirty; ten of a hundred.
    assert [len(sample_by_length(five * times)) for times in (1, 4, 6, 20)] == [5, 6, 7, 10]


def test_median_and_interval() -> None:
    """Of two, a drawn median is 1, 2 or 3 with chances 1/4, 1/2, 1/4."""
    speed = Alone((1.0, 3.0), None)
    assert (speed.median, speed.interval) == (2.0, (1.0, 3.0))
    assert Alone((0.5,), 7).interval is None
    wide = Alone(tuple(float(i) for i in range(101)), None)
    assert wide.median == 50 and wide.interval is not None
    low, high = wide.interval
    # The median of 101 has a standard error of about 1.25 * 29.2 / sqrt(101) * 1.38 = 5.
    assert 37 < low < 43 and 57 < high < 63


@dataclass(frozen=True)
class Slow:
    """Counts its calls, and reads a pass that others could have made."""

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        assert len(batch.ids) == 1, "one example at a time"
        session.share(batch, "costly", lambda: CALLS.append(batch.encodings[0].example.id))
        return torch.zeros(batch.ids.shape)


CALLS: list[str] = []


def test_each_example_is_explained_once_from_scratch(tiny_model: Any) -> None:
    model = tiny_model()
    CALLS.clear()
    sample = encoded(model, "good", "dull film", "a very good film")
    speed = measure_alone(Session(model), Slow(), sample, [0, 1, 0], seed=0)
    assert CALLS == ["e0", "e0", "e1", "e2"]  # the first one twice: once to warm up
    assert len(speed.seconds) == 3 and all(s > 0 for s in speed.seconds)


def test_who_ran_before_changes_no_count(tiny_model: Any) -> None:
    model = tiny_model()
    sample = encoded(model, "good film", "dull")
    session = Session(model)
    before = session.meter.total
    measure_alone(session, InputXGradient(), sample, [0, 0], seed=0)
    cost = session.meter.since(before)
    assert (cost.forwards, cost.backwards, cost.shared_seconds) == (3, 3, pytest.approx(0))


CPU = torch.device("cpu")


@pytest.mark.parametrize("megabytes", [200, 50])
def test_the_peak_is_that_of_the_work_alone(megabytes: int) -> None:
    """In this order: the second must not hide in what the first gave back."""

    def work() -> float:
        return float(torch.ones(megabytes * 250_000).sum())

    value, peak = with_peak(work, CPU)
    assert value == megabytes * 250_000
    assert peak is not None and megabytes * 0.95e6 < peak < megabytes * 1.3e6 + 20e6


def test_no_count_where_the_system_gives_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_RESET", memory._STATUS.parent / "no-such-file" / "x")
    assert with_peak(lambda: 3, CPU) == (3, None)


@dataclass(frozen=True)
class Littering:
    """Leaves a cycle behind, and takes down how many of those before are still there."""

    left: list[weakref.ref[Any]]
    alive: list[int]
    frozen: list[int]

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        self.alive.append(sum(litter() is not None for litter in self.left))
        self.frozen.append(gc.get_freeze_count())
        cycle = Cycle()
        cycle.itself = cycle
        self.left.append(weakref.ref(cycle))
        return torch.zeros(batch.ids.shape)


class Cycle:
    """An object that only a collection frees."""

    itself: Cycle


def test_each_text_is_timed_on_collected_memory_with_one_full_collection(tiny_model: Any) -> None:
    model = tiny_model()
    explainer = Littering([], [], [])
    measure_alone(Session(model), explainer, encoded(model, "good", "dull", "a"), [0, 1, 0], 0)
    assert explainer.alive[1:] == [0, 0, 0]  # what the call before left is gone
    assert explainer.frozen[0] == 0 and all(count > 10_000 for count in explainer.frozen[1:])
    assert gc.get_freeze_count() == 0
