"""Records of explainers: made together, found again, or taken from those that are published."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.types import quiet
from faithbench.data.dataset import load_dataset
from faithbench.explainers.attention import Attention
from faithbench.records.record import read
from faithbench.records.schema import Record
from faithbench.records.store import StoredRecord
from faithbench.run.job import Job
from faithbench.run.loop import run_serving
from faithbench.run.request import Request, make_job
from faithbench.studies.reproduction.measures import explanations as module
from faithbench.studies.reproduction.measures.explanations import Explanations, Wanted
from faithbench.studies.reproduction.measures.networks import Network, Networks
from faithbench.studies.reproduction.recipe import PaperRecipe
from faithbench.studies.reproduction.values import Missing, row_values
from tests.studies.reproduction import (
    HEAD,
    MODEL,
    TABLE,
    clock_of,
    recipe_of,
    refuse,
    request_of,
)
from tests.support.training import save_base

TEN = MODEL + "texts = 10\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_base(tmp_path_factory.mktemp("models"), "bert")


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The labels of every run that was made."""
    made: list[list[str]] = []

    def watched(job: Job, *arguments: Any) -> Any:
        made.append([selected.label for selected in job.explainers])
        return run_serving(job, *arguments)

    monkeypatch.setattr(module, "run_serving", watched)
    return made


def explanations_of(recipe: PaperRecipe, place: Path, **changes: Any) -> Explanations:
    request = request_of(recipe, place, **changes)
    clock = clock_of(request)
    return Explanations(request, Networks(request, clock, quiet), clock, quiet)


def network_of(explanations: Explanations) -> Network:
    found = explanations.networks.of("net")
    assert not isinstance(found, Missing), found
    return found[0]


def stored_of(found: StoredRecord | Missing) -> StoredRecord:
    assert isinstance(found, StoredRecord), found
    return found


def test_what_shares_metrics_and_seeds_runs_together_and_once(
    tmp_path: Path, folder: Path, jobs: list[list[str]]
) -> None:
    recipe = recipe_of(tmp_path, HEAD, TEN, TABLE, model=folder)
    explanations = explanations_of(recipe, tmp_path)
    network = network_of(explanations)
    one = Wanted(network, "attention", ("aopc", "lodds"), 3)
    two = Wanted(network, "random", ("aopc", "lodds"), 3)
    other = Wanted(network, "random", ("aopc",), 1)
    explanations.make([one, two, other, one])
    assert jobs == [["attention", "random"], ["random"]]
    stored = stored_of(explanations.record(two))
    assert (stored.record.explainer.name, stored.record.seeds) == ("random", (0, 1, 2))
    assert stored.record.task.n == 10 and set(stored.record.metrics) == {"aopc", "lodds"}
    assert stored_of(explanations.record(one)).record.seeds == (0,), "attention draws nothing"
    assert set(explanations.clock.seconds) == {
        "explain net 0: attention, random", "explain net 0: random",
    }  # fmt: skip
    # Another call finds them on the disk, and asks for what is not there alone.
    again = explanations_of(recipe, tmp_path)
    jobs.clear()
    again.make([one, two, Wanted(network, "gradient", ("aopc", "lodds"), 3)])
    assert jobs == [["gradient"]]
    assert stored_of(again.found[two]).record == stored.record


def test_a_record_is_named_below_its_folder(
    tmp_path: Path, folder: Path, jobs: list[list[str]]
) -> None:
    recipe = recipe_of(tmp_path, HEAD, TEN, TABLE, model=folder)
    explanations = explanations_of(recipe, tmp_path)
    wanted = Wanted(network_of(explanations), "random", ("fi_entropy",), 1)
    stored = stored_of(explanations.record(wanted))
    ref = explanations.ref(stored)
    assert ref.path.startswith("records/sst2-bundled/") and ref.path.endswith(".json")
    assert (tmp_path / "results" / ref.path) == stored.path
    assert ref.sha256 == stored.record.rows.sha256 and len(ref.sha256) == 64
    elsewhere = replace(stored, path=Path("/elsewhere/a.json"))
    assert explanations.ref(elsewhere).path == "a.json"


def test_an_explainer_that_cannot_serve_is_missing_with_its_reason(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    bilstm = save_base(tmp_path_factory.mktemp("models"), "bilstm")
    recipe = recipe_of(tmp_path, HEAD, TEN, TABLE, model=bilstm)
    explanations = explanations_of(recipe, tmp_path)
    network = network_of(explanations)
    both = [Wanted(network, name, ("aopc",), 1) for name in ("rollout", "random")]
    explanations.make(both)
    missing = explanations.found[both[0]]
    assert isinstance(missing, Missing)
    assert missing.why.startswith("a bilstm model has no square attention")
    assert isinstance(explanations.found[both[1]], StoredRecord)
    # So it is if none can.
    alone = explanations_of(recipe, tmp_path).record(Wanted(network, "alti", ("aopc",), 1))
    assert isinstance(alone, Missing) and alone.why.startswith("a bilstm model has no blocks")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Path:
    """Records of 40 texts and three seeds, as a leaderboard has them."""
    results = tmp_path_factory.mktemp("published")
    job = make_job(
        Request(
            explainer="random,attention", task="sst2", model=str(folder), limit=40, human=False,
            metrics="aopc,lodds,iou_lexical", results=results, device="cpu",
        )
    )  # fmt: skip
    run_serving(job, quiet)
    return results


def test_a_published_record_serves_where_it_covers_what_is_asked(
    tmp_path: Path, folder: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run_serving", refuse)
    recipe = recipe_of(tmp_path, HEAD, TEN, TABLE, model=folder)
    explanations = explanations_of(recipe, tmp_path, also=(tmp_path / "no", published))
    network = network_of(explanations)
    for metrics in (("aopc",), ("aopc", "lodds")):
        stored = stored_of(explanations.record(Wanted(network, "random", metrics, 3)))
        assert stored.path.is_relative_to(published) and stored.record.task.n == 40
    ref = explanations.ref(stored)
    assert ref.path == stored.path.relative_to(published).as_posix()
    # Two seeds are the first two of three.
    assert stored_of(explanations.record(Wanted(network, "random", ("aopc",), 2))) == stored


@pytest.mark.parametrize(
    ("explainer", "metrics", "seeds", "changes"),
    [
        ("gradient", ("aopc",), 3, {}),
        ("random", ("aopc", "agreement"), 3, {}),
        ("random", ("aopc",), 4, {}),
        ("random", ("aopc",), 3, {"limit": 50}),
        # Neighbours are sought among all texts: those of forty are not those of ten.
        ("random", ("iou_lexical",), 3, {}),
        ("random", ("aopc",), 3, {"quick": True}),
        ("random", ("aopc",), 3, {"also": ()}),
    ],
)
def test_a_published_record_does_not_serve_for_anything_else(
    explainer: str,
    metrics: tuple[str, ...],
    seeds: int,
    changes: dict[str, Any],
    tmp_path: Path,
    folder: Path,
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "run_serving", refuse)
    recipe = recipe_of(tmp_path, HEAD, TEN, TABLE, model=folder)
    explanations = explanations_of(recipe, tmp_path, **{"also": (published,)} | changes)
    with pytest.raises(AssertionError, match="done already"):
        explanations.record(Wanted(network_of(explanations), explainer, metrics, seeds))


def test_neighbours_of_as_many_texts_serve(
    tmp_path: Path, folder: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run_serving", refuse)
    recipe = recipe_of(tmp_path, HEAD, MODEL + "texts = 40\n", TABLE, model=folder)
    explanations = explanations_of(recipe, tmp_path, also=(published,))
    wanted = Wanted(network_of(explanations), "random", ("iou_lexical",), 3)
    assert stored_of(explanations.record(wanted)).path.is_relative_to(published)


def test_other_weights_do_not_serve(
    tmp_path: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "run_serving", refuse)
    other = save_base(tmp_path, "electra")
    recipe = recipe_of(tmp_path, HEAD, TEN, TABLE, model=other)
    explanations = explanations_of(recipe, tmp_path, also=(published,))
    with pytest.raises(AssertionError, match="done already"):
        explanations.record(Wanted(network_of(explanations), "random", ("aopc",), 3))


def test_a_record_of_an_older_revision_does_not_serve(
    tmp_path: Path, folder: Path, published: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its scores, or what it cost, are no longer those of the explainer of that name."""
    monkeypatch.setattr(module, "run_serving", refuse)
    recipe = recipe_of(tmp_path, HEAD, TEN, TABLE, model=folder)
    wanted = Wanted(network_of(explanations_of(recipe, tmp_path)), "attention", ("aopc",), 1)
    served = explanations_of(recipe, tmp_path, also=(published,)).record(wanted)
    assert stored_of(served).record.explainer.revision == Attention.revision
    monkeypatch.setattr(Attention, "revision", Attention.revision + 1)
    with pytest.raises(AssertionError, match="done already"):
        explanations_of(recipe, tmp_path, also=(published,)).record(wanted)


@pytest.mark.parametrize("changes", [{"model": {"dtype": "float16"}}, {"protocol": {"version": 2}}])
def test_a_record_made_in_another_way_does_not_serve(
    tmp_path: Path,
    folder: Path,
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, dict[str, Any]],
) -> None:
    def changed(path: Path) -> Record:
        record = read(path)
        parts = {part: getattr(record, part).model_copy(update=changes[part]) for part in changes}
        return record.model_copy(update=parts)

    monkeypatch.setattr(module, "run_serving", refuse)
    monkeypatch.setattr(module, "read", changed)
    recipe = recipe_of(tmp_path, HEAD, TEN, TABLE, model=folder)
    explanations = explanations_of(recipe, tmp_path, also=(published,))
    with pytest.raises(AssertionError, match="done already"):
        explanations.record(Wanted(network_of(explanations), "attention", ("aopc",), 1))


def test_a_published_record_is_read_by_the_texts_that_were_asked_for(
    tmp_path: Path, folder: Path, published: Path
) -> None:
    """All of the first ten negative sentences are among the first forty."""
    texts = TEN.replace("10", "5") + 'only = "negative"\n'
    recipe = recipe_of(tmp_path, HEAD, texts, TABLE, model=folder)
    explanations = explanations_of(recipe, tmp_path, also=(published,))
    network = network_of(explanations)
    asked = {example.id for example in explanations.networks.texts(network).examples}
    stored = stored_of(explanations.record(Wanted(network, "random", ("aopc",), 3)))
    labels = {e.id: e.label for e in load_dataset(network.task).examples}
    (first, *_) = row_values(stored, "aopc", None)
    assert asked <= set(first) and {labels[name] for name in first} == {0}


def test_a_model_with_an_added_class_is_explained(tmp_path: Path, jobs: list[list[str]]) -> None:
    """As those with the objective `neutral` are, such as that of L2E's Table 4."""
    from faithbench.testing.tiny import tiny_model

    model = tiny_model(classes=3)
    model.network.save_pretrained(tmp_path / "net")
    model.tokenizer.save_pretrained(tmp_path / "net")
    (tmp_path / "net" / "card.json").write_text('{"added_labels": ["neutral"]}')
    recipe = recipe_of(tmp_path, HEAD, TEN, TABLE, model=tmp_path / "net")
    explanations = explanations_of(recipe, tmp_path)
    network = network_of(explanations)
    assert explanations.networks.load(network).labels == ("negative", "positive", "neutral")
    found = explanations.record(Wanted(network, "random", ("aopc",), 1))
    assert isinstance(found, StoredRecord)
