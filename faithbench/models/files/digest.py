"""The digest of a model: all files that decide what it computes, and nothing else.

Weights alone do not tell two networks apart: with another activation, tokenizer or strength of an
adapter the same weights predict something else.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from faithbench.core.files import cached_sha256, digest_of, file_sha256, read_object
from faithbench.models.files.weights import (
    INDEXES,
    Located,
    files_folder,
    read_card,
    sha256_of_weights,
)

_SETTINGS: Final = (
    "config.json",
    "generation_config.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)
# Read only where there is no tokenizer.json, which holds all that they say.
_VOCABULARIES: Final = ("vocab*", "merges.txt", "*.model", "*.bpe", "*.codes", "dict.txt")
# Where files came from and what wrote them; a model that is moved or saved again stays itself.
_ORIGINS: Final = {
    "_name_or_path",
    "name_or_path",
    "base_model_name_or_path",
    "base_model_sha256",
    "tokenizer_file",
    "special_tokens_map_file",
    "transformers_version",
    "peft_version",
}
_SETS: Final = ("target_modules", "modules_to_save")
_CARD: Final = ("kind", "labels", "added_labels")


def sha256_of_model(located: Located) -> str:
    """Digest weights, configuration, tokenizer and adapter settings of a model."""
    folder = files_folder(located)
    facts: dict[str, object] = {"weights": sha256_of_weights(located)}
    for name in (*_SETTINGS, *INDEXES):
        if (folder / name).is_file():
            facts[name] = _settings(folder / name)
    for file in _tokenizer_files(folder):
        facts[file.name] = cached_sha256(file) if file.suffix == ".model" else file_sha256(file)
    if located.adapter is not None:
        facts["adapter"] = _settings(located.adapter / "adapter_config.json")
        card = read_card(located.adapter)
        facts["card"] = {key: card[key] for key in _CARD if key in card}
    return digest_of(facts)


def _settings(path: Path) -> dict[str, object]:
    """Return what a file of settings says, without where it came from and what wrote it."""
    settings = {key: value for key, value in read_object(path).items() if key not in _ORIGINS}
    for key in _SETS:  # peft writes sets, in an order that changes with the process
        if isinstance(value := settings.get(key), list):
            settings[key] = sorted(set(map(str, value)))
    return settings


def _tokenizer_files(folder: Path) -> list[Path]:
    whole = folder / "tokenizer.json"
    if whole.is_file():
        return [whole]
    found = {path for pattern in _VOCABULARIES for path in folder.glob(pattern) if path.is_file()}
    return sorted(found)
