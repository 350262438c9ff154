"""faithbench: how faithful, stable, plausible and fast an explanation of an NLP model is.

    import faithbench as fb

    model = fb.load_model("bundled:sst2")
    fb.explain(model, "A dull, tiresome film.", "lrp-mask")
    fb.evaluate("sst2", "lrp-mask,attention,random", limit=20).table()

Importing this loads nothing heavy: each name below is imported when it is first used.
docs/python.md shows all of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # What editors and type checkers see; `_HOMES` is what Python does.
    from faithbench.api import (
        compare,
        evaluate,
        explain,
        list_explainers,
        list_metrics,
        list_tasks,
        load_dataset,
        load_model,
        read_record,
        read_rows,
        score,
    )
    from faithbench.core.errors import FaithbenchError
    from faithbench.data.tasks import load_task
    from faithbench.explainers.per_example import per_example
    from faithbench.explainers.registry import explainer
    from faithbench.metrics.registry import metric
    from faithbench.submissions.other_tools import from_captum, from_inseq, from_shap
    from faithbench.testing.conformance import check_explainer

    __version__: str

__all__ = [
    "FaithbenchError",
    "__version__",
    "check_explainer",
    "compare",
    "evaluate",
    "explain",
    "explainer",
    "from_captum",
    "from_inseq",
    "from_shap",
    "list_explainers",
    "list_metrics",
    "list_tasks",
    "load_dataset",
    "load_model",
    "load_task",
    "metric",
    "per_example",
    "read_record",
    "read_rows",
    "score",
]

_HOMES = {
    "FaithbenchError": "core.errors",
    "check_explainer": "testing.conformance",
    "explainer": "explainers.registry",
    "from_captum": "submissions.other_tools",
    "from_inseq": "submissions.other_tools",
    "from_shap": "submissions.other_tools",
    "load_task": "data.tasks",
    "metric": "metrics.registry",
    "per_example": "explainers.per_example",
}
"""The modules of names that do not live in `faithbench.api`."""


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'faithbench' has no attribute {name!r}")
    value: Any
    if name == "__version__":
        from importlib.metadata import version

        value = version("faithbench")
    else:
        value = getattr(importlib.import_module(f"faithbench.{_HOMES.get(name, 'api')}"), name)
    globals()[name] = value  # so that Python finds it by itself the next time
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
