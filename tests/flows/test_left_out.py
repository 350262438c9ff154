"""Explainers that cannot serve a model are named and left out; the others run as if alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import faithbench
from faithbench.cli.run import left_out_lines
from faithbench.core.errors import FaithbenchError, RefusedError
from faithbench.run.backends import choose_backend
from faithbench.run.job import Job
from faithbench.run.loop import run, run_serving
from faithbench.run.request import Request, make_job
from faithbench.testing.tiny import tiny_model
from tests.support.commands import Call
from tests.support.paths import ROOT

WHY = "a bilstm model has no square attention, of every token to every token; choose attention"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BiLSTM, which has no attention of every token to every token."""
    path = tmp_path_factory.mktemp("models") / "net"
    model = tiny_model("bilstm", 2)
    model.network.save_pretrained(path)
    model.tokenizer.save_pretrained(path)
    return path


def job_of(folder: Path, explainers: str, results: Path) -> Job:
    return make_job(
        Request(
            explainer=explainers,
            task="sst2",
            model=str(folder),
            limit=6,
            metrics="aopc",
            results=results,
            device="cpu",
        ),
        quiet,
    )


def quiet(*_: object) -> None:
    return


def stable(results: Path) -> dict[str, bytes]:
    """The rows of a run by name: all that it says of examples, without times."""
    return {
        path.name: path.read_bytes()
        for path in sorted(results.rglob("*.rows.jsonl.gz"))
        if ".partial" not in path.parts
    }


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_others_are_as_if_it_had_never_been_asked(
    folder: Path, tmp_path: Path, jobs: int
) -> None:
    alone = run(job_of(folder, "attention,random", tmp_path / "alone"), quiet)
    mixed = job_of(folder, "attention,rollout,random,alti", tmp_path / "mixed")
    served = run_serving(mixed, quiet, choose_backend(jobs))
    assert list(served.left_out) == ["rollout", "alti"]
    assert served.left_out["rollout"].startswith(WHY)
    assert [outcome.rows for outcome in served.outcomes] == [outcome.rows for outcome in alone]
    names = [outcome.path.name for outcome in served.outcomes]
    assert names == [outcome.path.name for outcome in alone]
    assert stable(tmp_path / "mixed") == stable(tmp_path / "alone")
    assert not list((tmp_path / "mixed").rglob(".partial/*rollout*"))
    # What is done is not done again, and is left out again.
    again = run_serving(job_of(folder, "attention,rollout", tmp_path / "mixed"), quiet)
    assert list(again.left_out) == ["rollout"]


def test_if_none_serves_each_is_named(folder: Path, tmp_path: Path) -> None:
    job = job_of(folder, "rollout,alti", tmp_path)
    with pytest.raises(RefusedError) as caught:
        run_serving(job, quiet)
    assert str(caught.value).startswith(
        f"these explainers cannot serve model 'net': rollout ({WHY}"
    )
    assert "alti (a bilstm model has no blocks" in str(caught.value)
    with pytest.raises(
        RefusedError, match="explainer 'rollout' cannot serve model 'net': a bilstm"
    ):
        run_serving(job_of(folder, "rollout", tmp_path), quiet)
    assert not list(tmp_path.rglob("*.json"))


def test_what_settings_can_mend_still_ends_a_run(folder: Path, tmp_path: Path) -> None:
    of_another = ROOT / "faithbench/data/bundled/sst2" / "students" / "deep-shap-labelling"
    job = job_of(folder, f"random,l2e:student={of_another}", tmp_path)
    with pytest.raises(FaithbenchError, match="this student of deep-shap explains model") as caught:
        run_serving(job, quiet)
    assert not isinstance(caught.value, RefusedError)


def test_the_result_of_the_api_says_who_was_left_out(folder: Path) -> None:
    result = faithbench.evaluate(
        "sst2", ["attention", "rollout"], model=str(folder), limit=6, metrics="aopc", human=False
    )
    assert list(result.left_out) == ["rollout"] and result.labels == ("attention",)


def test_the_command_ends_with_who_was_left_out(folder: Path, tmp_path: Path, call: Call) -> None:
    said = call(
        "run", "--task", "sst2", "--model", str(folder), "--explainer", "attention,rollout",
        "--limit", "6", "--metrics", "aopc", "--results", str(tmp_path),
    )  # fmt: skip
    assert said.code == 0
    assert said.out.splitlines()[-1].startswith(f"left out: rollout ({WHY}")
    assert list(left_out_lines({})) == []
