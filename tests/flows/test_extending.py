"""The worked examples of docs/extending.md: each diff applies, touches what it says, and works."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "extending.md").read_text()
DIFFS = dict(re.findall(r"```diff (\w+)\n(.*?)\n```", PAGE, re.DOTALL))

# For each example: how many files it adds and changes, and a use of it that prints a number.
JOB = """
from pathlib import Path
from dataclasses import replace
from faithbench.data.dataset import Dataset
from faithbench.core.types import Example
from faithbench.data.tasks import load_task
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.run.job import Job
from faithbench.run.loop import run
from faithbench.testing.tiny import tiny_model
task = load_task("sst2")
texts = ("good film", "the plot is dull", "a very great film", "bad")
examples = tuple(Example(f"e{i}", text, i % 2) for i, text in enumerate(texts))
data = Dataset(task, "folder", "test", examples, "0" * 64, rationale="none", checked=False)
model = tiny_model()
def job(explainers, metrics, folder="results"):
    return Job(data=data, model=model, explainers=find_explainers(explainers),
               metrics=find_metrics(metrics), results=Path(folder), seeds=1, chunk=2)
quiet = lambda *_: None
"""
USES = {
    "explainer": (
        1,
        1,
        JOB
        + """
(outcome,) = run(job("last-tokens:step=2", "aopc"), quiet)
print(outcome.rows[0].scores)
""",
        "(2.0, 4.0)",
    ),
    "metric": (
        0,
        1,
        JOB
        + """
(outcome,) = run(job("occlusion", "drop_at_20"), quiet)
# One of two tokens: the fall without it is its own score.
row = outcome.rows[0]
print(round(row.values["drop_at_20"] - max(row.scores), 6))
""",
        "0.0",
    ),
    "objective": (
        1,
        0,
        """
import torch
from types import SimpleNamespace
from faithbench.training.objectives import find_objective
chosen = find_objective("smoothed:epsilon=0.5")
batch = SimpleNamespace(targets=torch.tensor([[0]]))
forward = SimpleNamespace(logits=(torch.zeros(1, 2),))
print(round(float(chosen.loss(batch, forward)), 4), chosen.settings)
""",
        "0.6931 {'epsilon': 0.5}",
    ),
    "source": (
        1,
        1,
        """
from pathlib import Path
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
Path("mine.toml").write_text('''
name = "mine"
version = 1
title = "Numbers"
kind = "classification"
labels = ["even", "odd"]
[numbers]
up_to = 5
splits = { test = "all" }
''')
print([e.label for e in load_dataset(load_task("mine.toml"), source="numbers").examples])
""",
        "[0, 1, 0, 1, 0]",
    ),
    "field": (
        0,
        3,
        JOB
        + """
from faithbench.records.record import read
(outcome,) = run(job("random", "aopc"), quiet)
print(read(outcome.path).task.characters)
""",
        str(len("good film") + len("the plot is dull") + len("a very great film") + len("bad")),
    ),
    "backend": (
        1,
        1,
        JOB
        + """
from faithbench.run.backends import choose_backend
chosen = [choose_backend(1, backend=name) for name in ("processes", "reversed")]
forward, backward = (
    [o.rows for o in run(job("gradient", "aopc", f"results{n}"), quiet, backend)]
    for n, backend in enumerate(chosen)
)
print(forward == backward, type(chosen[1]).__name__)
""",
        "True Reversed",
    ),
    "kind": (
        1,
        1,
        """
import numpy as np, torch
from faithbench.data.kinds import KINDS
from faithbench.models.engine import Engine
from faithbench.models.model import build_model
from faithbench.testing.tiny import tiny_model
tiny = tiny_model("bert", 2)
kind = KINDS["multi-label"]
model = build_model("m", tiny.network, tiny.tokenizer, labels=("a", "b"), kind=kind)
row = (np.array([2, 5, 3]), np.zeros(3, dtype=np.int64))
logits = tiny.network(input_ids=torch.tensor(row[0][None])).logits
found = np.exp(Engine(model).log_probabilities([row]))
print(bool(np.allclose(found, torch.sigmoid(logits).numpy(), atol=1e-12)))
""",
        "True",
    ),
}


def test_every_example_of_the_page_is_used() -> None:
    assert DIFFS.keys() == USES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", USES)
def test_the_example_works(name: str, tmp_path: Path) -> None:
    added, changed, code, expected = USES[name]
    heavy = shutil.ignore_patterns("bundled", "__pycache__", "assets")
    shutil.copytree(ROOT / "faithbench", tmp_path / "faithbench", ignore=heavy)
    shutil.copytree(ROOT / "tasks", tmp_path / "tasks")
    diff = DIFFS[name]
    assert diff.count("--- /dev/null") == added
    assert len(re.findall(r"^--- a/", diff, re.MULTILINE)) == changed
    (tmp_path / "example.diff").write_text(diff + "\n")
    # Lines move; what is next to them says where the diff belongs.
    subprocess.run(["git", "apply", "-C1", "example.diff"], cwd=tmp_path, check=True)
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == expected


def test_the_white_box_template_conforms() -> None:
    from faithbench.core.plugins import module_of_file
    from faithbench.testing import check_explainer

    page = (ROOT / "docs" / "white-box.md").read_text()
    template = ROOT / "docs" / "templates" / "white_box.py"
    assert template.read_text() in page
    cls = module_of_file(template).MyWhiteBox
    check_explainer(cls(), architectures=("bert",))
    check_explainer(cls(positive=False), architectures=("gpt2",))
