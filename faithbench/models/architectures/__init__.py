"""Networks of our own: those of papers that no hub has, as transformers' classes.

Each file is one architecture, named like its `model_type`. `register_architectures` tells
transformers' Auto classes of them, so that a folder with such a network is a model like any other.
To add the architecture `x`, write `x.py` with a `Config` and a `Network`, a class whose name ends
with that of a task kind's network, such as `XForSequenceClassification`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

ARCHITECTURES = ("cnn",)
"""The names that `faithbench train --arch` takes."""


@cache
def register_architectures() -> None:
    """Tell transformers' Auto classes of every architecture of this folder."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    for name in ARCHITECTURES:
        module = import_module(f"{__name__}.{name}")
        AutoConfig.register(name, module.Config)
        AutoModelForSequenceClassification.register(module.Config, module.Network)
