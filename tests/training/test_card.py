"""What a card says of a training, and what it compares the model with."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Answer, Example
from faithbench.data.dataset import Dataset
from faithbench.training.base import Base
from faithbench.training.card import (
    card_facts,
    check_same_run,
    claimed,
    majority_scores,
    measured,
    write_card,
)
from faithbench.training.items import TrainingBatch
from faithbench.training.objectives import (
    ForwardPass,
    Objectives,
    SelectedObjective,
    find_objectives,
)
from tests.support.builders import make_task
from tests.support.training import ADAPTER, dataset, label_splits, save_base, silent

BASE = Base("tiny", Path("tiny"), "b" * 64)


def test_the_majority_is_train_s_and_judged_on_test() -> None:
    """Train has two of class 1, test one in four: accuracy .25, F1 of 0 and 2 * 1 / (1 + 4)."""
    train, test = labelled([1, 1, 0]), labelled([1, 0, 0, 0])
    expected = {"accuracy": 0.25, "macro_f1": 0.2, "matthews": 0.0}
    assert majority_scores(train, test) == expected
    # A tie goes to the first class.
    assert majority_scores(labelled([1, 0]), test) == {
        "accuracy": 0.75,
        "macro_f1": 0.4286,
        "matthews": 0.0,
    }


def test_no_answer_is_the_majority_of_questions_without_one() -> None:
    answered = Example("a", "a film", 0, "what", answers=(Answer(2, "film"),))
    unanswered = [Example(f"n{n}", "a film", 1, "who") for n in range(3)]
    task = make_task(kind="qa", labels=["answerable", "no_answer"], hub=None)
    data = dataset(task, [answered, *unanswered])
    assert majority_scores(data, data) == {"exact_match": 0.75, "f1": 0.75}
    only = dataset(make_task(kind="qa", labels=["answerable"], hub=None), [answered])
    assert majority_scores(only, only) is None


def test_facts_name_an_objective_only_if_it_is_not_the_default() -> None:
    """So that cards and unfinished trainings from before there was a choice stay valid."""
    usual = card_facts(label_splits(), ADAPTER, find_objectives(), BASE)
    assert "objectives" not in usual["recipe"]
    assert usual["recipe"]["seed"] == 0 and usual["recipe"]["targets"] == []
    selected = SelectedObjective("mine", Mine(0.5))
    recipe = card_facts(label_splits(), ADAPTER, Objectives((selected,)), BASE)["recipe"]
    assert recipe["objectives"] == [{"name": "mine", "settings": {"weight": 0.5}}]
    assert recipe == usual["recipe"] | {"objectives": recipe["objectives"]}
    foreign = Objectives((replace(selected, package="toys 1.2"),))
    recipe = card_facts(label_splits(), ADAPTER, foreign, BASE)["recipe"]
    assert recipe["objectives"][0]["package"] == "toys 1.2"


def test_facts_of_data_and_base() -> None:
    facts = card_facts(label_splits(), ADAPTER, find_objectives(), BASE)
    assert (facts["base"], facts["base_sha256"]) == ("tiny", "b" * 64)
    assert facts["data"] == {
        name: {"source": "folder", "split": name, "n": n, "sha256": f"{name}-sum"}
        for name, n in (("train", 26), ("dev", 6), ("test", 10))
    }


def test_a_folder_holds_one_training(tmp_path: Path) -> None:
    facts: dict[str, Any] = {"seed": 0}
    check_same_run(facts, tmp_path)
    assert not list(tmp_path.iterdir()), "a check leaves nothing behind"
    with claimed(facts, tmp_path):
        message = "another process trains into .*; wait for it, or choose another --out"
        with pytest.raises(FaithbenchError, match=message), claimed(facts, tmp_path):
            pass
    check_same_run(facts, tmp_path)  # a killed run may go on
    with pytest.raises(FaithbenchError, match="holds a training with other data or settings"):
        check_same_run({"seed": 1}, tmp_path)
    write_card(facts, tmp_path)  # killed before the card was measured
    check_same_run(facts, tmp_path)
    (tmp_path / "run.json").unlink()
    for check in (check_same_run, lambda *given: claimed(*given).__enter__()):
        with pytest.raises(FaithbenchError, match="already holds a trained model; choose another"):
            check(facts, tmp_path)


def test_a_note_is_there_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a note would look like that of another training, which nothing can continue."""

    def cut(_descriptor: int) -> None:
        raise OSError("no power")

    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(OSError, match="no power"):
        claimed({"seed": 0}, tmp_path).__enter__()
    assert not list(tmp_path.iterdir())


def test_published_scores_are_those_of_the_task_file(tmp_path: Path) -> None:
    score = {"model": "BERT-base", "metric": "accuracy", "score": 0.9, "source": "A paper (2020)"}
    examples = label_splits().test.examples
    task = make_task(hub=None, published=[score])
    data = dataset(task, examples)
    folder = save_base(tmp_path, "bert")
    card = measured(folder, data, data, "cpu", silent)
    assert card["published"] == [score | {"note": ""}]
    assert card["majority"] == {"accuracy": 0.5, "macro_f1": 0.3333, "matthews": 0.0}
    assert set(card["test"]) == {"accuracy", "macro_f1", "matthews"}


@dataclass(frozen=True)
class Mine:
    weight: float = 1.0

    def __call__(self, batch: TrainingBatch, forward: ForwardPass) -> torch.Tensor:
        return self.weight * forward.logits[0].sum()


def labelled(labels: list[int]) -> Dataset:
    examples = [Example(f"e{n}", "a film", label) for n, label in enumerate(labels)]
    return dataset(make_task(hub=None), examples)
