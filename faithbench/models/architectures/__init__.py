"""Networks of our own: those of papers that no hub has, as transformers' classes.

`register_architectures` tells transformers' Auto classes of them, so that a folder with such a
network is a model like any other. To add the architecture `x`, write a configuration with
`model_type = "x"` and a network whose class ends with the name of a task kind's network, such as
`XForSequenceClassification`, and add a line to `_HOMES`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

# The module of this folder and the class of each network; importing them takes torch.
_HOMES = {
    "cnn": ("cnn", "CnnForSequenceClassification"),
    "bilstm": ("attentive", "BilstmForSequenceClassification"),
    "transformer": ("attentive", "TransformerForSequenceClassification"),
}

ARCHITECTURES = tuple(_HOMES)
"""The names that `faithbench train --arch` takes."""

ATTENTIVE = ("bilstm", "transformer")
"""Those whose attention has a projection to choose."""


@cache
def register_architectures() -> None:
    """Tell transformers' Auto classes of every architecture of this folder."""
    from transformers import AutoConfig, AutoModelForSequenceClassification

    for name, (module, network_class) in _HOMES.items():
        network = getattr(import_module(f"{__name__}.{module}"), network_class)
        AutoConfig.register(name, network.config_class)
        AutoModelForSequenceClassification.register(network.config_class, network)
