"""Submissions: explainers and attributions of other people, measured here and checked.

A submission is a folder with an `entry.toml`. `new_submission` writes one to start from.
`run_explainer` runs its code in `sandbox` and measures the scores; `score_attributions` measures
scores that are in files. `check_submission` checks all that anyone could have changed by hand, and
measures again. `needed_records` tells which submissions need measuring, `touched` and `preview`
what a pull request changes.

    setup = load_setup(load_dataset(load_task("sst2"), source="bundled"))
    run_explainer(folder, read_entry(folder), setup, Limits(), print, lambda *_: None)
    check_submission(folder, Checks(data=None, cache=Path("cache"), with_model=True)).faults
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faithbench.submissions.check import Checks, check_submission
    from faithbench.submissions.entry import Entry, read_entry
    from faithbench.submissions.measure import load_setup, run_explainer, score_attributions
    from faithbench.submissions.review import preview, touched
    from faithbench.submissions.sandbox.confine import Limits
    from faithbench.submissions.scaffold import new_submission
    from faithbench.submissions.status import needed_records

__all__ = [
    "Checks",
    "Entry",
    "Limits",
    "check_submission",
    "load_setup",
    "needed_records",
    "new_submission",
    "preview",
    "read_entry",
    "run_explainer",
    "score_attributions",
    "touched",
]

# Resolved when used, and not only because some load torch: the process of an untrusted explainer
# imports this file before it confines itself, and must not start numpy's threads by that.
_MODULES = {
    "Checks": "check",
    "Entry": "entry",
    "Limits": "sandbox.confine",
    "check_submission": "check",
    "load_setup": "measure",
    "needed_records": "status",
    "new_submission": "scaffold",
    "preview": "review",
    "read_entry": "entry",
    "run_explainer": "measure",
    "score_attributions": "measure",
    "touched": "review",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
