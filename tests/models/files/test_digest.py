"""The digest of a model follows every file that decides what it computes, and no other."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.models.files.digest import sha256_of_model
from faithbench.models.files.weights import BUNDLED, Located, locate, sha256_of_weights
from faithbench.records.model_digests import MODEL_OF_WEIGHTS

FILES: dict[str, Any] = {
    "config.json": {"hidden_act": "gelu", "transformers_version": "1", "_name_or_path": "/a"},
    "tokenizer_config.json": {"do_lower_case": True, "name_or_path": "/a"},
    "special_tokens_map.json": {"mask_token": "[MASK]"},
    "tokenizer.json": {"model": {"vocab": {"good": 1}}},
}


def folder_of(folder: Path, **changes: Any) -> Located:
    folder.mkdir(exist_ok=True)
    (folder / "model.safetensors").write_bytes(b"weights")
    for name, content in FILES.items():
        (folder / name).write_text(json.dumps(content | changes.get(name.split(".")[0], {})))
    return Located(str(folder), folder=folder)


@pytest.mark.parametrize(
    "change",
    [
        {"config": {"hidden_act": "relu"}},
        {"tokenizer_config": {"do_lower_case": False}},
        {"special_tokens_map": {"mask_token": "[PAD]"}},
        {"tokenizer": {"model": {"vocab": {"good": 2}}}},
    ],
)
def test_files_that_decide(tmp_path: Path, change: dict[str, Any]) -> None:
    first, second = folder_of(tmp_path / "a"), folder_of(tmp_path / "b", **change)
    assert sha256_of_weights(first) == sha256_of_weights(second)
    assert sha256_of_model(first) != sha256_of_model(second)


def test_where_a_model_came_from_does_not_count(tmp_path: Path) -> None:
    moved = {"transformers_version": "2", "_name_or_path": "/b"}
    first = folder_of(tmp_path / "a")
    second = folder_of(tmp_path / "b", config=moved, tokenizer_config={"name_or_path": "/b"})
    (tmp_path / "b" / "vocab.txt").write_text("tokenizer.json has it all")
    (tmp_path / "b" / "README.md").write_text("a card")
    assert sha256_of_model(first) == sha256_of_model(second)


def test_a_vocabulary_counts_where_it_is_read(tmp_path: Path) -> None:
    digests = set()
    for words in ("good\nbad\n", "bad\ngood\n"):
        located = folder_of(tmp_path / "a")
        (tmp_path / "a" / "tokenizer.json").unlink()
        (tmp_path / "a" / "vocab.txt").write_text(words)
        digests.add(sha256_of_model(located))
    assert len(digests) == 2


def test_settings_of_an_adapter_count(tmp_path: Path) -> None:
    base, adapter = folder_of(tmp_path / "base"), tmp_path / "adapter"
    adapter.mkdir()
    (adapter / "adapter_model.safetensors").write_bytes(b"adapter")
    located = Located(base.base, folder=base.folder, adapter=adapter)

    def digest(card: dict[str, Any], **settings: Any) -> str:
        (adapter / "card.json").write_text(json.dumps(card))
        (adapter / "adapter_config.json").write_text(json.dumps(settings))
        return sha256_of_model(located)

    card = {"kind": "classification", "labels": ["no", "yes"], "test": {"accuracy": 0.5}}
    one = digest(card, lora_alpha=16, target_modules=["key", "query"], peft_version="1")
    same = digest(card | {"test": {}}, lora_alpha=16, target_modules=["query", "key"])
    assert one == same != sha256_of_model(base)
    assert digest(card, lora_alpha=32, target_modules=["key", "query"]) != one
    assert digest(card | {"kind": "qa"}, lora_alpha=16, target_modules=["key", "query"]) != one


@pytest.mark.parametrize("content", [b"{", b"\xff{}", b"[1]", b"[" * 100_000])
def test_a_damaged_configuration_is_named(tmp_path: Path, content: bytes) -> None:
    located = folder_of(tmp_path / "a")
    (tmp_path / "a" / "config.json").write_bytes(content)
    with pytest.raises(FaithbenchError, match=r"config\.json (is not|should hold a) JSON"):
        sha256_of_model(located)


def test_old_records_know_the_bundled_models() -> None:
    """The table of the upgrade holds what the files give, for every model that is bundled."""
    bundled = [path.parent.name for path in BUNDLED.glob("*/adapter_model.safetensors")]
    located = [locate(f"bundled:{name}") for name in bundled]
    computed = {sha256_of_weights(one): sha256_of_model(one) for one in located}
    assert len(computed) == 14 and computed == dict(MODEL_OF_WEIGHTS)
