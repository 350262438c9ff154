"""What the README shows works as it is written."""

from __future__ import annotations

import re
from pathlib import Path

from faithbench.data.tasks import load_task
from faithbench.explainers.selection import find_explainers
from faithbench.testing.conformance import check_explainer

README = (Path(__file__).parents[2] / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.S)


def test_the_plugin_is_short_and_keeps_the_rules(tmp_path: Path) -> None:
    code = blocks("python")[0]
    assert len(code.splitlines()) < 25
    path = tmp_path / "mine.py"
    path.write_text(code)
    (chosen,) = find_explainers("drop-one:scale=2", [path])
    check_explainer(chosen.explainer, architectures=("bert",))


def test_the_task_file_is_short_and_loads(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    assert len(text.splitlines()) <= 15
    path = tmp_path / "reviews.toml"
    path.write_text(text)
    task = load_task(str(path))
    assert task.labels == ("negative", "positive")
    assert task.folder is not None and task.folder.splits == {"test": "test"}


def test_the_metric_gives_the_fall(monkeypatch) -> None:
    import numpy as np

    from faithbench.core.erasure import top_count, without
    from faithbench.core.types import Case, Outputs
    from faithbench.metrics import registry as metrics

    monkeypatch.setattr(metrics, "METRICS", {})
    names = {
        "metric": metrics.metric,
        "without": without,
        "top_count": top_count,
        "Case": Case,
        "Answers": Outputs,
    }
    exec(blocks("python")[1], names)
    shown = metrics.METRICS["drop_at_20"]
    scores, places = np.arange(10.0), np.arange(1, 11)
    case = Case(scores, places, float(np.log(0.9)), np.zeros(12), places)
    assert shown.plan(case).tolist() == [[True] * 9 + [False] * 2 + [True]]
    answers = Outputs(np.log([0.4]), np.array([False]))
    assert abs(shown.value(case, answers) - 0.5) < 1e-12
