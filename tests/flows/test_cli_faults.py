"""What the command line says when something is wrong: one line that says what to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from tests.support.builders import MINI, put
from tests.support.commands import RUN, Call, complaint

TASK = (
    MINI
    + """\

[folder]
name = "mini"
splits = { test = "test" }

[models.folder]
name = "bundled:sst2"
"""
)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*RUN, "--task", "sst3"), "no task named 'sst3'; did you mean 'sst2'?"),
        (
            (*RUN, "--task", "sst2", "--explainer", "atention"),
            "no explainer named 'atention'; did you mean 'attention'?",
        ),
        (
            (*RUN, "--task", "sst2", "--metrics", "aocp"),
            "no metric named 'aocp'; did you mean 'aopc'?",
        ),
        (
            (*RUN, "--task", "sst2", "--explainer", "lrp-mask:threshold=paper"),
            "no setting of lrp-mask named 'threshold'; did you mean 'thresholds'?",
        ),
        (
            (*RUN, "--task", "sst2", "--explainer", "lime:samples=x"),
            "lime: samples is a whole number, found 'x'",
        ),
        (
            (*RUN, "--task", "sst2", "--operator", "mas"),
            "no operator named 'mas'; did you mean 'mask'?",
        ),
        (
            (*RUN, "--task", "sst2", "--source", "bundle"),
            "no data source named 'bundle'; did you mean 'bundled'?",
        ),
        (
            (*RUN, "--task", "sst2", "--source", "bundled", "--device", "gpu"),
            "device 'gpu' is not one of auto, cuda, mps, cpu",
        ),
        (
            ("explain", "--text", "fine", "--explainer", "rolout"),
            "no explainer named 'rolout'; did you mean 'rollout'?",
        ),
        (
            # Before anything is explained, though the encoder is needed at the end.
            (*RUN, "--task", "sst2", "--source", "bundled", "--encoder", "./none"),
            "model folder ./none does not exist; check --encoder",
        ),
        (("explain", "--text", "  "), "the text is empty; give --text some words"),
        (
            ("explain", "--text", "fine", "--text-b", "too"),
            "task sst2 is of kind classification; leave out --text-b",
        ),
    ],
)
def test_what_is_not_known_is_one_line_with_a_hint(
    call: Call, words: tuple[str, ...], message: str
) -> None:
    assert complaint(call(*words)) == message


def test_a_setting_where_there_is_none(call: Call) -> None:
    said = complaint(call(*RUN, "--task", "sst2", "--explainer", "random:top=3"))
    assert said.startswith("no setting of random named 'top'; ")


def task_file(tmp_path: Path, text: str = TASK) -> Path:
    path = tmp_path / "mini.toml"
    path.write_text(text)
    return path


def test_a_task_of_ones_own_without_a_model(call: Call, tmp_path: Path) -> None:
    put(tmp_path, [{"id": "a", "text": "good", "label": 0}])
    own = task_file(tmp_path, TASK.partition("[models")[0])
    assert complaint(call(*RUN, "--task", own, "--data", tmp_path)) == (
        "task mini names no model for folder data; give one with --model, or train one with "
        "`faithbench train --task mini.toml`"
    )


def test_a_task_file_with_a_bad_key(call: Call, tmp_path: Path) -> None:
    path = task_file(tmp_path, TASK.replace("licence", "license").replace("title", "titel"))
    said = complaint(call(*RUN, "--task", path))
    assert said.startswith(f"task file {path}: ")
    assert "key 'license' is unknown" in said and "key 'title' is missing" in said


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"id": "b", "label": 1}, "field 'text': expected a text that is not blank, found None"),
        ({"id": "b", "text": " ", "label": 1}, "field 'text': expected a text that is not blank"),
        (
            {"id": "b", "text": "fine", "label": 2},
            "field 'label': expected 0 to 1 or one of no, yes, found 2",
        ),
        (
            {"id": "b", "text": "fine", "label": "maybe"},
            "field 'label': expected 0 to 1 or one of no, yes, found 'maybe'",
        ),
        ({"id": "a", "text": "fine", "label": 1}, "field 'id': expected an id used once"),
    ],
)
def test_a_faulty_row_is_named(
    call: Call, tmp_path: Path, row: dict[str, Any], expected: str
) -> None:
    path = put(tmp_path, [{"id": "a", "text": "good", "label": 0}, row])
    said = complaint(call(*RUN, "--task", task_file(tmp_path), "--data", tmp_path))
    assert said.startswith(f"{path}, line 2: {expected}") and said.endswith("; fix the row")


def test_changed_data_are_refused_unless_allowed(call: Call, tmp_path: Path) -> None:
    path = put(tmp_path, [{"id": "a", "text": "good", "label": 0}])
    pinned = TASK.replace("\n[models", f'sha256 = {{ test = "{"0" * 64}" }}\n\n[models')
    words = (*RUN, "--task", task_file(tmp_path, pinned), "--data", tmp_path)
    said = complaint(call(*words))
    assert said.startswith(f"{path} is not the file task mini was tested with: expected sha256 000")
    assert said.endswith("restore it, or accept it with --allow-changed-data")
    # Accepted, the run goes on to the next thing that is wrong.
    said = complaint(call(*words, "--allow-changed-data", "--model", tmp_path / "none"))
    assert said == f"model folder {tmp_path / 'none'} does not exist; check --model"


def test_a_model_folder_without_weights(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    words = (*RUN, "--task", "sst2", "--source", "bundled", "--model", folder)
    assert complaint(call(*words)) == f"model folder {folder} has no config.json; check --model"
    (folder / "config.json").write_text(json.dumps({"model_type": "bert"}))
    said = complaint(call(*words))
    assert said.startswith(f"model folder {folder} has no weights (model.safetensors)")


def test_results_that_cannot_be_written(call: Call, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    results = tmp_path / "file" / "results"
    said = complaint(call(*RUN, "--task", "sst2", "--source", "bundled", "--results", results))
    assert said.startswith(f"cannot write results to {results}: ")
    assert said.endswith("; choose another folder with --results")


@pytest.mark.parametrize("command", ["train", "heads"])
def test_other_outputs_that_cannot_be_written(call: Call, tmp_path: Path, command: str) -> None:
    (tmp_path / "file").write_text("")
    words = (command, "--task", "sst2", "--out", tmp_path / "file" / "own" / "heads.json")
    assert complaint(call(*words)).endswith("; choose another folder with --out")


def test_text_of_unknown_characters(call: Call) -> None:
    said = complaint(call("explain", "--text", "\u16a0\u16a1 \u16a2", "--explainer", "random"))
    assert "model 'bundled:sst2' finds only unknown characters in" in said
    assert said.endswith("give a text in the model's language")


FAILING = """
from dataclasses import dataclass

import faithbench


@faithbench.explainer("mine")
@faithbench.per_example
@dataclass(frozen=True)
class Mine:
    def __call__(self, probs, example):
        if example.id == "b":
            raise ValueError("no\\nwords")
        return [1.0] * len(example.tokens)
"""


@pytest.mark.parametrize(
    ("batch", "kept"),
    [
        (1, "2 of 4 examples are kept; the same command continues there"),
        (16, "none of 4 examples was finished, so nothing is kept"),
    ],
)
def test_a_plugin_that_raises_is_one_line(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch: int, kept: str
) -> None:
    # Chunks of long texts come first: b is the third.
    texts = {"a": "good", "b": "dull film", "c": "a good film", "d": "a very dull film"}
    put(tmp_path, [{"id": name, "text": text, "label": 0} for name, text in texts.items()])
    plugin = tmp_path / f"mine{batch}.py"
    plugin.write_text(FAILING)
    words = ["run", "--explainer", "mine", "--plugin", plugin, "--batch", batch]
    words += ["--task", task_file(tmp_path), "--data", tmp_path, "--metrics", "aopc"]
    said = call(*words)
    assert said.code == 1 and said.err.strip() == (
        "Error: explainer 'mine' failed on example 'b': ValueError: no words (--debug shows the "
        f"traceback); {kept}"
    )
    monkeypatch.setenv("FAITHBENCH_DEBUG", "1")
    with pytest.raises(FaithbenchError) as caught:
        call(*words)
    assert isinstance(caught.value.__cause__, ValueError)
