"""The conformance suite: every built-in keeps it, and each kind of fault is caught."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from faithbench.explainers.registry import EXPLAINERS
from faithbench.explainers.selection import find_explainers
from faithbench.testing.conformance import check_explainer

# Settings that make the samplers quick; the rules do not depend on them.
QUICK = {
    "lrp-mask": "lrp-mask:mask=ones",
    "integrated-gradients": "integrated-gradients:steps=5",
    "smoothgrad": "smoothgrad:samples=2",
    "gradient-shap": "gradient-shap:samples=2",
    "lime": "lime:samples=16",
    "kernel-shap": "kernel-shap:samples=16",
    "partition-shap": "partition-shap:evaluations=16",
}


@pytest.mark.parametrize("name", EXPLAINERS)
def test_every_built_in_keeps_the_rules(name: str) -> None:
    (chosen,) = find_explainers(QUICK.get(name, name))
    check_explainer(chosen.explainer)


@dataclass(frozen=True)
class Faulty:
    fault: str = "none"

    def __call__(self, session, batch):
        scores = batch.ids.double()
        if self.fault == "shape":
            return scores[:, 1:]
        if self.fault == "nan":
            return scores / 0 - scores / 0
        if self.fault == "random":
            return torch.rand_like(scores)
        if self.fault == "batch":
            return scores / scores.sum()
        if self.fault == "hook":
            session.model.network.register_forward_hook(lambda *_: None)
        if self.fault == "train":
            session.model.network.train()
        if self.fault == "weights":
            next(session.model.network.parameters()).data.mul_(1.001)
        if self.fault == "grad":
            session.model.network.requires_grad_(True)
        return scores


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("shape", "scores of shape"),
        ("nan", "not finite"),
        ("random", "same seed, other scores"),
        ("batch", "alone differs"),
        ("hook", "hooks"),
        ("train", "mode"),
        ("weights", "parameters"),
        ("grad", "requires_grad"),
    ],
)
def test_each_fault_is_caught(fault: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_explainer(Faulty(fault), architectures=("bert",), longest=False)


def test_a_faultless_one_passes() -> None:
    check_explainer(Faulty(), architectures=("bert",))


def test_settings_must_be_plain() -> None:
    @dataclass(frozen=True)
    class Odd:
        sizes: tuple[int, ...] = (1, 2)

        def __call__(self, session, batch):
            return batch.ids.double()

    with pytest.raises(AssertionError, match="survive JSON"):
        check_explainer(Odd())
