"""The state of a training, as safetensors: weights, AdamW's moments, and the random numbers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

_FILE = "checkpoint.safetensors"
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


@dataclass(frozen=True)
class Place:
    """How far a training is: dev scores of the epochs done, and batches done of the next one."""

    history: tuple[float, ...] = ()
    batch: int = 0


def save_checkpoint(
    folder: Path,
    parameters: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    place: Place,
) -> None:
    """Write all that the next batch depends on, replacing the last state at once."""
    from safetensors.torch import save_file

    tensors = {f"random/{device}": state for device, state in _random_states().items()}
    for name, parameter in parameters.items():
        tensors[f"weight/{name}"] = parameter.detach().cpu().contiguous()
        state = optimizer.state.get(parameter, {})
        for key in (key for key in _MOMENTS if key in state):
            tensors[f"{key}/{name}"] = torch.as_tensor(state[key]).detach().cpu().contiguous()
    temporary = folder / (_FILE + ".new")
    notes = {"history": json.dumps(place.history), "batch": str(place.batch)}
    save_file(tensors, temporary, metadata=notes)
    temporary.replace(folder / _FILE)


def load_checkpoint(
    folder: Path,
    parameters: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
) -> Place:
    """Restore the last state if there is one, and say where it was."""
    path = folder / _FILE
    if not path.exists():
        return Place()
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        there = set(file.keys())
        for name, parameter in parameters.items():
            with torch.no_grad():
                parameter.copy_(file.get_tensor(f"weight/{name}"))
            state: dict[str, Any] = optimizer.state[parameter]
            for key in (key for key in _MOMENTS if f"{key}/{name}" in there):
                state[key] = file.get_tensor(f"{key}/{name}").to(
                    "cpu" if key == "step" else parameter.device
                )
        torch.set_rng_state(file.get_tensor("random/cpu"))
        if "random/cuda" in there and torch.cuda.is_available():
            torch.cuda.set_rng_state(file.get_tensor("random/cuda"))
        notes = file.metadata()
    return Place(tuple(json.loads(notes["history"])), int(notes["batch"]))


def forget_checkpoint(folder: Path) -> None:
    """Remove the state of a training that has ended."""
    for name in (_FILE, _FILE + ".new"):
        (folder / name).unlink(missing_ok=True)


def _random_states() -> dict[str, torch.Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states
