"""What a training leaves behind: a half-precision adapter, or a whole model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from faithbench.models import Model
from faithbench.training.recipe import Recipe
from faithbench.training.start import Base
from faithbench.weights import file_sha256

ADAPTER = "adapter_model.safetensors"
WHOLE = "model.safetensors"


def save_best(model: Model, recipe: Recipe, base: Base, out: Path) -> None:
    """Write the weights of the best epoch so far over those of an earlier one."""
    if recipe.method == "full":
        _save_whole(model, base, out)
    else:
        _save_adapter(model, out)


def weights_facts(recipe: Recipe, out: Path) -> dict[str, str]:
    """Return the digest of the written weights, under the name of what they are."""
    name, file = ("weights", WHOLE) if recipe.method == "full" else ("adapter", ADAPTER)
    return {f"{name}_sha256": file_sha256(out / file)}


def _save_adapter(model: Model, out: Path) -> None:
    from safetensors.torch import load_file, save_file

    network: Any = model.network
    # Embeddings are never trained; asked to find out, peft would look on the hub and warn.
    network.save_pretrained(str(out), save_embedding_layers=False)
    (out / "README.md").unlink(missing_ok=True)
    halves = {name: value.half() for name, value in load_file(out / ADAPTER).items()}
    save_file(halves, out / ADAPTER, metadata={"format": "pt"})
    settings = json.loads((out / "adapter_config.json").read_text())
    # peft keeps sets, whose order is another in each process, and names some parts twice.
    for key in ("target_modules", "modules_to_save"):
        settings[key] = sorted(set(settings[key]))
    (out / "adapter_config.json").write_text(json.dumps(settings, indent=2, sort_keys=True) + "\n")


def _save_whole(model: Model, base: Base, out: Path) -> None:
    """Write one safetensors file, the configuration, and the base's own tokenizer."""
    from transformers import AutoTokenizer

    # One file whatever its size: its digest is the card's.
    model.network.save_pretrained(str(out), max_shard_size="1TB")
    tokenizer = AutoTokenizer.from_pretrained(base.folder)
    tokenizer.save_pretrained(str(out))
    settings = json.loads((out / "tokenizer_config.json").read_text())
    # Where the base was on this machine is nobody's business.
    kept = {k: v for k, v in settings.items() if k not in ("name_or_path", "vocab_file")}
    (out / "tokenizer_config.json").write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n")
