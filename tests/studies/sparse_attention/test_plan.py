"""Which networks a study trains: tasks by the names users know, projections, seeds, refusals."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.tasks import load_task
from faithbench.models.architectures.projections import projection_name
from faithbench.studies.sparse_attention.plan import (
    PLANS,
    SPARSITIES,
    Network,
    StudyRequest,
    networks_of,
    quickened,
    study_tasks,
)
from faithbench.training.from_scratch import settle_scratch
from tests.support.builders import MINI


def names(tasks: tuple[str, ...]) -> list[str]:
    return [task.name for task in study_tasks(tasks)]


def test_news20_is_read_without_its_headers_and_each_task_once() -> None:
    assert names(("news20", "sst2")) == ["news20-body", "sst2"]
    assert names(("sst2", "news20-body", "news20", "sst2")) == ["sst2", "news20-body"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "a study needs a task; give --task sst2,news20"),
        ("sst3", "no task named 'sst3'; did you mean 'sst2'"),
        ("squad", "task squad is of kind qa, and these networks classify single texts"),
        ("mnli", "task mnli is of kind pair, and these networks classify single texts"),
    ],
)
def test_what_these_networks_cannot_learn(name: str, said: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        study_tasks((name,) if name else ())
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_task_without_training_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mini.toml"
    path.write_text(f'{MINI}[models]\n[folder]\nname = "mini"\nsplits = {{ test = "test" }}\n')
    with pytest.raises(FaithbenchError, match=r"^task mini has no training data, so that no net"):
        study_tasks((str(path),))


def test_networks_are_architectures_by_projections_by_seeds() -> None:
    request = StudyRequest(("sst2",), Path("out"), seeds=2)
    networks = networks_of(request, load_task("sst2"))
    assert len(networks) == 2 * 6 * 2
    assert [one.name for one in networks[:3]] == [
        "sst2-bilstm-softmax-seed0",
        "sst2-bilstm-softmax-seed1",
        "sst2-bilstm-sparsegen--10-seed0",
    ]
    assert len({one.name for one in networks}) == len(networks), "each has a folder of its own"
    assert networks[-1].label == "sst2, transformer, sparsegen:0.9, seed 1"
    twice = StudyRequest(("sst2",), Path("out"), seeds=2, archs=("bilstm", "bilstm"))
    assert networks_of(twice, load_task("sst2")) == networks[:12]


def test_of_the_long_task_one_seed_and_the_end_points() -> None:
    networks = networks_of(StudyRequest(("imdb",), Path("out"), seeds=3), load_task("imdb"))
    assert {one.seed for one in networks} == {0} and len(networks) == 2 * 3
    assert [one.strength for one in networks[:3]] == [None, 0, 0.9]


@pytest.mark.parametrize("projection", SPARSITIES)
def test_the_lambda_of_a_projection_is_that_of_its_name(projection: str) -> None:
    assert projection_name(projection) == projection, "its usual form, as cards have it"
    strength = Network(load_task("sst2"), "bilstm", projection, 0).strength
    kind, _, number = projection.partition(":")
    assert strength == {"softmax": None, "sparsemax": 0}.get(kind, float(number or 0))


def test_a_quick_study_is_a_small_one() -> None:
    quick = quickened(PLANS["sst2"])
    assert (quick.epochs, quick.texts, quick.limit, quick.most_seeds) == (1, 12, 300, 1)
    assert quick.projections == ("softmax", "sparsegen:-1", "sparsemax", "sparsegen:0.9")
    assert quickened(PLANS["imdb"]).projections == PLANS["imdb"].projections
    request = StudyRequest(("sst2",), Path("out"), seeds=3, quick=True)
    assert request.plan_of(load_task("sst2")) == quick
    assert len(networks_of(request, load_task("sst2"))) == 2 * 4


def test_a_network_is_trained_as_its_plan_says() -> None:
    network = Network(load_task("sst2"), "transformer", "sparsegen:0.9", 2)
    recipe = settle_scratch(network.recipe(PLANS["sst2"], "minilm"))
    assert (recipe.seed, recipe.arch, recipe.projection) == (2, "transformer", "sparsegen:0.9")
    assert (recipe.epochs, recipe.patience, recipe.max_tokens) == (3, 3, 100)
    assert (recipe.encoder_dropout, recipe.amsgrad, recipe.weight_decay) == (0.3, True, 0)
    assert (recipe.vectors, recipe.width, recipe.objectives) == ("minilm", 100, ())


def test_an_unknown_architecture_is_named() -> None:
    request = StudyRequest(("sst2",), Path("out"), archs=("bilstm", "bert"))
    with pytest.raises(FaithbenchError, match="no architecture with attention named 'bert'"):
        networks_of(request, load_task("sst2"))
    with pytest.raises(FaithbenchError, match="a study needs an architecture; give --arch bilstm,"):
        networks_of(replace(request, archs=()), load_task("sst2"))
