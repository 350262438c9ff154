"""Training on a tiny base: adapters, whole models, answers, and kills inside an epoch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256
from faithbench.models.evaluation import evaluate
from faithbench.models.model import load_model
from faithbench.training.fit import fit
from faithbench.training.recipe import Recipe
from tests.support.training import (
    ADAPTER,
    WHOLE,
    answer_splits,
    killer,
    label_splits,
    load_weights,
    save_base,
    silent,
)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder with dropout, in a folder."""
    return save_base(tmp_path_factory.mktemp("bases"), "bert")


@pytest.mark.parametrize("recipe", [ADAPTER, WHOLE], ids=["adapter", "whole"])
@pytest.mark.parametrize("asks", [False, True], ids=["classes", "answers"])
def test_a_kill_inside_an_epoch_changes_no_bit(
    base: Path, tmp_path: Path, recipe: Recipe, asks: bool
) -> None:
    """Seven batches an epoch, a checkpoint every two, killed twice: after 5 of the first epoch
    and after 4 of the second. Dropout draws from the numbers it would have drawn."""
    splits = answer_splits() if asks else label_splits()
    recipe = replace(recipe, metric="f1" if asks else "accuracy")
    fit(splits, recipe, tmp_path / "whole", silent, base=str(base), device="cpu", every=2)
    for stage in (("epoch 1/2", 5), ("epoch 2/2", 4)):
        with pytest.raises(KeyboardInterrupt):
            fit(
                splits,
                recipe,
                tmp_path / "killed",
                killer(*stage),
                base=str(base),
                device="cpu",
                every=2,
            )
    steps: list[str] = []

    def progress(name: str, done: int, total: int) -> None:
        steps.append(f"{name} {done}")

    fit(splits, recipe, tmp_path / "killed", progress, base=str(base), device="cpu", every=2)
    assert steps[0].startswith("reading train") and steps[1] == "epoch 2/2 5"
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert names == {path.name for path in (tmp_path / "killed").iterdir()}
    assert "checkpoint.safetensors" not in names and "run.json" not in names
    for name in names:
        killed, whole = (tmp_path / part / name for part in ("killed", "whole"))
        assert killed.read_bytes() == whole.read_bytes(), name


def test_a_whole_model_is_a_folder_that_loads(base: Path, tmp_path: Path) -> None:
    splits, out = label_splits(), tmp_path / "whole"
    recipe = replace(WHOLE, max_tokens=8, encoder_dropout=0.0, epochs=12, patience=12)
    card = fit(splits, recipe, out, silent, base=str(base), device="cpu")
    assert card["weights_sha256"] == file_sha256(out / "model.safetensors")
    assert card["recipe"]["targets"] == [] and card["recipe"]["max_tokens"] == 8
    assert not (out / "adapter_config.json").exists()
    model = load_model(str(out), labels=("no", "yes"), device="cpu")
    assert model.max_tokens == 64, "only the training was cut"
    assert model.network.config.id2label == {0: "no", 1: "yes"}
    assert evaluate(model, splits.test)["accuracy"] == card["test"]["accuracy"] == 1.0
    start = load_weights(base)["bert.embeddings.word_embeddings.weight"]
    assert not torch.equal(start, model.network.bert.embeddings.word_embeddings.weight)
    for path in out.iterdir():
        assert str(base).encode() not in path.read_bytes() or path.name == "card.json", path


def test_an_adapter_stands_on_its_own_base(base: Path, tmp_path: Path) -> None:
    splits, out = label_splits(), tmp_path / "adapter"
    recipe = replace(ADAPTER, encoder_dropout=0.0, dropout=0.0, epochs=12, patience=12)
    card = fit(splits, recipe, out, silent, base=str(base), device="cpu")
    assert card["base"] == base.name
    for path in out.iterdir():
        assert str(base.parent).encode() not in path.read_bytes(), path
        assert path.stat().st_mode & 0o777 == 0o644, path
    assert card["base_sha256"] == file_sha256(base / "model.safetensors")
    assert card["recipe"]["targets"] == ["query", "key", "value", "dense"]
    model = load_model(str(out), labels=("no", "yes"), device="cpu")
    assert evaluate(model, splits.test) == pytest.approx(card["test"], abs=1e-4)
    assert card["test"]["accuracy"] == 1.0
    untouched = model.network.bert.embeddings.word_embeddings.weight
    assert torch.equal(load_weights(base)["bert.embeddings.word_embeddings.weight"], untouched)
    changed = tmp_path / "changed"
    changed.mkdir()
    for path in out.iterdir():
        (changed / path.name).write_bytes(path.read_bytes())
    (changed / "card.json").write_text(json.dumps(card | {"base_sha256": "0" * 64}))
    with pytest.raises(FaithbenchError, match="no base 'tiny-bert' next to it"):
        load_model(str(changed), labels=("no", "yes"), device="cpu")
    with pytest.raises(FaithbenchError, match="is an adapter; give the model it was trained on"):
        fit(splits, recipe, tmp_path / "more", silent, base=str(out), device="cpu")


@pytest.mark.parametrize("recipe", [ADAPTER, WHOLE], ids=["adapter", "whole"])
def test_a_question_answerer_learns_where_the_answer_is(
    base: Path, tmp_path: Path, recipe: Recipe
) -> None:
    """The answer is always the word `dull`; after some epochs it is found."""
    splits, out = answer_splits(), tmp_path / "answers"
    recipe = replace(recipe, metric="f1", encoder_dropout=0.0, dropout=0.0, epochs=15, patience=15)
    card = fit(splits, recipe, out, silent, base=str(base), device="cpu")
    assert card["kind"] == "qa" and card["majority"] is None and card["class_weights"] is None
    assert card["left_out"] == {"cut_off": 1, "inside_a_token": 1}
    assert card["data"]["train"]["n"] == 28
    assert card["test"] == {"exact_match": 1.0, "f1": 1.0}
    model = load_model(str(out), labels=("answerable",), device="cpu")
    assert model.outputs == ("start_logits", "end_logits")
    assert evaluate(model, splits.test) == card["test"]


def test_the_score_to_choose_by_must_be_one_of_the_task(base: Path, tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="no score named 'f1'"):
        fit(label_splits(), replace(ADAPTER, metric="f1"), tmp_path / "out", silent, base=str(base))
    assert not (tmp_path / "out").exists()
