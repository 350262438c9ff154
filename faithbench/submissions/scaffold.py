"""A new submission to start from: as written it passes its own test and `submission check`."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import reason
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.data.words import word_spans
from faithbench.submissions.layout import check_name
from faithbench.submissions.score_files import words_of_evidence

_ENTRY = """\
name = "{name}"
authors = ["Your Name"]
paper = ""           # its title, or https://...
code = ""            # https://...
requirements = []    # packages that explainer.py imports besides faithbench: ["captum>=0.8"]
licence = "Apache-2.0"
"""
_PLUGIN = """\
kind = "plugin"
explainer = "{name}" # the name after @explainer in explainer.py

[settings]           # values of the class's fields, where they differ from the defaults
"""
_ATTRIBUTIONS = """\
kind = "attributions"
method = "length of the word"
unit = "words"       # or "tokens": one score per token that the model may lose

[[scores]]           # the file scores/<task>.jsonl or .jsonl.gz
task = "{task}"
source = "bundled"   # or folder, or hub
split = "test"
"""
_EXPLAINER = '''\
from dataclasses import dataclass

import numpy as np

from faithbench import explainer, per_example


@explainer("{name}")
@per_example
@dataclass(frozen=True)
class MyExplainer:
    """Score a token by how far the prediction's probability falls without it."""

    scale: float = 1.0

    def __call__(self, probs, example):
        n = len(example.tokens)
        full = probs(np.ones((1, n), bool))[0]
        return self.scale * (full - probs(~np.eye(n, dtype=bool)))
'''
_TEST = """\
from pathlib import Path

from faithbench.testing import check_file


def test_conformance():
    check_file(Path(__file__).with_name("explainer.py"))
"""
TASK = "sst2"
"""The task of the attributions that a new submission has."""


def new_submission(root: Path, name: str, kind: str, examples: Collection[str] = ()) -> Path:
    """Write the files of a new submission, and return its folder.

    Attributions are of these examples, the board's own, or of all bundled ones without any.
    """
    folder = root / check_name(name)
    if kind not in ("plugin", "attributions"):
        raise unknown("kind of submission", kind, ("plugin", "attributions"))
    files = {"entry.toml": _ENTRY.format(name=name)}
    if kind == "plugin":
        files["entry.toml"] += _PLUGIN.format(name=name)
        files |= {"explainer.py": _EXPLAINER.format(name=name), "test_explainer.py": _TEST}
    else:
        files["entry.toml"] += _ATTRIBUTIONS.format(task=TASK)
        files[f"scores/{TASK}.jsonl"] = _scores(examples)
    try:
        folder.mkdir(parents=True)
        for path, text in files.items():
            (folder / path).parent.mkdir(exist_ok=True)
            (folder / path).write_text(text, encoding="utf-8")
    except FileExistsError as error:
        raise FaithbenchError(
            f"{folder} exists already; choose another name, or change what is there"
        ) from error
    except OSError as error:
        raise FaithbenchError(
            f"cannot write {folder}: {reason(error)}; choose another place with --root"
        ) from error
    return folder


def _scores(examples: Collection[str]) -> str:
    """Return a file of attributions whose scores are easy to follow: the length of each word."""
    task = load_task(TASK)
    lines = []
    for example in load_dataset(task, source="bundled").examples:
        if examples and example.id not in examples:
            continue
        spans = [*word_spans(example.text), *word_spans(example.text_b or "")]
        words = [spans[index] for index in words_of_evidence(example, task.evidence)]
        scores = [float(end - start) for start, end in words]
        lines.append(json.dumps({"id": example.id, "scores": scores}, ensure_ascii=False) + "\n")
    return "".join(lines)
