"""Adapters merged here have the bits of peft's own merge; others are left to peft."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file

from faithbench.core.errors import FaithbenchError
from faithbench.models.files.adapter import is_plain, merge_adapter


def saved_adapter(network: Any, folder: Path, **options: Any) -> Path:
    """Save an adapter of random numbers, and a head of its own."""
    config = LoraConfig(
        task_type="SEQ_CLS", r=3, lora_alpha=5, target_modules=["query", "dense"], **options
    )
    adapted = get_peft_model(copy.deepcopy(network), config)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.copy_(torch.randn(parameter.shape, generator=draw))
    adapted.save_pretrained(str(folder), save_embedding_layers=False)
    return folder


@pytest.mark.parametrize("half", [False, True], ids=["float32", "float16"])
@pytest.mark.parametrize("options", [{}, {"use_rslora": True}, {"rank_pattern": {"query": 2}}])
def test_the_weights_are_those_of_peft(
    tiny_model, tmp_path: Path, options: Any, half: bool
) -> None:
    network = tiny_model().network
    adapter = saved_adapter(network, tmp_path, **options)
    if half:  # as `faithbench train` saves them
        file = adapter / "adapter_model.safetensors"
        save_file({name: value.half() for name, value in load_file(file).items()}, file)
    wanted = PeftModel.from_pretrained(copy.deepcopy(network), str(adapter)).merge_and_unload()
    merged = merge_adapter(copy.deepcopy(network), adapter).state_dict()
    assert merged.keys() == wanted.state_dict().keys()
    for name, weight in wanted.state_dict().items():
        assert torch.equal(merged[name], weight), name
    changed = [n for n, w in network.state_dict().items() if not torch.equal(w, merged[n])]
    assert any("query.weight" in n for n in changed) and any("classifier" in n for n in changed)


def test_a_plain_adapter_needs_no_peft(tiny_model, tmp_path: Path, monkeypatch) -> None:
    network = tiny_model().network
    adapter = saved_adapter(network, tmp_path)
    monkeypatch.setitem(sys.modules, "peft", None)
    merge_adapter(copy.deepcopy(network), adapter)
    settings = json.loads((adapter / "adapter_config.json").read_text())
    assert is_plain(settings)
    others = [
        {"use_dora": True},
        {"bias": "all"},
        {"peft_type": "IA3"},
        {"alpha_pattern": {"a": 2}},
    ]
    for more in others:
        assert not is_plain(settings | more)


def test_an_adapter_of_another_base_is_refused(tiny_model, tmp_path: Path) -> None:
    network = tiny_model().network
    adapter = saved_adapter(network, tmp_path)
    with pytest.raises(FaithbenchError, match="which its base does not have; train it again"):
        merge_adapter(tiny_model("gpt2").network, adapter)
