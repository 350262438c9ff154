"""LoRA adapters, added into the weights that they were trained on."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import read_object

if TYPE_CHECKING:
    from transformers import PreTrainedModel

_PREFIX = "base_model.model."
_A, _B = ".lora_A.weight", ".lora_B.weight"
_PLAIN = {
    "peft_type": "LORA",
    "bias": "none",
    "alpha_pattern": {},
    "rank_pattern": {},
    "fan_in_fan_out": False,
    "lora_bias": False,
    "use_dora": False,
    "use_rslora": False,
    "use_qalora": False,
}
"""Settings of an adapter that is nothing but W + scale B A, and a head; some may be missing."""
_ABSENT = ("layer_replication", "target_parameters", "trainable_token_indices", "use_bdlora",
           "kasa_config", "monteclora_config", "velora_config", "arrow_config",
           "alora_invocation_tokens")  # fmt: skip
"""Settings that must be unset for that."""


def merge_adapter(network: PreTrainedModel, adapter: Path) -> PreTrainedModel:
    """Return the network with a LoRA adapter and its head added into the weights.

    A plain adapter, as `faithbench train` writes it, is added here, since importing peft takes
    longer than loading the network; any other kind is left to peft.
    """
    settings = read_object(adapter / "adapter_config.json", "restore it or train it again")
    if not is_plain(settings):
        return _merge_by_peft(network, adapter)
    from safetensors.torch import load_file

    tensors = load_file(adapter / "adapter_model.safetensors")
    alpha, rank = settings.get("lora_alpha"), settings.get("r")
    if not isinstance(alpha, int | float) or type(rank) is not int or rank < 1:
        raise FaithbenchError(
            f"adapter {adapter} has lora_alpha {alpha!r} and r {rank!r}, which should be numbers; "
            "restore adapter_config.json or train it again"
        )
    _add(network, tensors, alpha / rank, adapter)
    return network


def is_plain(settings: Mapping[str, Any]) -> bool:
    """Return whether an adapter's configuration says nothing but W + scale B A, and a head."""
    usual = all(settings.get(name, value) == value for name, value in _PLAIN.items())
    return usual and not any(settings.get(name) for name in _ABSENT)


def _add(
    network: PreTrainedModel, tensors: Mapping[str, torch.Tensor], scale: float, adapter: Path
) -> None:
    """Add the products to the weights they belong to, and put the others in their places."""
    weights = dict(network.named_parameters())
    with torch.no_grad():
        for key, tensor in tensors.items():
            if key.endswith(_A):
                continue  # with its B
            is_product = key.endswith(_B)
            path = key.removesuffix(_B) + ".weight" * is_product
            weight = weights.get(path.removeprefix(_PREFIX))
            other = tensors[key.removesuffix(_B) + _A] if is_product else None
            shape = tensor.shape if other is None else (len(tensor), other.shape[-1])
            if weight is None or weight.shape != shape:
                raise FaithbenchError(
                    f"adapter {adapter} has weights for {path.removeprefix(_PREFIX)} of shape "
                    f"{tuple(shape)}, which its base does not have; train it again"
                )
            # In peft's own order of operations and, as adapters are saved in half precision, in
            # the weights' own, so that these are the same bits.
            if other is None:
                weight.copy_(tensor)
            else:
                weight.add_((tensor.to(weight.dtype) @ other.to(weight.dtype)) * scale)


def _merge_by_peft(network: PreTrainedModel, adapter: Path) -> PreTrainedModel:
    from peft import PeftModel

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        merged: Any = PeftModel.from_pretrained(network, str(adapter)).merge_and_unload()
    result: PreTrainedModel = merged
    return result
