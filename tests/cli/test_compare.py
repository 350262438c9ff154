"""What `compare` prints: numbers worked out by hand, in 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.compare import compare_command
from faithbench.core.errors import FaithbenchError
from faithbench.records.comparison import chosen_metrics, compare, most_different
from faithbench.records.entrants import find_entrants
from faithbench.records.schema import MetricFacts
from tests.records.test_record import METRIC
from tests.support.builders import row
from tests.support.stores import Values, store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]
ZERO = [0.0] * 7
LONG = "window-length=2.25-steps=10000-mode=everything"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    store(tmp_path, "lime-11111111", {"aopc": UP, "lodds": UP, "agreement": [1.0] * 7})
    store(tmp_path, "random-22222222", {"aopc": ZERO, "lodds": UP, "agreement": [1.0, *ZERO[1:]]})
    return tmp_path


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)

    def run(words: list[str], results: Path, metrics: str = "all") -> list[str]:
        compare_command(explainers=words, task="sst2", results=results, metrics=metrics)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80
        return [" ".join(line.split()) for line in lines]

    return run


def test_one_metric_in_full(results: Path, printed) -> None:
    lines = printed(["random", "lime"], results, "aopc")
    head, blank, title, columns, _, *rest = lines
    assert head == "sst2 (bundled, test, n = 7); model tiny, float32; erased by mask"
    assert (blank, title) == ("", "AOPC (faithfulness, higher is better)")
    assert columns == "mean interval ties n skipped"
    # 2.85 / 7 = 0.407; all seven up: p = 2 / 128, and Holm over one test.
    assert rest[0].startswith("lime 0.407 0.") and rest[0].endswith(" a 7 0")
    assert rest[1] == "random 0.000 0.000 to 0.000 b 7 0"
    assert rest[2] == "Wilcoxon signed-rank, Holm over 1:"
    assert rest[3] == "first second n p after Holm effect"
    assert rest[5] == "lime random 7 0.016 0.016 +1.00"
    shown = rest.index("The 7 examples on which they differ most in AOPC (--metric names another):")
    assert rest[shown + 1 : shown + 4] == ["e6", "random 0.000, lime 0.750", "a e6"]
    assert rest[shown + 4] == "e5" and len(rest) == shown + 1 + 21


def test_all_metrics_with_their_tests(results: Path, printed) -> None:
    lines = printed(["lime", "random"], results)
    titles = [line for line in lines if line.endswith("is better)")]
    assert titles == [
        "AOPC (faithfulness, higher is better)",
        "LOdds (faithfulness, lower is better)",
        "agreement (faithfulness, higher is better)",
    ]
    assert "no test of lime and random: all differences are zero" in lines
    # Six up, none down: 2 / 64 by the exact test.
    assert "exact McNemar (0/1 values), Holm over 1:" in lines
    assert "lime random 7 0.031 0.031 +1.00" in lines


def test_seeds_and_missing_metrics_are_said(results: Path, printed) -> None:
    store(results, "random-33333333", {"aopc": UP}, seeds=(1,))
    lines = printed(["lime", "random"], results)
    assert lines[1:3] == ["random: mean over seeds 0, 1",
                          "not in all records, and left out: lodds, agreement"]  # fmt: skip
    # Lime is ahead by half of each value.
    assert "random 0.204" in " ".join(lines) and "lime random 7 0.016 0.016 +1.00" in lines


def test_long_names_and_many_explainers_fit(tmp_path: Path, printed) -> None:
    words = []
    for i in range(4):
        values = {"aopc": [v + i / 100 for v in UP], "fi_entropy": UP}
        stem = f"explainer{i}-{LONG}-1111111{i}"
        words.append(
            str(store(tmp_path, stem, values, ids=[f"[b]{'x' * 90}{j}" for j in range(7)]))
        )
    lines = printed(words, tmp_path)
    assert "fi_entropy (faithfulness)" in lines
    # Four explainers, six pairs: 2 / 128 times 6.
    assert "Wilcoxon signed-rank, Holm over 6:" in lines
    assert sum(line.endswith("0.094 +1.00") for line in lines) == 6
    assert any(line.startswith("[b]x") for line in lines)
    assert all(line.endswith("…") for line in lines if line.startswith("a [b]"))


def test_a_task_file_names_its_task(results: Path, printed) -> None:
    path = Path(__file__).parents[2] / "tasks" / "sst2.toml"
    compare_command(explainers=["lime", "random"], task=str(path), results=results, metrics="aopc")


def facts(higher: bool | None) -> MetricFacts:
    return MetricFacts.model_validate({**METRIC, "higher_is_better": higher, "ci95": (0.0, 0.5)})


def test_intervals_are_those_of_the_records(results: Path) -> None:
    lime, random = find_entrants(["lime", "random"], "sst2", results)
    ids = [row.id for row in lime.records[0].rows]
    table = {e.label: e.values("aopc", ids) for e in (lime, random)}
    found = compare("aopc", lime.metrics["aopc"], table)
    mean, interval, *_ = found.summaries["lime"]
    assert (mean, interval) == (lime.metrics["aopc"].mean, lime.metrics["aopc"].ci95)
    assert found.tournament.best == "lime" and found.metric == "aopc"
    assert compare("x", facts(False), table).tournament.best == "random"
    assert compare("x", facts(None), table).tournament.best is None


def test_neighbours_of_two_encoders_are_not_mixed(tmp_path: Path) -> None:
    values = {"aopc": UP, "iou_semantic": UP}
    store(tmp_path, "lime-11111111", values, protocol={"encoder": "small"})
    store(tmp_path, "random-22222222", values, protocol={"encoder": "large"})
    assert complaint(["all"], tmp_path) == (
        "metric 'iou_semantic' has several encoders here (small of lime, large of random), which "
        "are never mixed; run them again together, or choose other metrics with --metric"
    )
    entrants = find_entrants(["lime", "random"], "sst2", tmp_path)
    assert chosen_metrics(["aopc"], entrants) == ["aopc"]


def test_examples_by_their_spread() -> None:
    rows = [row(f"e{i}") for i in range(5)]
    table: Values = {
        "a": [0.0, 0.5, None, 1.0, 0.3],
        "b": [0.1, 0.5, 0.0, 0.0, None],
        "c": [-0.3, 0.5, None, 0.2, 0.5],
    }
    found = most_different(table, rows)
    # Equal values and single ones are no differences.
    assert [(d.id, d.spread) for d in found] == [("e3", 1.0), ("e0", 0.4), ("e4", 0.2)]
    assert found[2].values == {"a": 0.3, "c": 0.5}
    assert [d.id for d in most_different(table, rows, count=1)] == ["e3"]


def complaint(wanted: list[str], results: Path) -> str:
    with pytest.raises(FaithbenchError) as caught:
        chosen_metrics(wanted, find_entrants(["lime", "random"], "sst2", results))
    return str(caught.value)


def test_metrics_that_cannot_be_compared(results: Path) -> None:
    entrants = find_entrants(["lime", "random"], "sst2", results)
    assert chosen_metrics(["lodds", "faithfulness"], entrants) == ["lodds", "aopc", "agreement"]
    assert complaint(["aocp"], results) == (
        "no metric in these records named 'aocp'; did you mean 'aopc'?"
    )
    assert complaint(["naopc"], results) == (
        "metric 'naopc' is in none of these records; run the explainers again with --metrics naopc"
    )
    path = store(results, "random-22222222", {"lodds": UP})
    assert complaint(["aopc"], results) == (
        f"metric 'aopc' is not in the record of random ({path}); run it again with --metrics aopc"
    )
    store(results, "random-22222222", {"aopc": UP, "lodds": UP}, version=2)
    assert complaint(["all"], results) == (
        "metric 'aopc' has several versions here (1 of lime, 2 of random), which are never mixed; "
        "run them again together, or choose other metrics with --metric"
    )
    store(results, "random-22222222", {"fi_entropy": UP})
    assert complaint(["all"], results).startswith(
        "no metric of all has a value in all of these records; run the explainers again with the "
        "same --metrics (there are aopc, "
    )
