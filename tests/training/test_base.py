"""Training on a base of one's own: adapters, whole models, answers, and kills inside an epoch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256
from faithbench.core.types import Answer, Example
from faithbench.data.dataset import Dataset
from faithbench.models.encoding import encode
from faithbench.models.evaluation import evaluate
from faithbench.models.model import load_model
from faithbench.testing import tiny
from faithbench.training.base import find_base, start_model
from faithbench.training.fit import fit
from faithbench.training.recipe import Recipe, Splits
from tests.support.builders import make_task

ADAPTER = Recipe(epochs=2, rank=2, alpha=4, batch_size=4, learning_rate=1e-2)
WHOLE = replace(ADAPTER, method="full", learning_rate=3e-3)
WORDS = ("good", "bad", "film", "plot", "very", "great", "dull", "and")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny encoder with dropout, as somebody's own folder."""
    return save_base(tmp_path_factory.mktemp("bases"), "bert")


@pytest.mark.parametrize("recipe", [ADAPTER, WHOLE], ids=["adapter", "whole"])
@pytest.mark.parametrize("asks", [False, True], ids=["classes", "answers"])
def test_a_kill_inside_an_epoch_changes_no_bit(
    base: Path, tmp_path: Path, recipe: Recipe, asks: bool
) -> None:
    """Seven batches an epoch, a checkpoint every two, killed twice: after 5 of the first epoch
    and after 4 of the second. Dropout draws from the numbers it would have drawn."""
    splits, recipe = (questions(), replace(recipe, metric="f1")) if asks else (labels(), recipe)
    fit(splits, recipe, tmp_path / "whole", silent, base=str(base), device="cpu", every=2)
    for stage in (("epoch 1/2", 5), ("epoch 2/2", 4)):
        with pytest.raises(KeyboardInterrupt):
            fit(
                *(splits, recipe, tmp_path / "killed", killer(*stage)),
                base=str(base), device="cpu", every=2,
            )  # fmt: skip
    said: list[str] = []

    def progress(name: str, done: int, total: int) -> None:
        said.append(f"{name} {done}")

    fit(splits, recipe, tmp_path / "killed", progress, base=str(base), device="cpu", every=2)
    assert said[0].startswith("reading train") and said[1] == "epoch 2/2 5"
    names = {path.name for path in (tmp_path / "whole").iterdir()}
    assert names == {path.name for path in (tmp_path / "killed").iterdir()}
    assert "checkpoint.safetensors" not in names and "run.json" not in names
    for name in names:
        killed, whole = (tmp_path / part / name for part in ("killed", "whole"))
        assert killed.read_bytes() == whole.read_bytes(), name


def test_a_whole_model_is_a_folder_that_loads(base: Path, tmp_path: Path) -> None:
    splits, out = labels(), tmp_path / "whole"
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
    splits, out = labels(), tmp_path / "adapter"
    recipe = replace(ADAPTER, encoder_dropout=0.0, dropout=0.0, epochs=12, patience=12)
    card = fit(splits, recipe, out, silent, base=str(base), device="cpu")
    assert card["base"] == str(base)
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
    with pytest.raises(FaithbenchError, match=r"was trained on another base \(sha256 000000000000"):
        load_model(str(changed), labels=("no", "yes"), device="cpu")
    with pytest.raises(FaithbenchError, match="is an adapter; give the model it was trained on"):
        find_base(str(out))


@pytest.mark.parametrize("recipe", [ADAPTER, WHOLE], ids=["adapter", "whole"])
def test_a_question_answerer_learns_where_the_answer_is(
    base: Path, tmp_path: Path, recipe: Recipe
) -> None:
    """The answer is always the word `dull`; after some epochs it is found."""
    splits, out = questions(), tmp_path / "answers"
    recipe = replace(recipe, metric="f1", encoder_dropout=0.0, dropout=0.0, epochs=15, patience=15)
    card = fit(splits, recipe, out, silent, base=str(base), device="cpu")
    assert card["kind"] == "qa" and card["majority"] is None and card["class_weights"] is None
    assert card["left_out"] == {"cut_off": 1, "inside_a_token": 1}
    assert card["data"]["train"]["n"] == 28
    assert card["test"] == {"exact_match": 1.0, "f1": 1.0}
    model = load_model(str(out), labels=("answerable",), device="cpu")
    assert model.outputs == ("start_logits", "end_logits")
    assert evaluate(model, splits.test) == card["test"]


@pytest.mark.parametrize("architecture", ["roberta", "distilbert", "electra", "gpt2"])
def test_every_architecture_takes_an_adapter(architecture: str, tmp_path: Path) -> None:
    folder = save_base(tmp_path, architecture)
    splits = labels()
    once = replace(ADAPTER, epochs=1)
    card = fit(splits, once, tmp_path / "out", silent, base=str(folder), device="cpu")
    model = load_model(str(tmp_path / "out"), labels=("no", "yes"), device="cpu")
    assert evaluate(model, splits.test)["accuracy"] == card["test"]["accuracy"]
    expected = {"distilbert": "q_lin", "gpt2": "c_attn"}.get(architecture, "query")
    assert card["recipe"]["targets"][0] == expected


def test_the_score_to_choose_by_must_be_one_of_the_task(base: Path, tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="no score named 'f1'"):
        fit(labels(), replace(ADAPTER, metric="f1"), tmp_path / "out", silent, base=str(base))
    assert not (tmp_path / "out").exists()


def test_texts_are_cut_for_training_only_as_far_as_the_model_reads(base: Path) -> None:
    task = labels().train.task
    model = start_model(
        task, replace(ADAPTER, targets=("query",), max_tokens=8), find_base(str(base))
    )
    assert len(encode(model, Example("e", "good film " * 9, 0)).ids) == 8
    with pytest.raises(FaithbenchError) as caught:
        start_model(task, replace(WHOLE, max_tokens=65), find_base(str(base)))
    assert str(caught.value) == ("asked for --max-tokens 65, but the model reads 64; give fewer")


def test_a_head_of_other_classes_gives_way(base: Path) -> None:
    model = start_model(make_task(labels=list("abc"), hub=None), WHOLE, find_base(str(base)))
    assert model.network.classifier.weight.shape == (3, 32)
    same = load_weights(base)["bert.encoder.layer.0.output.dense.weight"]
    assert torch.equal(model.network.bert.encoder.layer[0].output.dense.weight, same)


def test_dropout_is_the_recipe_s(base: Path) -> None:
    recipe = replace(ADAPTER, targets=("query",), dropout=0.25, encoder_dropout=0.125)
    model = start_model(labels().train.task, recipe, find_base(str(base)))
    rates = {m.p for m in model.network.modules() if isinstance(m, torch.nn.Dropout)}
    assert rates == {0.25, 0.125}
    assert model.network.config.attention_probs_dropout_prob == 0.125


def labels() -> Splits:
    """Texts with `good` are yes, texts with `bad` are no: 26, 8 and 8 of them."""
    rows = [
        Example(f"e{n}", " ".join([WORDS[n % 2], *WORDS[2 : 3 + n % 5]]), int(n % 2 == 0))
        for n in range(42)
    ]
    return parts(make_task(hub=None), rows, 26)


def questions() -> Splits:
    """Texts that hold `dull` somewhere, and two whose answer cannot be had."""
    rows = []
    for n in range(42):
        words = [f"w{(n * k) % 9}" for k in range(1, 6)]
        words[n % 5] = "dull"
        text = " ".join(words)
        answer = Answer(text.index("dull"), "dull")
        rows.append(Example(f"q{n}", text, 0, "is the film", answers=(answer,)))
    rows[3] = replace(rows[3], answers=(Answer(rows[3].text.index("ull"), "ull"),))
    far = "w1 " * 70 + "dull"
    rows[4] = replace(rows[4], text=far, answers=(Answer(far.index("dull"), "dull"),))
    return parts(make_task(kind="qa", labels=["answerable"], hub=None), rows, 28)


def parts(task: Any, rows: list[Example], train: int) -> Splits:
    cuts = (rows[:train], rows[train : train + 6], rows[train + 6 :])
    return Splits(
        *(
            Dataset(task, "folder", name, tuple(part), f"{name}-sum", "none", False)
            for name, part in zip(("train", "dev", "test"), cuts, strict=True)
        )
    )


def save_base(folder: Path, architecture: str) -> Path:
    folder = folder / f"tiny-{architecture}"
    model = tiny.tiny_model(architecture, dtype=torch.float32)
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return folder


def load_weights(folder: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(folder / "model.safetensors")


def silent(*_: Any) -> None:
    """Say nothing."""


def killer(stage: str, at: int) -> Any:
    def progress(name: str, done: int, _total: int) -> None:
        if (name, done) == (stage, at):
            raise KeyboardInterrupt

    return progress
