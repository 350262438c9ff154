"""For authors of explainers: the checks that every explainer passes, and tiny models."""

from faithbench.testing.conformance import check_explainer

__all__ = ["check_explainer"]
