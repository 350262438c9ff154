"""Scripts of benchmarks/, loaded as modules."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest

from tests.support.paths import ROOT


def load_benchmark(name: str) -> ModuleType:
    """Import benchmarks/<name>.py; without it, skip: a source distribution has no benchmarks."""
    path = ROOT / "benchmarks" / f"{name}.py"
    if not path.exists():
        pytest.skip("benchmarks are not part of a source distribution")
    spec = importlib.util.spec_from_file_location(f"benchmark_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # as when it is run: scripts import their neighbours
    spec.loader.exec_module(module)
    return module
