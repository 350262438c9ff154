"""The benchmark of a whole job: its phases are functions of the package, and add up."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest

from tests.support.benchmarks import load_benchmark


def burn(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_phases_are_counted_apart_and_put_back(monkeypatch: pytest.MonkeyPatch) -> None:
    job = load_benchmark("job")
    work = SimpleNamespace(first=lambda: burn(0.02), second=lambda: burn(0.01), run=lambda: None)
    own = dict(vars(work))
    monkeypatch.setattr(job, "PHASES", {"one": ("work:first",), "two": ("work:second",)})
    monkeypatch.setattr(job, "FIRST_WORK", "work:run")
    monkeypatch.setattr(job.importlib, "import_module", {"work": work}.__getitem__)
    seconds = {"start-up": 0.0, "one": 0.0, "two": 0.0}
    with job.timed_phases(seconds):
        work.run()
        work.first()
        work.second()
        work.second()
    assert vars(work) == own
    assert seconds["start-up"] > 0
    assert 0.02 <= seconds["one"] < 0.2 and 0.02 <= seconds["two"] < 0.2


def test_the_phases_are_functions_of_the_package() -> None:
    job = load_benchmark("job")
    for place in (job.FIRST_WORK, *(place for phase in job.PHASES.values() for place in phase)):
        module, name = place.split(":")
        assert callable(getattr(job.importlib.import_module(module), name))


def test_a_table_tells_how_many_times_as_fast() -> None:
    job = load_benchmark("job")
    before, now = {"one": 6.0, "two": 2.0}, {"one": 3.0, "two": 2.0}
    lines = [line.split("|")[1:-1] for line in job.table([before, now]).splitlines()[2:]]
    assert [[cell.strip() for cell in line] for line in lines] == [
        ["one", "6.0", "3.0", "2.00"],
        ["two", "2.0", "2.0", "1.00"],
        ["whole job", "8.0", "5.0", "1.60"],
    ]
