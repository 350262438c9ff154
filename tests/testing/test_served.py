"""The file of what explainers serve and cost is what they do; conformance has the rest of it."""

from __future__ import annotations

import pytest

from faithbench.explainers.registry import EXPLAINERS
from faithbench.explainers.selection import find_explainers
from faithbench.models.model import Model, load_model
from faithbench.testing.served import (
    all_architectures,
    measure_architectures,
    measure_costs,
    served,
)

DEAR = {"integrated-gradients", "lime", "kernel-shap", "partition-shap", "gradient-shap"}
"""Those that take many passes: the tests of their own count them."""


@pytest.fixture(scope="module")
def bundled() -> Model:
    return load_model("bundled:sst2", labels=("negative", "positive"), device="cpu")


def test_the_file_has_every_built_in_explainer() -> None:
    assert list(served()) == sorted(EXPLAINERS)
    assert all(set(facts.architectures) <= set(all_architectures()) for facts in served().values())


@pytest.mark.parametrize("name", sorted(set(EXPLAINERS) - DEAR))
def test_costs_are_those_of_the_bundled_model(name: str, bundled: Model) -> None:
    (selected,) = find_explainers(name)
    assert measure_costs(selected, bundled) == served()[name].costs


def test_who_needs_a_student_serves_no_tiny_model() -> None:
    found = measure_architectures("l2e")
    assert found == ((), served()["l2e"].refusal)
    assert found[1].startswith("model 'tiny-bert' comes with no student")


def test_known_costs() -> None:
    costs = {name: [c.forward_equivalents for c in facts.costs] for name, facts in served().items()}
    assert costs["random"] == [0, 0] and costs["gradient"] == [3, 3]
    assert costs["attention"] == [1, 1]
    assert costs["integrated-gradients"] == [150, 150]
    short, long = served()["leave-one-out"].costs
    # A row for each token that may be erased, and one for the text: [CLS] and [SEP] stay.
    assert short.forward_equivalents == short.tokens - 1
    assert long.forward_equivalents == long.tokens - 1
