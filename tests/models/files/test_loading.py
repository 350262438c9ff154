"""Damaged models and models with code of their own: one line, and nothing is run."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.models.files.loading import unloadable
from faithbench.models.model import load_model

LABELS = ("no", "yes")
CODE = """
from pathlib import Path
from transformers import PretrainedConfig
Path({mark!r}).write_text("run")
class Own(PretrainedConfig):
    model_type = "own"
"""


@pytest.fixture
def folder(tiny_model: Any, tmp_path: Path) -> Path:
    model = tiny_model("bert")
    model.network.save_pretrained(tmp_path / "m")
    model.tokenizer.save_pretrained(tmp_path / "m")
    return tmp_path / "m"


def complaint(folder: Path) -> str:
    with pytest.raises(FaithbenchError) as caught:
        load_model(str(folder), labels=LABELS, device="cpu")
    said = str(caught.value)
    assert "\n" not in said and len(said) < 600
    return said


def test_code_of_a_model_is_never_run(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A yes on the terminal would not matter: nobody is asked."""
    mark = folder.parent / "mark"
    (folder / "own.py").write_text(CODE.format(mark=str(mark)))
    config = json.loads((folder / "config.json").read_text())
    own = {"model_type": "own", "auto_map": {"AutoConfig": "own.Own"}}
    (folder / "config.json").write_text(json.dumps(config | own))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("asked on the terminal"))
    monkeypatch.setattr(sys, "stdin", None)
    assert "comes with code of its own, which faithbench never runs" in complaint(folder)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json"])
@pytest.mark.parametrize("content", [b"\xff\xfe{}", b"{", b"[]", b"\x80\x04pickle"])
def test_a_damaged_json_file(folder: Path, name: str, content: bytes) -> None:
    (folder / name).write_bytes(content)
    assert str(folder) in complaint(folder)


@pytest.mark.parametrize("content", [b"", b"\0" * 64, pickle.dumps({"w": 1}), b"\xff" * 8 + b"{}"])
def test_weights_that_are_none(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").write_bytes(content)
    assert f"model {str(folder)!r} cannot be loaded (" in complaint(folder)


def test_long_errors_are_cut_and_options_named() -> None:
    with pytest.raises(FaithbenchError) as caught, unloadable("m", "--base"):
        raise KeyError("x" * 1000 + "\n")
    assert str(caught.value).startswith("model 'm' cannot be loaded (KeyError: 'xxx")
    assert str(caught.value).endswith("...); restore its files, or choose another with --base")
    with pytest.raises(MemoryError), unloadable("m"):
        raise MemoryError
