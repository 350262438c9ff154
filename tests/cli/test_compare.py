"""What `compare` prints: numbers worked out by hand, in 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.compare import compare as compare_command
from tests.support.stores import store

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
        compare_command(explainers=words, task="sst2", results=results, metric=metrics)
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
    compare_command(explainers=["lime", "random"], task=str(path), results=results, metric="aopc")


def test_texts_that_are_not_published_are_no_blank_lines(tmp_path: Path, printed) -> None:
    hidden = [f"e{number}" for number in range(6)]
    store(tmp_path, "lime-11111111", {"aopc": UP}, textless=hidden)
    store(tmp_path, "random-22222222", {"aopc": ZERO}, textless=hidden)
    *_, e1, values, e0, _, said, rest = printed(["random", "lime"], tmp_path, "aopc")
    assert (e1, values, e0) == ("e1", "random 0.000, lime 0.200", "e0")
    assert f"{said} {rest}" == (
        "Published records have the words of bundled examples only: 6 of these are not shown."
    )


def test_examples_are_words_on_coloured_ground(
    results: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    compare_command(explainers=["lime", "random"], task="sst2", results=results, metric="aopc")
    shown = capsys.readouterr().out.split("differ most in")[1]
    # Seven examples, a line of words for each of two explainers, and a shade for each word.
    assert shown.count("lime 0.") == shown.count("random 0.000") == 7
    assert "\x1b[30;48;" in shown
