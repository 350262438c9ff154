"""Explainers run on a device that has no float64, and score as on the CPU."""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from faithbench.explainers.passes.heads import cached_heads, write_heads
from faithbench.explainers.selection import find_explainers
from faithbench.models import devices
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.run.attribute import attribute
from tests.flows.test_devices import some_heads
from tests.support.explainers import USUAL
from tests.support.small_device import DEVICE, Small, on_small_device, small_device

TEXTS = ["good film", "the plot is not very dull"]


@pytest.mark.parametrize("name", [name for name in USUAL if name != "partition-shap"])
def test_scores_are_those_of_the_cpu(
    name: str, tiny_model, batch_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(devices, "WITHOUT_FLOAT64", {DEVICE.type})
    model = replace(tiny_model("bert", 2, torch.float32), name="small")
    write_heads(some_heads(model), cached_heads(model))
    (chosen,) = find_explainers(name)
    expected = attribute(Session(model), chosen, batch_of(model, TEXTS, [0, 1]))
    with small_device():
        small = on_small(model)
        batch = batch_of(small, TEXTS, [0, 1])
        assert isinstance(batch.ids, Small) and small.device == DEVICE
        attributions = attribute(Session(small), chosen, batch)
    for there, here in zip(attributions, expected, strict=True):
        assert there.target == here.target
        np.testing.assert_allclose(there.every_score, here.every_score, rtol=0, atol=2e-5)


def test_without_the_cpu_s_help_the_device_would_refuse(tiny_model, batch_of) -> None:
    """The device of these tests has no float64 indeed, and does not mix with the CPU."""
    model = tiny_model("bert", 2, torch.float32)
    (lrp,) = find_explainers("lrp")
    with small_device():
        small = on_small(model)
        batch = batch_of(small, TEXTS, [0, 1])
        with pytest.raises(TypeError, match="this device has no float64"):
            lrp.explainer(Session(small), batch)
        with pytest.raises(TypeError, match="cannot convert to float64 on the way"):
            batch.ids.to("cpu", torch.float64)
        with pytest.raises(RuntimeError, match="expected all tensors on one device"):
            batch.ids + torch.ones(2, 8)


def on_small(model: Model) -> Model:
    return replace(model, network=on_small_device(copy.deepcopy(model.network)), _twins={})
