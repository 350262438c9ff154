"""Rules for every submission: tasks and models that anyone can get, and digests of its files."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.submissions.entry import read_entry
from faithbench.submissions.rules import digests_of, known_model, known_task
from faithbench.submissions.scaffold import new_submission
from tests.support.builders import REVISION, make_task

TASK = make_task(
    bundled={"splits": {"test": "test.jsonl"}},
    models={
        "hub": {"name": "owner/model", "revision": REVISION},
        "bundled": {"name": "bundled:mini"},
    },
)


def test_a_plugin_stands_on_its_code_and_its_data(tmp_path: Path) -> None:
    folder = new_submission(tmp_path, "my-x", "plugin")
    (folder / "data").mkdir()
    (folder / "data" / "idf.json").write_text("{}")
    (folder / "README.md").write_text("words")
    digests = digests_of(folder, read_entry(folder), "sst2")
    assert list(digests) == ["data/idf.json", "explainer.py"]
    assert digests["data/idf.json"] == hashlib.sha256(b"{}").hexdigest()
    code = (folder / "explainer.py").read_bytes()
    assert digests["explainer.py"] == hashlib.sha256(code).hexdigest()


def test_attributions_stand_on_the_file_of_the_task(tmp_path: Path) -> None:
    folder = new_submission(tmp_path, "my-w", "attributions")
    digests = digests_of(folder, read_entry(folder), "sst2")
    data = (folder / "scores" / "sst2.jsonl").read_bytes()
    assert digests == {"scores/sst2.jsonl": hashlib.sha256(data).hexdigest()}


def test_only_tasks_of_faithbench_are_known(tmp_path: Path) -> None:
    assert known_task("sst2").name == "sst2"
    own = tmp_path / "own.toml"
    own.write_text("")
    for name in (str(own), "../tasks/sst2.toml", "sst", "x\x1b[31m"):
        with pytest.raises(FaithbenchError, match="no task named") as caught:
            known_task(name)
        assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("source", "name", "model"),
    [
        ("hub", None, ("owner/model", REVISION)),
        ("bundled", None, ("bundled:mini", None)),
        ("bundled", "owner/model", ("owner/model", REVISION)),  # with the task's revision
        ("hub", "bundled:sst2", ("bundled:sst2", None)),
    ],
)
def test_models_that_anyone_can_get(
    source: str, name: str | None, model: tuple[str, str | None]
) -> None:
    assert known_model(TASK, source, name) == model


@pytest.mark.parametrize("name", ["/home/me/model", "../model", "other/model", ""])
def test_other_models_are_refused_and_the_task_s_are_named(name: str) -> None:
    message = "use bundled:<task>, or the task's own: bundled:mini, owner/model"
    with pytest.raises(FaithbenchError, match=message):
        known_model(TASK, "hub", name)


def test_a_source_without_a_model_is_told() -> None:
    with pytest.raises(FaithbenchError, match="mini names no model for folder data"):
        known_model(TASK, "folder", None)
