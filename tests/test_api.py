"""The front door: its numbers are those of the commands, and importing it is quick."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import faithbench as fb
from faithbench.core.types import Batch
from faithbench.data.words import word_spans
from faithbench.models.encoding import encode
from faithbench.models.session import Session
from faithbench.run.evaluation import Evaluation
from tests.support.builders import make_task, put
from tests.support.commands import Call, fresh
from tests.support.jobs import TEXTS

METRICS = "aopc,lodds,tau_loo"
HEAVY = """
import sys
import faithbench
heavy = {"torch", "transformers", "scipy", "pydantic", "numpy", "rich", "typer"} & set(sys.modules)
assert not heavy, heavy
assert set(faithbench.__all__) <= set(dir(faithbench))
faithbench.explainer, faithbench.FaithbenchError, faithbench.__version__
faithbench.list_explainers(), faithbench.list_metrics(), faithbench.list_tasks()
assert not {"torch", "transformers"} & set(sys.modules)
print([name for name in faithbench.__all__ if not getattr(faithbench, name)])
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("data")
    rows = [{"id": f"e{i:02}", "text": text, "label": i % 2} for i, text in enumerate(TEXTS[:6])]
    put(folder, rows)
    return fb.load_dataset(make_task(), folder=folder)


@pytest.fixture(scope="module")
def evaluation(data: Any, tiny_model: Any) -> Iterator[Evaluation]:
    model = relabelled(tiny_model(), data)
    yield fb.evaluate(data.task, "attention,random", model=model, data=data, metrics=METRICS)


def relabelled(model: Any, data: Any) -> Any:
    """Return a tiny model under the labels of the task."""
    return replace(model, labels=data.task.labels)


def test_importing_is_light_and_every_name_is_there(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HEAVY],
        env=fresh(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and done.stdout == "[]\n", done.stderr
    with pytest.raises(AttributeError, match="no attribute 'explian'"):
        fb.explian  # noqa: B018  # asking is the test


def test_lists_name_what_can_be_asked_for() -> None:
    assert fb.list_tasks()["sst2"] == fb.load_task("sst2").title
    controls = list(fb.list_explainers("control"))
    assert controls == ["random", "first-tokens", "human", "salience"]
    assert fb.list_explainers()["gradient"] == "Measure the gradient at each embedding."
    assert "aopc" in fb.list_metrics("faithfulness") and "auprc" not in fb.list_metrics("stability")
    with pytest.raises(fb.FaithbenchError, match="did you mean 'control'"):
        fb.list_explainers("controls")


def test_evaluate_equals_the_record_that_the_command_writes(call: Call, tmp_path: Path) -> None:
    said = call(
        *("run", "--explainer", "attention,random", "--task", "sst2", "--source", "bundled"),
        *("--limit", 4, "--metrics", METRICS, "--seeds", 2, "--results", "out"),
    )
    assert said.code == 0, said.err
    found = fb.evaluate(
        "sst2",
        ["attention", "random"],
        source="bundled",
        limit=4,
        metrics=METRICS.split(","),
        seeds=2,
    )
    paths = {
        json.loads(path.read_text())["explainer"]["name"]: path
        for path in tmp_path.rglob("*.json")
        if not path.parent.name.startswith(".")
    }
    for label in ("attention", "random"):
        record = fb.read_record(paths[label])
        assert found.records[label].metrics == record.metrics
        assert found.records[label].rows.sha256 == record.rows.sha256
        assert found[label].rows == fb.read_rows(paths[label])
    assert found.results is None and not found["random"].path.exists()
    compared = fb.compare([paths["attention"], paths["random"]], "aopc")
    assert compared == fb.compare(["attention", "random"], "aopc", task="sst2", results="out")
    (recorded,) = compared.tournament.duels
    again = next(d for d in found.compare("aopc").tournament.duels if "human" not in d[:2])
    assert again.test == recorded.test


def test_scores_of_an_explainer_get_the_values_of_that_explainer(
    evaluation: Evaluation, data: Any
) -> None:
    rows = evaluation["attention"].rows
    by_id = {row.id: np.array(row.scores) for row in reversed(rows)}
    for given in (by_id, [row.scores for row in rows]):
        scored = fb.score(
            given, data.task, model=evaluation.model, data=data, metrics=METRICS, name="mine",
            against="random",
        )  # fmt: skip
        assert scored.labels == ("mine", "random")
        for row, expected in zip(scored["mine"].rows, rows, strict=True):
            assert row.scores == expected.scores
            assert row.values == pytest.approx(expected.values, abs=1e-9)
    assert scored["random"].rows[0].scores == evaluation["random"].rows[0].scores


def test_scores_of_words_are_shared_among_their_tokens(evaluation: Evaluation, data: Any) -> None:
    words = [np.arange(len(word_spans(e.text)), dtype=float) for e in data.examples]
    scored = fb.score(
        words, data.task, model=evaluation.model, data=data, unit="words", metrics="aopc"
    )
    for example, row, given in zip(data.examples, scored["scores"].rows, words, strict=True):
        encoding = encode(evaluation.model, example)
        sums = np.zeros(len(given))
        np.add.at(sums, encoding.words[encoding.erasable], row.scores)
        present = np.isin(np.arange(len(given)), encoding.words)  # not cut off
        assert sums[present] == pytest.approx(given[present], abs=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[1.0]], "there are 1 arrays for 6 examples"),
        ([[1.0]] * 6, "example 'e00': 1 scores for 2 tokens that may be erased"),
        ({"e99": [1.0]}, "attributions lacks example 'e00' and 5 more"),
        ([[[1.0]]] * 6, r"example 'e00' have shape \(1, 1\)"),
        ([[float("nan")]] * 6, "example 'e00'"),
        ([["good"]] * 6, "example 'e00' are not an array of numbers"),
    ],
)
def test_scores_that_do_not_fit_name_the_example(
    evaluation: Evaluation, data: Any, given: Any, message: str
) -> None:
    with pytest.raises(fb.FaithbenchError, match=message):
        fb.score(given, data.task, model=evaluation.model, data=data, metrics="aopc")


@fb.explainer("by-position")
@dataclass(frozen=True)
class ByPosition:
    """Score tokens by their position, the last one highest."""

    sign: int = 1

    def __call__(self, session: Session, batch: Batch) -> Any:
        return self.sign * batch.ids.cumsum(1).double()


def test_explainers_may_be_objects(evaluation: Evaluation, data: Any) -> None:
    from faithbench.explainers.attention import Attention

    found = fb.evaluate(
        data.task,
        [ByPosition(), ByPosition(sign=-1), Attention(), "random"],
        model=evaluation.model,
        data=data,
        metrics=METRICS,
    )
    assert found.labels == ("by-position", "by-position:sign=-1", "attention", "random")
    assert found.records["attention"].explainer == evaluation.records["attention"].explainer
    assert found["attention"].rows[0].values == evaluation["attention"].rows[0].values
    with pytest.raises(fb.FaithbenchError, match="did you mean 'by-position'"):
        found["by-positon"]


def test_an_evaluation_shows_its_means(evaluation: Evaluation) -> None:
    mean = evaluation.records["attention"].metrics["aopc"].mean
    assert f"{mean:.3f} " in str(evaluation.table()) == str(evaluation)
    page = evaluation._repr_html_()
    assert page.count("<th>") == 3 and f"{mean:.3f} " in page
    frame = evaluation.to_frame()
    assert len(frame) == 12 and frame[frame.explainer == "attention"].aopc.mean() == pytest.approx(
        mean, abs=1e-9
    )


def test_a_frame_without_pandas_says_what_to_do(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(fb.FaithbenchError, match="needs pandas, which is not installed"):
        evaluation.to_frame()


def test_words_of_an_explanation_are_sums_of_their_tokens(evaluation: Evaluation) -> None:
    shown = fb.explain(evaluation.model, "greatly dulls <b> the plots", "attention")
    encoding, scores = shown.attribution.encoding, shown.attribution.scores
    sums = np.zeros(len(encoding.word_spans))
    np.add.at(sums, encoding.words[encoding.erasable], scores)
    assert sorted(score for _, score in shown.words) == pytest.approx(sorted(sums), abs=1e-12)
    assert str(shown).startswith(f"attention: {shown.said} (p = 0.")
    assert "&lt;" in shown._repr_html_() and "<b> " not in shown._repr_html_()
    with pytest.raises(fb.FaithbenchError, match="takes one explainer, found attention, random"):
        fb.explain(evaluation.model, "good", "attention,random")


def test_models_come_with_the_labels_of_their_task(data: Any, evaluation: Evaluation) -> None:
    model = fb.load_model("bundled:sst2")
    assert model.labels == fb.load_task("sst2").labels
    with pytest.raises(fb.FaithbenchError, match="come from its task"):
        fb.load_model("some/model")
    with pytest.raises(fb.FaithbenchError, match="load the model for this task"):
        fb.evaluate("agnews", "random", source="bundled", limit=1, model=model)
    with pytest.raises(fb.FaithbenchError, match="the data are of task"):
        fb.evaluate("sst2", "random", data=data)
