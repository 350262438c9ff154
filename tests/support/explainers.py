"""Names of explainers that run on any model, for tests that try them all."""

from __future__ import annotations

from faithbench.explainers.registry import EXPLAINERS

# tests/explainers/test_l2e.py makes students for what is asked for by name only.
USUAL = tuple(name for name, entry in EXPLAINERS.items() if not entry.by_name_only)
