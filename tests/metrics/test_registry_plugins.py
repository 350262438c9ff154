"""Metrics from elsewhere: a loose file or an installed package brings one, and runs use it."""

from __future__ import annotations

import re
import textwrap
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from faithbench.cli.lists import list_metrics
from faithbench.core import plugins
from faithbench.core.errors import FaithbenchError
from faithbench.metrics import registry
from faithbench.metrics.kinds import CaseMetric, TableMetric, WordMetric
from faithbench.metrics.registry import GROUP, METRICS, find_metrics
from faithbench.records.record import read
from faithbench.records.rows_file import read_rows
from tests.support.cases import case_of
from tests.support.cases import said as outputs_of
from tests.support.commands import Call, complaint

BUNDLED = ("--task", "sst2", "--source", "bundled", "--limit", 4, "--device", "cpu")

WORDS = '''
from dataclasses import dataclass

from faithbench import explainer, metric, per_example

FACTS = {"family": "stability", "higher_is_better": None, "bounds": (0, 1000)}


@explainer("lengths")
@per_example
@dataclass(frozen=True)
class Lengths:
    """Score a token by its length."""

    def __call__(self, probs, example):
        return [len(token) for token in example.tokens]


@metric("best_word", kind="word", **FACTS)
def best_word(words):
    """Highest score of a word."""
    return float(words.scores.max())


@metric("near_words", kind="table", needs_encoder=False, **FACTS)
def near_words(table):
    """Number of words of the nearest example."""
    return [
        len(table.words[others[0]].strings) if others else None
        for others in table.neighbours("lexical")
    ]
'''


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """The plugin that the registry's docstring shows."""
    shown = re.search(r"\n\n(    import numpy.*?)\n\nThe first", registry.__doc__ or "", re.DOTALL)
    assert shown is not None
    path = tmp_path / "drop.py"
    path.write_text(textwrap.dedent(shown[1]))
    return path


def install(monkeypatch: pytest.MonkeyPatch, *points: EntryPoint) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: list(points) * (group == GROUP))


def message(names: str, *files: Path) -> str:
    with pytest.raises(FaithbenchError) as caught:
        find_metrics(names, files=files)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# A loose file


def test_one_file_is_a_metric(drop: Path) -> None:
    aopc, found = find_metrics("aopc,drop_at_20", files=[drop])
    assert aopc is METRICS["aopc"] and isinstance(found, CaseMetric)
    assert (found.family, found.bounds, found.version) == ("faithfulness", (-1, 1), 1)
    assert found.summary == "Fall of the target's probability without the top 20% of the tokens."
    assert "drop_at_20" not in METRICS, "what a file brings stays with those who name the file"


def test_a_plugin_is_no_part_of_a_family_or_of_all(drop: Path) -> None:
    assert find_metrics("all", files=[drop]) == find_metrics("all")
    assert find_metrics("faithfulness", files=[drop]) == find_metrics("faithfulness")
    assert find_metrics("aopc,drop_at_20,-drop_at_20", files=[drop]) == (METRICS["aopc"],)


def test_a_run_computes_it_and_the_record_has_it(drop: Path, tmp_path: Path, call: Call) -> None:
    """Without the top 20% is the second point of the curve that AOPC keeps."""
    results = tmp_path / "results"
    said = call(
        *("run", "--explainer", "attention", "--no-human", *BUNDLED, "--plugin", drop),
        *("--metrics", "aopc,drop_at_20", "--results", results),
    )
    assert said.code == 0, said.err
    assert re.search(r"drop_at_20 ↑ +-?\d", said.out)
    (path,) = results.glob("*/*/*.json")
    record = read(path)
    assert list(record.metrics) == ["aopc", "drop_at_20"]
    facts = record.metrics["drop_at_20"]
    assert (facts.n, facts.family, facts.higher_is_better) == (4, "faithfulness", True)
    rows = read_rows(path.with_suffix(".rows.jsonl"))
    for row in rows:
        fall = row.probability - row.curve[1]
        assert row.values["drop_at_20"] == pytest.approx(fall, abs=1e-6)


def test_words_tables_and_an_explainer_in_one_file(tmp_path: Path, call: Call) -> None:
    """Scores are lengths of tokens, so that the best word is the longest."""
    path, results = tmp_path / "words.py", tmp_path / "results"
    path.write_text(WORDS)
    word, table = find_metrics("best_word,near_words", files=[path])
    assert isinstance(word, WordMetric) and isinstance(table, TableMetric)
    said = call(
        *("run", "--explainer", "lengths", "--no-human", *BUNDLED, "--plugin", path),
        *("--metrics", "best_word,near_words", "--results", results),
    )
    assert said.code == 0, said.err
    (record,) = results.glob("*/*/*.json")
    rows = read_rows(record.with_suffix(".rows.jsonl"))
    assert any((row.values["near_words"] or 0) > 1 for row in rows)
    for row in rows:
        assert row.values["best_word"] >= max(len(token) for token in row.tokens)


def test_a_misspelt_plugin_metric_is_corrected(drop: Path, call: Call, tmp_path: Path) -> None:
    said = call("run", "--explainer", "random", *BUNDLED, "--plugin", drop, "--metrics", "drop_20")
    assert complaint(said) == "no metric named 'drop_20'; did you mean 'drop_at_20'?"


# An installed package


def test_an_entry_point_is_a_metric(
    drop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    drop.rename(drop.with_name("dropped_package.py"))
    monkeypatch.syspath_prepend(drop.parent)
    install(monkeypatch, EntryPoint("drop_at_20", "dropped_package:drop_at_20", GROUP))
    (found,) = find_metrics("drop_at_20")
    assert isinstance(found, CaseMetric) and found.name == "drop_at_20"
    assert find_metrics("all") == tuple(m for m in find_metrics("all") if m.name in METRICS)
    monkeypatch.setenv("COLUMNS", "300")
    list_metrics()
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.split()[:3] == ["drop_at_20", "up", "-1..1"]
    assert "A faithfulness metric of package unknown; runs if it is named." in last


def test_a_package_that_does_not_import_hurts_no_other_metric(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, EntryPoint("broken", "no_such_module:x", GROUP))
    assert find_metrics("aopc") == (METRICS["aopc"],)
    assert "plugin 'broken' (no_such_module:x) does not import" in message("broken")
    monkeypatch.setenv("COLUMNS", "300")
    list_metrics()
    assert "error: plugin 'broken' (no_such_module:x) does not" in capsys.readouterr().out


# What is refused


def test_a_built_in_name_cannot_be_taken(drop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drop.write_text(drop.read_text().replace("drop_at_20", "aopc"))
    expected = "metric 'aopc' is defined by faithbench itself and {}; rename the latter"
    assert message("lodds", drop) == expected.format("file drop.py"), "whatever is asked for"
    install(monkeypatch, EntryPoint("aopc", "no_such_module:x", GROUP))
    assert message("aopc") == expected.format("package unknown")
    assert find_metrics("lodds") == (METRICS["lodds"],)


def test_two_plugins_of_one_name_are_both_named(
    drop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, EntryPoint("drop_at_20", "no_such_module:x", GROUP))
    expected = "metric 'drop_at_20' is defined by file drop.py and package unknown; uninstall one"
    assert message("drop_at_20", drop) == expected


def test_something_else_is_no_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = EntryPoint("odd", "math:sqrt", GROUP)
    other = EntryPoint("other", "faithbench.metrics.faithfulness:aopc", GROUP)
    install(monkeypatch, odd, other)
    assert "plugin 'odd' of package unknown is not a metric" in message("odd")
    assert "below @faithbench.metric('other', ...)" in message("other"), "both have one name"


def test_a_plugin_cannot_bring_a_measure(tmp_path: Path) -> None:
    path = tmp_path / "taken.py"
    path.write_text(WORDS.replace('"best_word", kind="word"', '"best_word", kind="measure"'))
    assert message("near_words", path) == (
        "metric 'best_word' of file taken.py is a measure, which only the run itself takes; "
        "make it a case, word, table or influence metric"
    )


def test_a_wrong_fact_is_one_line(drop: Path) -> None:
    drop.write_text(drop.read_text().replace("higher_is_better", "higher_is_beter"))
    assert message("drop_at_20", drop) == (
        "plugin file drop.py does not import: FaithbenchError: no fact of a case metric named "
        "'higher_is_beter'; did you mean 'higher_is_better'?"
    )


def test_a_value_out_of_range_stops_the_run(drop: Path, call: Call) -> None:
    drop.write_text(drop.read_text().replace("float(case", "5 + float(case"))
    said = call("run", "-e", "random", *BUNDLED, "--plugin", drop, "--metrics", "drop_at_20")
    assert said.code == 1
    assert re.search(r"drop_at_20 is .*, outside its range \[-1, 1\]", said.err)


def test_a_metric_that_fails_is_one_line(drop: Path) -> None:
    drop.write_text(drop.read_text().replace("probability[0]", "probability[7]"))
    (found,) = find_metrics("drop_at_20", files=[drop])
    assert isinstance(found, CaseMetric)
    with pytest.raises(FaithbenchError) as caught:
        found.value(case_of([1.0, 2.0]), outputs_of([0.5]), "e1")
    assert str(caught.value) == (
        "metric 'drop_at_20' failed on e1: IndexError: index 7 is out of bounds for axis 0 with "
        "size 1 (--debug shows the traceback)"
    )


def test_a_metric_that_fails_in_a_run_is_named_with_its_example(drop: Path, call: Call) -> None:
    drop.write_text(drop.read_text().replace("probability[0]", "probability[7]"))
    said = call("run", "-e", "random", *BUNDLED, "--plugin", drop, "--metrics", "drop_at_20")
    assert said.code == 1
    assert re.search(r"metric 'drop_at_20' failed on bundled-sst2-\S+: IndexError", said.err)


@pytest.mark.parametrize(
    ("plan", "shape"),
    [("without(case, 1)", "(4,) and type bool"), ("np.ones((1, 4))", "(1, 4) and type float64")],
)
def test_a_plan_is_an_array_of_rows(drop: Path, plan: str, shape: str) -> None:
    planned = "np.stack([without(case, top_count(case.n, 20))])"
    drop.write_text(drop.read_text().replace(planned, plan))
    (found,) = find_metrics("drop_at_20", files=[drop])
    assert isinstance(found, CaseMetric)
    with pytest.raises(FaithbenchError) as caught:
        found.rows(case_of([1.0, 2.0]))
    assert f"planned inputs of shape {shape} for 4 tokens" in str(caught.value)
