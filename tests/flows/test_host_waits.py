"""No explainer makes the host wait for the device more often than it has to.

Counted on the CPU, where every wait of a GPU is there too. A new wait of an explainer, of a pass
or of the engine fails here, with its file and line.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from faithbench.explainers.passes import lrp_rules
from faithbench.explainers.passes.heads import cached_heads, write_heads
from faithbench.explainers.selection import find_explainers
from faithbench.models.host_waits import count_host_waits
from faithbench.models.session import Session
from tests.flows.test_devices import some_heads
from tests.support.explainers import USUAL

TEXTS = ["good film", "the plot is not very dull", "a great plot .", "bad", "the plot is goodly"]

CEILINGS = {
    # Scores made without the model.
    **dict.fromkeys(("random", "first-tokens", "human", "salience"), 0),
    # One forward and backward pass: transformers looks into the mask, once.
    **dict.fromkeys(("attention", "rollout", "attention-x-gradient", "gae", "grad-cam"), 1),
    **dict.fromkeys(("cam", "attcat", "gradient", "input-x-gradient", "attn-lrp"), 1),
    "attention-flow": 3,  # attention and positions are copied, for flows are found on the host
    "deep-shap": 2,  # contributions that do not add up are refused
    # Many points of embedding space: the host knows all lengths.
    **dict.fromkeys(("integrated-gradients", "smoothgrad", "gradient-shap"), 0),
    # A relevance pass: transformers looks into the mask; those that roll out capture, too.
    **dict.fromkeys(("lrp", "lrp-partial"), 1),
    **dict.fromkeys(("lrp-rollout", "lrp-mask"), 2),
    # A look at each of two blocks, whether its recorded parts add up.
    "alti": 3,
    "value-zeroing": 3,
    # Rows through the engine: logits are copied once per call, and the targets.
    **dict.fromkeys(("occlusion", "leave-one-out", "lime", "kernel-shap"), 2),
    # shap asks for a few rows at a time.
    "partition-shap": 38,
}
"""The most waits of one call, on a batch of five texts and a network of two blocks."""


@pytest.mark.parametrize("name", USUAL)
def test_waits_of_one_call(
    name: str, tiny_model, batch_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path))
    monkeypatch.setattr(lrp_rules, "picks_rows", lambda _: False)  # as on a GPU
    model = replace(tiny_model("bert", 2, torch.float32), name="watched")
    write_heads(some_heads(model), cached_heads(model))
    batch = batch_of(model, TEXTS, [0, 1, 0, 1, 0])
    (chosen,) = find_explainers(name)
    session = Session(model)
    # Fast passes are tried once per session, against the network's own logits.
    assert session.engine._fast is not None and session.engine.differentiable is not None
    with count_host_waits() as waits:
        chosen.explainer(session, batch)
    assert waits.count <= CEILINGS[name], Counter(waits.places)


@pytest.mark.parametrize("name", ["lrp-mask:mask=ones", "gae", "deep-shap", "lime", "kernel-shap"])
def test_a_deeper_network_takes_no_more_waits(
    name: str, tiny_model, batch_of, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lrp_rules, "picks_rows", lambda _: False)  # as on a GPU
    (chosen,) = find_explainers(name)
    counts = []
    for blocks in (1, 4):
        whole = tiny_model("bert", 2, torch.float32)
        model = replace(whole, network=copy.deepcopy(whole.network), _twins={})
        layers = model.network.bert.encoder.layer
        model.network.bert.encoder.layer = torch.nn.ModuleList([*layers, *layers][:blocks])
        model.network.config.num_hidden_layers = blocks
        session = Session(model)
        assert session.engine._fast is not None
        batch = batch_of(model, TEXTS, [0, 1, 0, 1, 0])
        with count_host_waits() as waits:
            chosen.explainer(session, batch)
        counts.append(waits.count)
    assert counts[0] == counts[1] <= CEILINGS[name.partition(":")[0]]
