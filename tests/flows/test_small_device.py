"""Explainers and whole runs on a device that is not the CPU, with float64 and without."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.explainers.passes.heads import cached_heads, write_heads
from faithbench.explainers.selection import Selected, find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.models import devices
from faithbench.models import session as sessions
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.run.attribute import attribute
from faithbench.run.loop import run
from tests.flows.test_devices import some_heads
from tests.support.explainers import USUAL
from tests.support.jobs import make_job, quiet
from tests.support.small_device import DEVICE, Small, on_small_device, small_device

TEXTS = ["good film", "the plot is not very dull"]


@pytest.fixture(params=["float64", "no float64"])
def has_float64(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the device is like a GPU with float64, or like one without."""
    there: bool = request.param == "float64"
    monkeypatch.setattr(devices, "WITHOUT_FLOAT64", frozenset[str]() if there else {DEVICE.type})
    return there


@pytest.mark.parametrize("name", [name for name in USUAL if name != "partition-shap"])
def test_scores_are_those_of_the_cpu(
    name: str,
    has_float64: bool,
    tiny_model,
    batch_of,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path))
    model = replace(tiny_model("bert", 2, torch.float32), name="small")
    write_heads(some_heads(model), cached_heads(model))
    (chosen,) = find_explainers(name)
    check_scores(model, chosen, batch_of, has_float64)


@pytest.mark.parametrize("architecture", ["gpt2", "distilbert", "bilstm"])
@pytest.mark.parametrize("name", ["occlusion", "gradient-shap", "lime"])
def test_networks_without_a_fast_pass_score_as_on_the_cpu(
    name: str, architecture: str, has_float64: bool, tiny_model, batch_of
) -> None:
    (chosen,) = find_explainers(name)
    model = tiny_model(architecture, 2, torch.float32)
    check_scores(model, chosen, batch_of, has_float64)


def check_scores(model: Model, chosen: Selected, batch_of: Any, has_float64: bool) -> None:
    """Compare an explainer's scores on the device with those on the CPU."""
    expected = attribute(Session(model), chosen, batch_of(model, TEXTS, [0, 1]))
    with small_device(float64=has_float64):
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


@pytest.mark.slow
def test_a_run_s_values_are_those_of_the_cpu(
    has_float64: bool, tiny_model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With perturbed copies, bounds and timing, and on batches of texts of many lengths."""
    tuned: list[int] = []

    def keep(rate: Callable[[int], float], share: Callable[[], float], start: int) -> int:
        tuned.append(start)
        return 64

    monkeypatch.setattr(sessions, "find_budget", keep)
    model = tiny_model("bert", 2, torch.float32)
    job = make_job(tmp_path, model)
    here = replace(
        job,
        data=replace(job.data, examples=job.data.examples[:2]),
        explainers=find_explainers("lrp-mask:mask=ones,gradient-shap,lime:samples=24"),
        metrics=find_metrics("aopc,naopc,max_sensitivity,seconds"),
    )
    expected = run(here, quiet)
    with small_device(float64=has_float64):
        there = replace(here, model=on_small(model), results=tmp_path / "there")
        outcomes = run(there, quiet)
    assert tuned == [2048]
    for found, wanted in zip(outcomes, expected, strict=True):
        assert (found.record.timing.token_budget, wanted.record.timing.token_budget) == (64, None)
        assert found.record.environment.device == str(DEVICE)
        for one, other in zip(found.rows, wanted.rows, strict=True):
            assert one.values.keys() == other.values.keys()
            assert [*one.values.values()] == pytest.approx([*other.values.values()], abs=1e-3)


def on_small(model: Model) -> Model:
    return replace(model, network=on_small_device(copy.deepcopy(model.network)), _twins={})
