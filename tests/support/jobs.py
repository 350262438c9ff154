"""A small job, and what its results hold: shared by the tests of whole runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from faithbench.data.dataset import load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.models.session import Session
from faithbench.run import loop
from faithbench.run.job import Job
from tests.support.builders import make_task, put

EXPLAINERS = "random,attention,lrp-mask:mask=ones"
TEXTS = [
    "good film",
    "the plot is dull and bad",
    "a very great film , and not dull",
    "dull",
    "the film is not very good",
    "greatly dulls the plots",
    "bad bad bad",
    "a great plot and a great film",
    " ".join(["very"] * 80),
    "not bad",
    "the films , the plots",
    "w1 w2 w3 w4 w5 w6 w7 w8 w9",
    "is the film a good film .",
]


def make_job(folder: Path, model: Any) -> Job:
    rows = [{"id": f"e{i:02}", "text": text, "label": i % 2} for i, text in enumerate(TEXTS)]
    put(folder, rows)
    return Job(
        data=load_dataset(make_task(), folder=folder),
        model=model,
        explainers=find_explainers(EXPLAINERS),
        metrics=find_metrics("aopc,lodds"),
        results=folder / "results",
        seeds=1,
        chunk=3,
    )


@contextmanager
def watched_sessions() -> Iterator[list[Session]]:
    """Collect the sessions that runs open while inside, in the order they are opened."""
    opened: list[Session] = []

    def watched(*arguments: Any) -> Session:
        opened.append(Session(*arguments))
        return opened[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "Session", watched)
        yield opened


def quiet(_what: str, _done: int, _total: int) -> None:
    return


def content(results: Path) -> dict[str, Any]:
    """Everything in a results folder that two equal runs share, by relative path."""
    found: dict[str, Any] = {}
    for path in sorted(p for p in results.rglob("*") if p.is_file()):
        data = path.read_bytes()
        if path.name.endswith(".times.jsonl"):
            data = b"\n".join(re.sub(rb'"seconds":[^}]+', b"", line) for line in data.split(b"\n"))
        elif path.suffix == ".json" and path.parent.name != ".neighbours":
            # Only the clock's own table is cut out, and the digest of all: every other byte counts.
            data, count = re.subn(rb'  "timing": \{.*?\n  \}', b"", data, flags=re.DOTALL)
            data, digests = re.subn(rb'\n  "sha256": "[0-9a-f]{64}",', b"", data)
            assert (count, digests) == (1, 1)
        found[path.relative_to(results).as_posix()] = data
    return found
