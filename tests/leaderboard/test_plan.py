"""The plan of a leaderboard: read strictly, and run only where records are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.data.tasks import load_task
from faithbench.explainers.selection import find_explainers
from faithbench.leaderboard import publish
from faithbench.leaderboard.plan import Plan, read_plan, run_plan
from faithbench.metrics.registry import find_metrics
from faithbench.records.store import stored_records
from faithbench.run import finish
from faithbench.testing.tiny import tiny_model
from tests.support.jobs import content
from tests.support.paths import ROOT

RUN = '[[runs]]\nname = "one"\ntask = "sst2"\nlimit = 6\nexplainers = ["random"]\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (RUN.replace("limit = 6", "limit = 0"), "runs.0.limit"),
        (RUN + "depth = 3\n", "runs.0.depth"),
        (RUN + RUN, "two runs named 'one'"),
        ("runs = [", "cannot read plan"),
        ("runs = " + "9" * 5000, "cannot read plan"),
        (RUN + 'model = "models/net"\n', "needs made_by, the command that makes it"),
    ],
)
def test_a_wrong_plan_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        read_plan(written(tmp_path, text))
    assert message in str(caught.value)


def test_the_room_is_imported_without_torch() -> None:
    code = "import sys, faithbench.leaderboard; print('torch' in sys.modules)"
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"


def test_our_own_plan_names_what_there_is() -> None:
    plan = read_plan(ROOT / "leaderboard" / "plan.toml")
    for run in plan.runs:
        assert load_task(run.task).name == run.task
        assert len(find_explainers(",".join(run.explainers))) == len(run.explainers)
        assert find_metrics(run.metrics)
    assert len(plan.runs) >= 4


def run_all(plan: Plan, folder: Path, *only: str) -> list[str]:
    lines: list[str] = []
    run_plan(
        plan,
        data=None,
        results=folder / "results",
        records=folder / "records",
        only=only,
        say=lines.append,
        progress=lambda *_: None,
    )
    return lines


def test_what_has_a_record_is_not_run_again(tmp_path: Path) -> None:
    """The bundled sample has rationales by people, so `human` takes part."""
    first = read_plan(written(tmp_path, RUN))
    assert run_all(first, tmp_path) == ["one: 2 of 2 explainers to run"]
    more = RUN.replace('["random"]', '["random", "first-tokens"]')
    second = read_plan(written(tmp_path, more))
    assert run_all(second, tmp_path) == ["one: 1 of 3 explainers to run"]
    assert run_all(second, tmp_path) == ["one: 0 of 3 explainers to run"]
    records = stored_records(tmp_path / "records", "sst2")
    names = [stored.record.explainer.name for stored in records]
    assert names == ["first-tokens", "human", "random"]
    assert len(records[0].rows) == 6 and len(records[0].rows[0].curve) == 9


def test_only_the_runs_that_are_named_are_run(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, RUN + RUN.replace('"one"', '"two"')))
    assert run_all(plan, tmp_path, "two") == ["two: 2 of 2 explainers to run"]
    with pytest.raises(FaithbenchError, match="did you mean 'two'"):
        run_all(plan, tmp_path, "tow")


def test_a_plan_chooses_metrics(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, RUN + 'metrics = "faithfulness,-tau_loo"\n'))
    run_all(plan, tmp_path)
    for stored in stored_records(tmp_path / "records", "sst2"):
        assert "aopc" in stored.record.metrics and "tau_loo" not in stored.record.metrics


@pytest.mark.parametrize("at", ["record", "publication"])
def test_a_killed_run_of_the_plan_ends_in_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """Killed after the first record, when the others are known by their unfinished rows alone."""
    model, net = tiny_model("bert", dtype=torch.float32), tmp_path / "net"
    model.network.save_pretrained(net)
    model.tokenizer.save_pretrained(net)
    settings = f'metrics = "aopc"\nseeds = 1\nmodel = "{net}"\nmade_by = "a command"\n'
    text = RUN.replace('["random"]', '["random", "attention", "lime:samples=8"]') + settings
    first = read_plan(written(tmp_path, text))
    run_all(first, tmp_path / "whole")
    room, name = (finish, "write") if at == "record" else (publish, "replace_file")
    write, written_files = getattr(room, name), list[object]()

    def killed(*arguments: object) -> None:
        written_files.append(arguments)
        if len(written_files) == (2 if at == "record" else 3):
            raise KeyboardInterrupt
        write(*arguments)

    folder = tmp_path / "killed"
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(room, name, killed)
        run_all(first, folder)
    assert run_all(first, folder)[0] in {
        "one: 3 of 4 explainers to run",
        "one: 0 of 4 explainers to run",
    }
    for part in ("results", "records"):
        assert content(folder / part) == content(tmp_path / "whole" / part), part


def test_rows_that_a_killed_run_did_not_tidy_up_go_with_the_next(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, RUN))
    run_all(plan, tmp_path)
    whole = content(tmp_path / "results")
    (path,) = (tmp_path / "results").glob("one/*/*/random-*.json")
    left = path.parent / ".partial" / f"{path.stem}-01234567-3.rows.jsonl"
    left.write_text("")
    (tmp_path / "results" / "one" / ".explainers.json").write_text('["random", "human"]')
    assert run_all(plan, tmp_path) == ["one: 0 of 2 explainers to run"]
    assert content(tmp_path / "results") == whole


def test_a_run_waits_for_the_command_that_makes_its_model(tmp_path: Path) -> None:
    """Who has the published records alone can still run the rest of the plan."""
    made = 'model = "nowhere/net"\nmade_by = "faithbench train --arch bilstm"\n'
    plan = read_plan(written(tmp_path, RUN + made + RUN.replace('"one"', '"two"')))
    assert run_all(plan, tmp_path) == [
        "one: left out, there is no nowhere/net; faithbench train --arch bilstm",
        "two: 2 of 2 explainers to run",
    ]


def test_a_run_explains_the_model_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "net"
    model = tiny_model("bilstm", 2)
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    made = f'model = "{folder}"\nmade_by = "faithbench train --arch bilstm"\n'
    run_all(read_plan(written(tmp_path, RUN + made)), tmp_path)
    records = stored_records(tmp_path / "records", "sst2")
    assert {stored.record.model.name for stored in records} == {"net"}
