"""The cards of models: bundled ones, folders with and without a card, and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.reference.models import bundled_models, model_card
from faithbench.core.errors import FaithbenchError
from tests.support.hub import Repository, serve_hub


@pytest.mark.parametrize("name", bundled_models())
def test_every_bundled_model_has_its_facts(name: str) -> None:
    card = model_card(name)
    facts = dict(card.facts)
    assert card.name == name and card.summary.endswith(f"of task {name.partition(':')[2]}")
    assert facts["base"] == "sentence-transformers/all-MiniLM-L6-v2" and facts["scores"]


def test_some_facts() -> None:
    facts = model_card("bundled:sst2").facts
    assert ("train", "6920 examples of the folder source") in facts
    assert ("scores", "accuracy 0.892, macro_f1 0.892, matthews 0.785") in facts
    assert dict(facts)["trained"] == "lora, epochs 4, learning rate 0.001, seed 0"
    assert dict(facts)["published"] == "macro_f1 0.91 by BERT-base"
    assert dict(facts)["heads"] == "known: lrp-mask runs"
    assert dict(facts)["students"].startswith("deep-shap-labelling")
    without = dict(model_card("bundled:cola").facts)
    assert without["heads"] == "none: `faithbench heads -t cola --model bundled:cola`"


def test_a_folder_without_a_card_and_no_model(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.safetensors").write_bytes(b"")
    card = model_card(str(tmp_path))
    assert card.summary == "a folder without a card"
    (tmp_path / "card.json").write_text('{"task": "sst2", "kind": "classification"}')
    with pytest.raises(FaithbenchError, match=r"card\.json does not tell 'recipe', as cards of"):
        model_card(str(tmp_path))
    with pytest.raises(FaithbenchError, match="no bundled model 'bundled:none'; there are: bundl"):
        model_card("bundled:none")


def test_a_model_of_the_hub_says_how_its_weights_are_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "textattack/bert-base-uncased-SST-2"
    pinned = "95f0f6f859b35c8ff0863ae3cd4e2dbc702c0ae2"
    with serve_hub(tmp_path, monkeypatch) as hub:
        hub.repositories[f"models/{name}"] = Repository({"pytorch_model.bin": b""}, pinned)
        hub.repositories["models/owner/safe"] = Repository({"model.safetensors": b""})
        old, safe = model_card(name), model_card("owner/safe")
        with pytest.raises(FaithbenchError, match=r"'owner/none' at main from the hub \(it is"):
            model_card("owner/none")
    assert old.facts == (
        ("model of", "sst2, for the hub's data"),
        ("revision", pinned),
        ("weights", "no safetensors: its pickle is read as tensors alone, and no code in it runs"),
        ("or take", "bundled:sst2, which has safetensors"),
    )
    assert safe.facts == (("revision", "main, which may change"), ("weights", "safetensors"))
