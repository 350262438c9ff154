"""The files of a training: checkpoints while it runs, and the weights of its best epoch.

A checkpoint is one safetensors file with the trained weights, AdamW's moments and the states of the
random number generators, so that a continued training ends with the bits of an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256, replace_file, share_files
from faithbench.models.model import Model
from faithbench.training.base import Base
from faithbench.training.recipe import Recipe

ADAPTER = "adapter_model.safetensors"
WHOLE = "model.safetensors"
_FILE = "checkpoint.safetensors"
_MOMENTS = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step")


@dataclass(frozen=True)
class TrainingState:
    """Progress of a training: dev scores of finished epochs, and batches done of the next one."""

    history: tuple[float, ...] = ()
    batch: int = 0


def save_checkpoint(
    folder: Path,
    parameters: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
) -> None:
    """Write all that the next batch depends on, replacing the last checkpoint in one step."""
    from safetensors.torch import save_file

    tensors = {f"random/{device}": numbers for device, numbers in _random_states().items()}
    for name, parameter in parameters.items():
        tensors[f"weight/{name}"] = parameter.detach().cpu().contiguous()
        # A weight that no batch has reached yet has no moments.
        moments = optimizer.state.get(parameter, {})
        for key in (key for key in _MOMENTS if key in moments):
            tensors[f"{key}/{name}"] = torch.as_tensor(moments[key]).detach().cpu().contiguous()
    temporary = folder / (_FILE + ".new")
    notes = {"history": json.dumps(state.history), "batch": str(state.batch)}
    notes["sha256"] = _digest(tensors, notes)
    save_file(tensors, temporary, metadata=notes)
    temporary.replace(folder / _FILE)


def load_checkpoint(
    folder: Path,
    parameters: Mapping[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
) -> TrainingState:
    """Restore the last checkpoint into weights and optimizer, and return its state.

    Without a checkpoint nothing changes, and the state is that of the start.
    """
    path = folder / _FILE
    if not path.exists():
        return TrainingState()
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            notes = dict(file.metadata() or {})
    except (SafetensorError, ValueError) as error:
        raise _damaged(path) from error
    # A flipped bit in a weight is a weight like any other: only a checksum tells.
    if notes.pop("sha256", None) != _digest(tensors, notes):
        raise _damaged(path)
    for name, parameter in parameters.items():
        with torch.no_grad():
            parameter.copy_(tensors[f"weight/{name}"])
        moments: dict[str, Any] = optimizer.state[parameter]
        for key in (key for key in _MOMENTS if f"{key}/{name}" in tensors):
            # AdamW counts steps on the CPU, wherever the weights are.
            device = "cpu" if key == "step" else parameter.device
            moments[key] = tensors[f"{key}/{name}"].to(device)
    torch.set_rng_state(tensors["random/cpu"])
    if "random/cuda" in tensors and torch.cuda.is_available():
        torch.cuda.set_rng_state(tensors["random/cuda"])
    return TrainingState(tuple(json.loads(notes["history"])), int(notes["batch"]))


def _digest(tensors: Mapping[str, torch.Tensor], notes: Mapping[str, str]) -> str:
    """Digest what a checkpoint holds."""
    digest = hashlib.sha256(json.dumps(notes, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _damaged(path: Path) -> FaithbenchError:
    return FaithbenchError(
        f"checkpoint {path} is damaged, or of an older faithbench; remove it, and the training "
        "starts over"
    )


def forget_checkpoint(folder: Path) -> None:
    """Remove the checkpoint of a training that has ended."""
    for name in (_FILE, _FILE + ".new"):
        (folder / name).unlink(missing_ok=True)


def _random_states() -> dict[str, torch.Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states["cuda"] = torch.cuda.get_rng_state()
    return states


def save_best(model: Model, recipe: Recipe, base: Base, out: Path) -> None:
    """Write the weights of the best epoch so far over those of an earlier one."""
    if recipe.method == "full":
        _save_whole(model, recipe, base, out)
    else:
        _save_adapter(model, out)
    share_files(out)


def weights_facts(recipe: Recipe, out: Path) -> dict[str, str]:
    """Return the digest of the written weights, under the name of what they are."""
    name, file = ("weights", WHOLE) if recipe.method == "full" else ("adapter", ADAPTER)
    return {f"{name}_sha256": file_sha256(out / file)}


def _save_adapter(model: Model, out: Path) -> None:
    from safetensors.torch import load_file, save_file

    network: Any = model.network
    # Embeddings are never trained; left to find that out, peft would ask the hub and warn.
    network.save_pretrained(str(out), save_embedding_layers=False)
    (out / "README.md").unlink(missing_ok=True)
    halves = {name: value.half() for name, value in load_file(out / ADAPTER).items()}
    save_file(halves, out / ADAPTER, metadata={"format": "pt"})
    settings = json.loads((out / "adapter_config.json").read_text())
    # peft keeps sets, whose order changes with the process, and lists some modules twice.
    for key in ("target_modules", "modules_to_save"):
        settings[key] = sorted(set(settings[key]))
    text = json.dumps(settings, indent=2, sort_keys=True) + "\n"
    replace_file(out / "adapter_config.json", text.encode())


def _save_whole(model: Model, recipe: Recipe, base: Base, out: Path) -> None:
    """Write one safetensors file, the configuration, and the tokenizer.

    A tokenizer of the base's cuts texts at the recipe's `max_tokens`, so it is read afresh; a
    network trained from scratch has its own, and its longest input is part of it.
    """
    from transformers import AutoTokenizer

    # One file, whatever its size, because the card holds one digest.
    model.network.save_pretrained(str(out), max_shard_size="1TB")
    tokenizer = model.tokenizer
    if not recipe.arch:
        tokenizer = AutoTokenizer.from_pretrained(base.folder, trust_remote_code=False)
    tokenizer.save_pretrained(str(out))
    settings = json.loads((out / "tokenizer_config.json").read_text())
    # Files that are shared must not contain local paths.
    kept = {k: v for k, v in settings.items() if k not in ("name_or_path", "vocab_file")}
    (out / "tokenizer_config.json").write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")
