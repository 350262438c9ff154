"""Scores that choose an epoch: of the task, and of an explainer on the model's predictions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.evaluation import evaluate
from faithbench.models.predictions import evaluate_inputs, predictions
from faithbench.testing import tiny
from faithbench.training.dev_metric import find_dev_metric, score_added
from faithbench.training.items import TrainingItem
from tests.support.training import label_splits, silent


def test_a_score_of_the_task_is_the_one_of_evaluate() -> None:
    model, dev = tiny.tiny_model(), label_splits().dev
    metric = find_dev_metric("macro_f1", "classification")
    assert metric.best((0.1, 0.3, 0.2)) == 0.3
    assert metric.score(model, dev, (), silent) == evaluate(model, dev)["macro_f1"]


def test_an_explainer_s_metric_is_the_mean_over_the_split() -> None:
    """agreement@first-tokens by hand: does the first 30% alone keep the prediction?"""
    model, dev = tiny.tiny_model(), label_splits().dev
    metric = find_dev_metric("agreement@first-tokens", "classification")
    engine, kept = Engine(model), []
    for example in dev.examples:
        encoding = encode(model, example)
        (predicted,) = predictions(engine, [encoding])
        n = int(encoding.erasable.sum())
        keep = encoding.ids.copy()
        first_erased = 1 + -(-3 * n // 10)
        keep[first_erased : 1 + n] = model.tokenizer.mask_token_id
        row: Any = (keep, encoding.types)
        outputs = evaluate_inputs(engine, [[row]], [encoding], [predicted.target])
        kept.append(bool(outputs.kept[0]))
    assert metric.score(model, dev, (), silent) == sum(kept) / len(kept)


def test_a_metric_where_less_is_better_takes_the_least() -> None:
    metric = find_dev_metric("flip_fraction@attention", "classification")
    assert metric.best((0.5, 0.2, 0.4)) == 0.2
    value = metric.score(tiny.tiny_model(), label_splits().dev, (), silent)
    assert 0 < value <= 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("acuracy", "no score named 'acuracy'; did you mean 'accuracy'"),
        ("auprc@attention", "should be one metric of erased inputs and one explainer"),
        ("aopc@attention,gradient", "should be one metric of erased inputs and one explainer"),
        ("aopc@atention", "no explainer named 'atention'"),
        ("fi_entropy@attention", "has no better and worse"),
    ],
)
def test_faults_are_named(text: str, message: str) -> None:
    with pytest.raises(FaithbenchError, match=message):
        find_dev_metric(text, "classification")


class Doubling:
    """Adds each item again, under a class of its own."""

    added_label: ClassVar[str] = "again"

    def more_items(self, model: Any, item: TrainingItem, label: int) -> list[TrainingItem]:
        return [TrainingItem(item.encoding, (label,))]


def test_added_items_count_in_the_score_and_on_their_own() -> None:
    """The model never says `again` for these texts, so accuracy halves."""
    model, dev = tiny.tiny_model(classes=3), label_splits().dev
    model = replace(model, labels=("no", "yes", "again"))
    alone = evaluate(model, dev)["accuracy"]
    found = score_added(model, dev, (Doubling(),), silent)
    assert found is not None and score_added(model, dev, (), silent) is None
    both = find_dev_metric("accuracy", "classification").score(model, dev, (Doubling(),), silent)
    assert both == pytest.approx((alone + found) / 2)
