"""For authors of explainers: the checks that every explainer passes, and tiny models.

`check_file` checks all explainers that a plugin file registers, `check_explainer` a single one;
`tiny_model` and `tiny_tokenizer` make small random models of each of `ARCHITECTURES`, and of the
networks that `faithbench train --arch` trains:

    from faithbench.testing import check_file

    def test_conformance():
        check_file(Path(__file__).with_name("explainer.py"))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faithbench.testing.conformance import check_explainer, check_file
    from faithbench.testing.tiny import ARCHITECTURES, tiny_model, tiny_tokenizer

__all__ = ["ARCHITECTURES", "check_explainer", "check_file", "tiny_model", "tiny_tokenizer"]


def __getattr__(name: str) -> Any:
    # Both modules load torch, which takes seconds: only once a name of theirs is used.
    if name in __all__:
        module = "conformance" if name.startswith("check_") else "tiny"
        return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
