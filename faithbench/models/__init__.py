"""The network: its weights, its inputs, the one engine that runs it, and its predictions.

`load_model` reads a network and its tokenizer. A `Session` holds the model's engine, the passes
that explainers share, and the meter that counts them. `encode` turns an example into tokens,
`collate` encodings into a batch. The functions of `models.predictions` return what the model
predicts, those of `models.evaluation` how often it is right.

    model = load_model("bundled:sst2", labels=("negative", "positive"))
    with Session(model) as session:
        session.engine.log_probabilities(rows)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faithbench.models.encoding import collate, encode
    from faithbench.models.engine import Engine
    from faithbench.models.meter import Cost, Meter
    from faithbench.models.model import Model, build_model, load_model
    from faithbench.models.session import Session

__all__ = [
    "Cost",
    "Engine",
    "Meter",
    "Model",
    "Session",
    "build_model",
    "collate",
    "encode",
    "load_model",
]

# Resolved when asked for: these modules load torch, which listing and checking do not need.
_HOMES = {
    "Cost": "meter",
    "Engine": "engine",
    "Meter": "meter",
    "Model": "model",
    "Session": "session",
    "build_model": "model",
    "collate": "encoding",
    "encode": "encoding",
    "load_model": "model",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
