"""The networks of a recipe: bundled, on the hub, trained once, or missing with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.types import quiet
from faithbench.data.jsonl import sample_by_digest
from faithbench.studies.reproduction.measures import networks as module
from faithbench.studies.reproduction.measures.networks import Network, Networks
from faithbench.studies.reproduction.recipe import PaperRecipe
from faithbench.studies.reproduction.values import Missing
from tests.studies.reproduction import (
    HEAD,
    MODEL,
    TABLE,
    clock_of,
    put_marked_task,
    recipe_of,
    refuse,
    request_of,
)
from tests.support.training import save_base

TRAINED = """\
[models.net]
task = "{task}"
stands_for = "a CNN"
seeds = 2
texts = 4
[models.net.train]
arch = "cnn"
vectors = "random"
width = 8
limit = 12
dev_limit = 4
max_tokens = 12
"""


def networks_of(recipe: PaperRecipe, place: Path, **changes: Any) -> Networks:
    request = request_of(recipe, place, **changes)
    return Networks(request, clock_of(request), quiet)


def found_of(networks: Networks) -> tuple[Network, ...]:
    found = networks.of("net")
    assert not isinstance(found, Missing), found
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny BERT in a folder of its own."""
    return save_base(tmp_path_factory.mktemp("models"), "bert")


def test_a_bundled_model_is_one_network(tmp_path: Path, folder: Path) -> None:
    networks = networks_of(recipe_of(tmp_path, HEAD, MODEL, TABLE, model=folder), tmp_path)
    (network,) = found_of(networks)
    assert network == Network("net", str(folder), "sst2", "", 0)
    assert network.task.labels == ("negative", "positive")
    model = networks.load(network)
    assert model.labels == ("negative", "positive") and networks.load(network) is model


def test_texts_are_always_the_same_ones(tmp_path: Path, folder: Path) -> None:
    """Without data, those that come with faithbench; fewer are the first of more."""
    text = MODEL + "texts = 12\n"
    recipe = recipe_of(tmp_path, HEAD, text, TABLE, model=folder)
    networks = networks_of(recipe, tmp_path)
    (network,) = found_of(networks)
    data = networks.texts(network)
    assert (data.source, data.split, len(data.examples)) == ("bundled", "test", 12)
    fewer = networks_of(recipe, tmp_path, limit=5).texts(network)
    assert {e.id for e in fewer.examples} < {e.id for e in data.examples}
    assert fewer.examples == sample_by_digest(data.examples, 5)
    quick = networks_of(recipe, tmp_path, quick=True)
    assert len(quick.texts(network).examples) == 8
    # A network itself is scored on more of them: of 140, all.
    assert len(networks.tested(network).examples) == 140
    assert len(quick.tested(network).examples) == 64


def test_only_texts_of_one_label(tmp_path: Path, folder: Path) -> None:
    text = MODEL + 'texts = 12\nonly = "positive"\n'
    networks = networks_of(recipe_of(tmp_path, HEAD, text, TABLE, model=folder), tmp_path)
    (network,) = found_of(networks)
    assert {e.label for e in networks.texts(network).examples} == {1}
    assert {e.label for e in networks.tested(network).examples} == {0, 1}


HUB = '[models.net]\ntask = "sst2"\nstands_for = "BERT"\n'


def test_the_hub_may_have_another_task_and_label(tmp_path: Path) -> None:
    text = HUB + 'hub = { name = "owner/net", task = "imdb", only = "negative" }\n'
    networks = networks_of(recipe_of(tmp_path, HEAD, text, TABLE), tmp_path, source="hub")
    assert networks._of("net") == (Network("net", "owner/net", "imdb", "negative", 0),)
    plain = HUB + 'only = "positive"\nhub = { name = "owner/net" }\n'
    networks = networks_of(recipe_of(tmp_path, HEAD, plain, TABLE), tmp_path, source="hub")
    assert networks._of("net") == (Network("net", "owner/net", "sst2", "positive", 0),)


def test_a_model_that_is_not_there_is_missing_with_a_reason(tmp_path: Path) -> None:
    only_hub = recipe_of(tmp_path, HEAD, HUB, 'hub = { name = "owner/net" }\n', TABLE)
    assert networks_of(only_hub, tmp_path).of("net") == Missing(
        "only the hub has this model; --model hub"
    )
    ours = recipe_of(tmp_path, HEAD, MODEL, TABLE)
    assert networks_of(ours, tmp_path, source="hub").of("net") == Missing(
        "the paper's own model is not on the hub"
    )
    long = recipe_of(tmp_path, HEAD, MODEL, "long = true\n", TABLE)
    assert networks_of(long, tmp_path).of("net") == Missing("takes hours on a CPU; --long")
    assert not isinstance(networks_of(long, tmp_path, long=True).of("net"), Missing)


def test_a_model_that_cannot_be_loaded_is_missing_and_is_told_once(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, HEAD, MODEL, TABLE, model=tmp_path / "nowhere")
    said: list[str] = []
    request = request_of(recipe, tmp_path)
    networks = Networks(request, clock_of(request), lambda what, *_: said.append(what))
    missing = networks.of("net")
    assert isinstance(missing, Missing) and "nowhere" in missing.why and "\n" not in missing.why
    assert networks.of("net") is missing and said == [f"net: {missing.why}"]


def test_data_that_are_not_there_leave_the_model_missing(tmp_path: Path, folder: Path) -> None:
    text = MODEL.replace('"sst2"', f'"{put_marked_task(tmp_path)}"')
    recipe = recipe_of(tmp_path, HEAD, text, TABLE, model=folder)
    missing = networks_of(recipe, tmp_path, folder=tmp_path / "mini").of("net")
    assert isinstance(missing, Missing) and "task mini" in missing.why


def test_networks_are_trained_one_per_seed_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = put_marked_task(tmp_path)
    recipe = recipe_of(tmp_path, HEAD, TRAINED.format(task=task), TABLE)
    networks = networks_of(recipe, tmp_path, folder=tmp_path)
    found = found_of(networks)
    assert [(one.seed, one.only, one.task_name) for one in found] == [
        (0, "", str(task)), (1, "", str(task)),
    ]  # fmt: skip
    paths = [Path(one.ref) for one in found]
    assert [path.parent for path in paths] == [tmp_path / "results" / "models"] * 2
    assert [path.name[:10] for path in paths] == ["net-seed0-", "net-seed1-"]
    weights = [networks.load(one).weights_sha256 for one in found]
    assert weights[0] != weights[1]
    assert set(networks.clock.seconds) == {f"train {path.name}" for path in paths}
    # Another request finds them; one with other settings does not.
    monkeypatch.setattr("faithbench.studies.sparse_attention.networks.fit", refuse)
    assert found_of(networks_of(recipe, tmp_path, folder=tmp_path)) == found
    (first,) = found_of(networks_of(recipe, tmp_path, folder=tmp_path, seeds=1))
    assert first == found[0]
    wider = recipe_of(
        tmp_path, HEAD, TRAINED.format(task=task).replace("width = 8", "width = 9"), TABLE
    )
    with pytest.raises(AssertionError, match="done already"):
        networks_of(wider, tmp_path, folder=tmp_path).of("net")


def test_how_a_recipe_trains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole networks with an architecture, adapters without; the best epoch of all is kept."""
    asked: list[Any] = []

    def train(recipe: Any, splits: Any, folder: Path, *_: Any) -> None:
        asked.append((recipe, splits, folder))

    monkeypatch.setattr(module, "train_once", train)
    task = put_marked_task(tmp_path)
    text = TRAINED.format(task=task).replace("limit = 12", "limit = 12\nepochs = 3")
    for own in (text, text.replace('arch = "cnn"\n', "")):
        recipe = recipe_of(tmp_path, HEAD, own, TABLE)
        networks_of(recipe, tmp_path, folder=tmp_path, seeds=1)._of("net")
    (cnn, splits, one), (adapter, _, other) = asked
    assert (cnn.method, cnn.arch, cnn.epochs, cnn.patience, cnn.width) == ("full", "cnn", 3, 3, 8)
    assert (adapter.method, adapter.arch, adapter.vectors) == ("lora", "", "random")
    assert [len(split.examples) for split in (splits.train, splits.dev, splits.test)] == [12, 4, 10]
    assert one != other, "folders are named by how they were trained"
    assert replace(cnn, method="lora", arch="") == adapter
