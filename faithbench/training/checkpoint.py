"""The state of a training between two epochs, as safetensors: weights and AdamW's moments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

_FILE = "checkpoint.safetensors"


def save_checkpoint(
    folder: Path,
    parameters: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    history: list[float],
) -> None:
    """Write weights, moments and the accuracies so far, replacing the last state at once."""
    from safetensors.torch import save_file

    tensors: dict[str, torch.Tensor] = {}
    for name, parameter in parameters.items():
        state = optimizer.state[parameter]
        tensors[f"weight/{name}"] = parameter.detach().cpu().contiguous()
        for key in ("exp_avg", "exp_avg_sq", "step"):
            tensors[f"{key}/{name}"] = torch.as_tensor(state[key]).detach().cpu().contiguous()
    temporary = folder / (_FILE + ".new")
    save_file(tensors, temporary, metadata={"history": json.dumps(history)})
    temporary.replace(folder / _FILE)


def load_checkpoint(
    folder: Path,
    parameters: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
) -> list[float]:
    """Restore the last state if there is one; return the accuracies of the epochs done."""
    path = folder / _FILE
    if not path.exists():
        return []
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        for name, parameter in parameters.items():
            with torch.no_grad():
                parameter.copy_(file.get_tensor(f"weight/{name}"))
            state: dict[str, Any] = optimizer.state[parameter]
            for key in ("exp_avg", "exp_avg_sq", "step"):
                state[key] = file.get_tensor(f"{key}/{name}").to(
                    "cpu" if key == "step" else parameter.device
                )
        history: list[float] = json.loads(file.metadata()["history"])
    return history
