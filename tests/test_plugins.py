"""The old address of `plugins_of_file` works: published submissions import it in their tests."""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path

import pytest

from faithbench import plugins
from faithbench.explainers import registry
from faithbench.testing import conformance

OLD_TEST = Path(__file__).parents[1] / "submissions/example-neighbour-pairs/test_explainer.py"


def test_both_addresses_are_one_function() -> None:
    assert plugins.plugins_of_file is registry.plugins_of_file


def test_a_submission_from_before_the_move_still_tests_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert "from faithbench.plugins import plugins_of_file" in OLD_TEST.read_text()
    checked = []

    def quick(explainer: object) -> None:
        checked.append(type(explainer).__name__)
        partial(check, architectures=("bert",), longest=False)(explainer)

    check = conformance.check_explainer
    monkeypatch.setattr(conformance, "check_explainer", quick)
    spec = importlib.util.spec_from_file_location("old_test", OLD_TEST)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.test_it_keeps_the_rules_of_explainers()
    assert checked == ["NeighbourPairs"]
