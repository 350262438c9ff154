"""What `compare-models` prints: numbers worked out by hand, in 80 columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.compare_models import compare_models
from faithbench.core.errors import FaithbenchError
from tests.support.stores import change_rows, store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]
DOWN = [value - 0.1 - value / 10 for value in UP]


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for model, values in {"plain": UP, "trained": DOWN}.items():
        for name, own in {"lime": values, "random": UP}.items():
            told = {"name": model, "weights_sha256": model[0] * 64, "labels": ["no", "yes"]}
            path = store(tmp_path / model, f"{name}-11111111", {"aopc": own}, model=told)
            change_rows(path, {f"e{n}": {"label": n % 2, "right": n > 0} for n in range(7)})
    return tmp_path


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")

    def run(results: Path, *models: str, **options: object) -> list[str]:
        words = list(models) or ["plain", "trained"]
        compare_models(models=words, task="sst2", results=results, **options)
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) <= 80
        return [" ".join(line.split()) for line in lines]

    return run


def test_one_table(results: Path, printed) -> None:
    lines = printed(results, metric="aopc")
    assert lines[:4] == [
        "plain and trained, sst2",
        "",
        "AOPC, 7 examples",
        "first second change (up) p rank-sum n",
    ]
    assert lines[5].startswith("lime 0.400 0.260 -0.140 0.016 0.") and lines[5].endswith(" 7")
    assert lines[6] == "random 0.400 0.400 +0.000 - 1 7"


def test_by_class_and_right_alone(results: Path, printed) -> None:
    lines = printed(results, metric="aopc", right=True, by_class=True, explainer="lime")
    titles = [line for line in lines if line.startswith("AOPC")]
    assert titles == [
        "AOPC, 3 examples that both get right, class no",
        "AOPC, 3 examples that both get right, class yes",
    ]
    assert not any(line.startswith("random") for line in lines)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "apoc"}, "no metric in these records named 'apoc'; did you mean 'aopc'"),
        ({"metric": "aopc", "explainer": "lmie"}, "no explainer of all these models named 'lmie'"),
    ],
)
def test_faults_are_named(results: Path, options: dict[str, str], message: str) -> None:
    with pytest.raises(FaithbenchError, match="name two models or more to compare"):
        compare_models(models=["plain"], task="sst2", results=results)
    with pytest.raises(FaithbenchError, match=message):
        compare_models(models=["plain", "trained"], task="sst2", results=results, **options)
