"""A small version of benchmarks/power.py: what so many examples tell apart, by hand."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from faithbench.stats.power import detectable
from tests.support.benchmarks import load_benchmark
from tests.support.stores import store

NONE = Path("no-such-folder")
MEANS = {"attention": 0.5, "gradient": 0.49, "lrp": 0.2}


@pytest.fixture(scope="module")
def study() -> ModuleType:
    return load_benchmark("power")


@pytest.fixture
def values(tmp_path: Path) -> dict[str, list[float]]:
    """Store three explainers on 40 examples, and return their values."""
    random = np.random.default_rng(0)
    made = {name: random.normal(mean, 0.1, 40).tolist() for name, mean in MEANS.items()}
    for name, own in made.items():
        store(tmp_path, f"{name}-11111111", {"aopc": own})
    return made


def test_a_line_holds_the_power_of_a_table(
    study: ModuleType, tmp_path: Path, values: dict[str, list[float]]
) -> None:
    (table,) = study.studies_of(tmp_path, NONE)
    line = study.power_line(table, "aopc", study.column_of(table, "aopc"), (40, 4000))
    arrays = [np.array(values[name]) for name in MEANS]
    pairs = [arrays[0] - arrays[1], arrays[0] - arrays[2], arrays[1] - arrays[2]]
    least = detectable(float(np.median([pair.std(ddof=1) for pair in pairs])), 40, 3)
    assert least is not None
    # Two of three pairs are .3 apart; with the same number of examples nothing changes.
    assert line[1:4] == ("40", f"{least:.3f} (67%)", f"{least:.3f} (67%)")
    apart = np.mean([abs(pair.mean()) > least / 10 for pair in pairs])
    assert line[4] == f"{least / 10:.3f} ({apart:.0%})"


def test_four_times_the_examples_halve_what_is_detectable(study: ModuleType) -> None:
    assert study.detectable_at(0.08, 50, 200) == pytest.approx(0.04)
    assert study.detectable_at(0.08, 200, 50) == pytest.approx(0.16)


def test_pairs_are_compared_on_the_examples_of_both(study: ModuleType, tmp_path: Path) -> None:
    store(tmp_path, "attention-11111111", {"aopc": [0.1, 0.2, 0.6, 0.5]})
    store(tmp_path, "gradient-11111111", {"aopc": [0.0, None, 0.1, 0.4]})
    (table,) = study.studies_of(tmp_path, NONE)
    gaps = study.gaps_of(table, "aopc", study.column_of(table, "aopc"))
    assert gaps == [pytest.approx((0.1 + 0.5 + 0.1) / 3)]


def test_the_sentence_names_sizes_and_the_weakest_table(
    study: ModuleType, tmp_path: Path, values: dict[str, list[float]]
) -> None:
    tables = study.studies_of(tmp_path, NONE)
    said = study.finding(tables)
    assert "with 40 examples" in said and said.endswith("(67%).")
    assert study.finding([]) == ""
