"""The straight line from a request to records.

`make_job` loads what a `Request` names; `run` computes the `Job` in chunks (`run.chunk`), each
explained (`run.attribute`) and scored (`run.score`), and writes the records (`run.finish`). The
folder `measures` holds what else is measured with the network, `backends` where chunks are
computed. `explain_text` explains a single text outside any data set.

    outcomes = run(make_job(Request(explainer="lrp-mask", task="sst2")), progress)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faithbench.run.finish import Outcome
    from faithbench.run.job import Cell, Job
    from faithbench.run.loop import run
    from faithbench.run.one_text import explain_text
    from faithbench.run.request import Request, make_job

__all__ = [
    "Cell",
    "Job",
    "Outcome",
    "Request",
    "explain_text",
    "make_job",
    "run",
]

# Resolved when asked for: these modules load torch, which listing and checking do not need.
_HOMES = {
    "Cell": "job",
    "Job": "job",
    "Outcome": "finish",
    "Request": "request",
    "explain_text": "one_text",
    "make_job": "request",
    "run": "loop",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
