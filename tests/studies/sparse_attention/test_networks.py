"""Training what a study lacks: once, with one thread, and timed as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.studies.sparse_attention import networks, plan
from faithbench.studies.sparse_attention.networks import (
    read_splits,
    train_once,
    trained_networks,
    training_seconds,
)
from faithbench.studies.sparse_attention.plan import StudyRequest, networks_of, study_tasks
from faithbench.training.recipe import Recipe, Splits
from tests.studies.sparse_attention.conftest import SMALL
from tests.support.training import killer, load_weights, silent

Make = Callable[..., StudyRequest]


def splits_of(request: StudyRequest) -> Splits:
    (task,) = study_tasks(request.tasks)
    return read_splits(request, task)


def recipe_of(request: StudyRequest) -> Recipe:
    (task,) = study_tasks(request.tasks)
    first, *_ = networks_of(request, task)
    return first.recipe(request.plan_of(task), request.vectors)


def test_of_each_split_as_many_texts_as_the_plan_says(
    study_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert [len(part.examples) for part in vars(splits_of(study_request())).values()] == [24, 6, 10]
    monkeypatch.setattr(plan, "OTHERS", replace(SMALL, limit=8))
    assert [len(part.examples) for part in vars(splits_of(study_request())).values()] == [8, 6, 8]


def test_networks_are_trained_once_and_in_the_order_of_the_plan(study_request: Make) -> None:
    request = study_request()
    said: list[str] = []
    splits = splits_of(request)
    trained = trained_networks(request, splits, lambda what, *_: said.append(what))
    assert [one.folder.name for one in trained] == [
        "mini-bilstm-softmax-seed0",
        "mini-bilstm-sparsemax-seed0",
    ]
    assert [one.card["recipe"]["projection"] for one in trained] == ["softmax", "sparsemax"]
    assert said[0].startswith("network 1/2 (mini, bilstm, softmax, seed 0): ")
    assert said[-1].startswith("network 2/2 (mini, bilstm, sparsemax, seed 0): ")
    before = {path: path.stat().st_mtime_ns for path in request.models.rglob("*")}
    said.clear()
    again = trained_networks(request, splits, lambda what, *_: said.append(what))
    assert again == trained and said == []
    assert before == {path: path.stat().st_mtime_ns for path in request.models.rglob("*")}


def test_several_processes_train_the_same_networks(study_request: Make, tmp_path: Path) -> None:
    request = study_request()
    alone = trained_networks(request, splits_of(request))
    request = replace(request, out=tmp_path / "other", jobs=2)
    together = trained_networks(request, splits_of(request))
    assert [one.network for one in together] == [one.network for one in alone]
    digests = [[one.card["weights_sha256"] for one in trained] for trained in (alone, together)]
    assert digests[0] == digests[1] and len(set(digests[0])) == 2


def test_a_whole_training_is_timed_and_a_continued_one_is_not(
    study_request: Make, tmp_path: Path
) -> None:
    request = study_request()
    recipe, splits = recipe_of(request), splits_of(request)
    train_once(recipe, splits, tmp_path / "whole", silent, "cpu")
    seconds = training_seconds(tmp_path / "whole")
    assert seconds is not None and 0 <= seconds < 60
    with pytest.raises(KeyboardInterrupt):
        train_once(recipe, splits, tmp_path / "killed", killer("epoch 1/1", 1), "cpu")
    train_once(recipe, splits, tmp_path / "killed", silent, "cpu")
    assert training_seconds(tmp_path / "killed") is None
    whole = load_weights(tmp_path / "whole")
    for key, value in load_weights(tmp_path / "killed").items():
        assert torch.equal(value, whole[key]), key


@pytest.mark.parametrize("fails", [False, True])
def test_training_has_one_thread_and_leaves_their_number_alone(
    fails: bool, study_request: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, seen = torch.get_num_threads(), []

    def fit(*_: object, **__: object) -> dict[str, str]:
        seen.append(torch.get_num_threads())
        (tmp_path / "made").mkdir()
        if fails:
            raise FaithbenchError("no")
        return {}

    monkeypatch.setattr(networks, "fit", fit)
    request = study_request()
    torch.set_num_threads(2)
    try:
        train_once(recipe_of(request), splits_of(request), tmp_path / "made", silent)
    except FaithbenchError:
        assert fails
    finally:
        after = torch.get_num_threads()
        torch.set_num_threads(before)
    assert (seen, after) == ([1], 2)


def test_a_folder_with_another_training_is_not_overwritten(study_request: Make) -> None:
    """Other data, vectors or epochs: the same name does not make it the same network."""
    request = study_request()
    trained_networks(request, splits_of(request))
    splits = splits_of(request)
    fewer = replace(splits.train, examples=splits.train.examples[:12])
    with pytest.raises(FaithbenchError, match="seed0 already holds a trained model; choose anoth"):
        trained_networks(request, replace(splits, train=fewer))
