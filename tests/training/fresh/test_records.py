"""Records of FRESH: what they hold, and that `compare` and the store read them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from faithbench import api
from faithbench.core.errors import FaithbenchError
from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from faithbench.training.fresh.extraction import Extraction
from faithbench.training.fresh.study import FreshReport, fresh
from tests.support.fresh import put_study, request_of
from tests.support.training import silent

NAME = "fresh_f1_topk"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, FreshReport]:
    """Attention and random words under two seeds."""
    folder = put_study(tmp_path_factory.mktemp("fresh"))
    return folder, fresh(request_of(folder, controls=("random",)), silent)


def test_a_record_has_macro_f1_as_its_mean(study: tuple[Path, FreshReport]) -> None:
    _, report = study
    for arm in report.arms:
        assert arm.record is not None
        record = read(arm.record)
        facts = record.metrics[NAME]
        assert list(record.metrics) == [NAME] and facts.n == 12
        assert facts.mean == pytest.approx(arm.mean, abs=1e-9)
        assert record.fresh is not None
        assert record.fresh.macro_f1 == pytest.approx(arm.macro_f1, abs=1e-6)
        assert record.seeds == (0, 1) and record.explainer.name == arm.label
        assert (record.fresh.ratio, record.fresh.train, record.fresh.dev) == (0.4, 16, 4)
        assert record.fresh.recipe["epochs"] == 1 and "seed" not in record.fresh.recipe


def test_rows_have_a_value_under_each_seed(study: tuple[Path, FreshReport]) -> None:
    _, report = study
    path = report.arms[0].record
    assert path is not None
    facts = read(path).rows
    rows = read_rows(path.with_name(facts.file), facts.sha256)
    by_seed = np.array([row.by_seed[NAME] for row in rows])
    assert by_seed.mean(axis=0) == pytest.approx(report.arms[0].macro_f1, abs=1e-9)
    assert rows[0].tokens == ("bad", "w0", "film", "the", "plot")


def test_records_are_compared_by_their_means(study: tuple[Path, FreshReport]) -> None:
    folder, report = study
    comparison = api.compare(
        ["attention", "random-words"], NAME, task="mini", results=folder / "records"
    )
    means = {label: summary[0] for label, summary in comparison.summaries.items()}
    assert means == pytest.approx({arm.label: arm.mean for arm in report.arms}, abs=1e-9)
    assert comparison.tournament.duels[0].test.name == "paired t"


def test_other_ratios_and_selections_are_other_records(study: tuple[Path, FreshReport]) -> None:
    """They are never mixed: two ratios cannot be compared."""
    folder, report = study
    few = fresh(request_of(folder, controls=(), how=Extraction(0.2)), silent)
    one, two = report.arms[1].record, few.arms[0].record
    assert one is not None and two is not None
    with pytest.raises(FaithbenchError, match="differ in ratio or training of the fresh"):
        api.compare([one, two], NAME)
    window = fresh(request_of(folder, controls=(), how=Extraction(0.4, "contiguous")), silent)
    assert window.arms[0].record is not None
    assert list(read(window.arms[0].record).metrics) == ["fresh_f1_contiguous"]
