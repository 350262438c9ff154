"""What an explainer is, and all of them.

`protocol` says what an explainer must and may have, `registry` names the built-in ones and
plugins, and `find_explainers` turns what a user wrote after `--explainer` into `Selected`
explainers with settings. The other modules hold the explainers, one family each, and `passes`
the passes through the network that they read.

    (selected,) = find_explainers("lrp-mask:mask=ones")
    selected.explainer(session, batch)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from faithbench.explainers.protocol import Explainer
from faithbench.explainers.registry import EXPLAINERS, explainer
from faithbench.explainers.selection import Selected, find_explainers

if TYPE_CHECKING:
    from faithbench.explainers.per_example import ExampleView

__all__ = ["EXPLAINERS", "ExampleView", "Explainer", "Selected", "explainer", "find_explainers"]


def __getattr__(name: str) -> Any:
    # Loads torch, which `faithbench list` must not wait for.
    if name == "ExampleView":
        from faithbench.explainers.per_example import ExampleView

        return ExampleView
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
