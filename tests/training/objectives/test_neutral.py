"""Neutral labels: which items are added, and what the trained model is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.data.tasks import Task
from faithbench.models.encoding import encode
from faithbench.models.model import load_model
from faithbench.testing import tiny
from faithbench.training.fit import fit
from faithbench.training.items import TrainingItem, make_training_set
from faithbench.training.objectives.neutral import Neutral, without_others
from faithbench.training.recipe import Splits, with_labels
from tests.support.builders import make_task
from tests.support.training import WHOLE, answer_splits, dataset, label_splits, save_base, silent


def test_the_copy_has_the_rationale_masked_and_the_class_after_the_task_s() -> None:
    model = tiny.tiny_model(classes=3)
    item = TrainingItem(encode(model, Example("e", "a goodly film", 1, rationale=((2, 8),))), (1,))
    (copy,) = Neutral().more_items(model, item, 2)
    mask = model.tokenizer.mask_token_id
    tokens = model.tokenizer.convert_ids_to_tokens(copy.encoding.ids.tolist())
    assert tokens == ["[CLS]", "a", "[MASK]", "[MASK]", "film", "[SEP]"]
    assert copy.targets == (2,) and (copy.encoding.ids == mask).sum() == 2
    assert not (item.encoding.ids == mask).any(), "the original stays"
    without = TrainingItem(encode(model, Example("n", "a film", 0)), (0,))
    assert list(Neutral().more_items(model, without, 2)) == []


def test_others_are_masked_in_a_second_copy_that_keeps_its_class() -> None:
    """Two tokens of the rationale, so two of the four others, the same ones every time."""
    model = tiny.tiny_model(classes=3)
    example = Example("e", "a goodly film is dull", 1, rationale=((2, 8),))
    item = TrainingItem(encode(model, example), (1,))
    neutral, others = Neutral(others=True).more_items(model, item, 2)
    mask = model.tokenizer.mask_token_id
    assert (neutral.targets, others.targets) == ((2,), (1,))
    masked = others.encoding.ids == mask
    assert masked.sum() == 2 and not (masked & (neutral.encoding.ids == mask)).any()
    again = list(Neutral(others=True).more_items(model, item, 2))[1]
    assert (again.encoding.ids == others.encoding.ids).all()
    short = encode(model, Example("s", "goodly film", 0, rationale=((0, 6),)))
    assert (~without_others(short)).sum() == 1, "there is one other token"


def test_a_rationale_beyond_the_last_token_adds_nothing() -> None:
    model = tiny.tiny_model()
    text = "w1 " * 70 + "dull"
    item = TrainingItem(encode(model, Example("e", text, 1, rationale=((210, 214),))), (1,))
    assert list(Neutral().more_items(model, item, 2)) == []


def test_a_training_set_with_copies_weighs_three_classes() -> None:
    """Of 26 texts all are marked: 13 no, 13 yes and 26 neutral ones."""
    model = tiny.tiny_model(classes=3)
    data = with_labels(marked_splits().train, ("neutral",))
    made = make_training_set(model, data, silent, losses=(Neutral(),))
    counts = np.bincount([item.targets[0] for item in made.items])
    assert counts.tolist() == [13, 13, 26]
    assert made.weights == pytest.approx((52 / 39, 52 / 39, 52 / 78))


def test_the_model_has_a_third_class_and_the_task_s_scores(tmp_path: Path) -> None:
    base = save_base(tmp_path, "bert")
    recipe = replace(WHOLE, objectives=("neutral",), epochs=12, patience=12, encoder_dropout=0.0)
    splits = marked_splits()
    card = fit(splits, recipe, tmp_path / "out", silent, base=str(base), device="cpu")
    assert card["labels"] == ["no", "yes", "neutral"] and card["added_labels"] == ["neutral"]
    assert card["rationale_spans"] == {"whole": 26, "cut": 0, "lost": 0}
    assert card["test"]["accuracy"] == 1.0 and card["test_added"] == {"neutral": 1.0}
    told = {"name": "neutral", "settings": {"others": False}}
    assert card["recipe"]["objectives"][1] == told
    model = load_model(str(tmp_path / "out"), labels=("no", "yes"), device="cpu")
    assert model.labels == ("no", "yes", "neutral")
    # Without what its card says, the folder is a model of another task.
    (tmp_path / "out" / "card.json").write_text(json.dumps({**card, "added_labels": []}))
    with pytest.raises(FaithbenchError, match="has 3 classes, the task has 2"):
        load_model(str(tmp_path / "out"), labels=("no", "yes"), device="cpu")


def test_a_task_without_rationales_is_refused_in_one_line(tmp_path: Path) -> None:
    recipe = replace(WHOLE, objectives=("neutral",))
    base = save_base(tmp_path, "bert")
    with pytest.raises(FaithbenchError, match="and no example of split 'train'"):
        fit(label_splits(), recipe, tmp_path / "out", silent, base=str(base), device="cpu")
    questions = replace(recipe, metric="f1")
    with pytest.raises(FaithbenchError, match="learns from rationales"):
        fit(answer_splits(), questions, tmp_path / "qa", silent, base=str(base), device="cpu")


def test_rationales_beyond_the_last_token_are_counted(tmp_path: Path) -> None:
    """Six tokens hold four words: `good` or `bad` behind four others is never read."""
    base, splits = save_base(tmp_path, "bert"), marked_splits()
    far = [
        replace(e, text="w1 w2 w3 w4 " + e.text, rationale=((12, 15),))
        for e in splits.train.examples
    ]
    recipe = replace(WHOLE, objectives=("neutral",), max_tokens=6)
    beyond = replace(splits, train=replace(splits.train, examples=tuple(far)))
    with pytest.raises(FaithbenchError, match="all 26 spans lie beyond the tokens that the model"):
        fit(beyond, recipe, tmp_path / "out", silent, base=str(base), device="cpu")
    some = replace(splits.train, examples=(*far[:20], *splits.train.examples[20:]))
    card = fit(
        replace(splits, train=some),
        replace(recipe, epochs=1),
        tmp_path / "some",
        silent,
        base=str(base),
        device="cpu",
    )
    assert card["rationale_spans"] == {"whole": 6, "cut": 0, "lost": 20}


def marked_splits() -> Splits:
    """The splits of labels with `good` or `bad`, the first word, as the rationale."""
    splits = label_splits()
    task: Task = make_task(hub=None, rationale="human")
    return Splits(
        *(
            dataset(
                task,
                [replace(e, rationale=((0, len(e.text.split()[0])),)) for e in part.examples],
                part.split,
            )
            for part in (splits.train, splits.dev, splits.test)
        )
    )
