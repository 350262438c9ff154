"""Records of networks: the values of each text alone, measured once, and the untrained control."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.rounding import significant
from faithbench.data.jsonl import sample_by_digest
from faithbench.metrics.influence import influence_values
from faithbench.models.encoding import encode
from faithbench.models.model import load_model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.measures.influence import measure_influence
from faithbench.studies.sparse_attention import measure, plan
from faithbench.studies.sparse_attention.measure import measured_networks
from faithbench.studies.sparse_attention.networks import Trained, read_splits, trained_networks
from faithbench.studies.sparse_attention.plan import StudyRequest, study_tasks
from faithbench.studies.sparse_attention.record import read_record, write_record
from faithbench.training.recipe import Splits
from tests.studies.sparse_attention.conftest import SMALL

Make = Callable[..., StudyRequest]


def trained(request: StudyRequest) -> tuple[tuple[Trained, ...], Splits]:
    (task,) = study_tasks(request.tasks)
    splits = read_splits(request, task)
    return trained_networks(request, splits), splits


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of texts of each batch that was measured."""
    sizes: list[int] = []

    def measured(session: Any, encodings: Any, *more: Any) -> Any:
        sizes.append(len(encodings))
        return measure_influence(session, encodings, *more)

    monkeypatch.setattr(measure, "measure_influence", measured)
    return sizes


def test_a_record_has_the_values_of_each_text_alone(
    study_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Texts are the first five by the digest of their ids, measured two and two by length."""
    monkeypatch.setattr(measure, "TOGETHER", 2)
    request = study_request()
    networks, splits = trained(request)
    _, record, _ = measured_networks(request, networks, splits)
    examples = sample_by_digest(splits.test.examples, 5)
    assert record.texts == tuple(example.id for example in examples)
    model = load_model(str(networks[1].folder), labels=("no", "yes"), device="cpu")
    for index, example in enumerate(examples):
        encoding = encode(model, example)
        with Session(model) as session:
            predicted = predictions(session.engine, [encoding])
            (influence,) = measure_influence(session, [encoding], predicted, positions=3)
        expected = influence_values(influence) | {"right": float(bool(predicted[0].right))}
        assert record.values.keys() == expected.keys()
        for name, value in expected.items():
            found = record.values[name][index]
            # In company of a longer text, float32 rounds otherwise.
            assert found == (None if value is None else pytest.approx(value, abs=2e-5)), name
            assert found is None or found == significant(found, 7)


def test_a_record_says_what_it_is_of(study_request: Make) -> None:
    request = study_request()
    networks, splits = trained(request)
    soft, sparse, _ = measured_networks(request, networks, splits)
    for record, one in zip((soft, sparse), networks, strict=True):
        assert record.network.name == one.folder.name
        assert record.network.weights_sha256 == one.card["weights_sha256"]
        assert record.network.test == one.card["test"]
        assert (record.network.trained, record.network.seed) == (True, 0)
        assert record.timing.training is not None and record.timing.measuring >= 0
    assert (soft.network.strength, sparse.network.strength) == (None, 0)
    assert (soft.task.name, soft.task.n, soft.task.data_sha256) == ("mini", 5, splits.test.sha256)
    assert (soft.settings.max_tokens, soft.settings.positions) == (12, 3)
    assert soft.environment.threads == 1
    assert set(soft.values["support"]) == {1.0}, "softmax reaches every word"


def test_the_control_has_the_weights_that_training_starts_from(
    study_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A network that was trained in steps of 0 is measured like it."""
    request = study_request()
    networks, splits = trained(request)
    *_, control = measured_networks(request, networks, splits)
    assert control.network.name == "mini-bilstm-softmax-untrained"
    assert not control.network.trained and control.network.test == {}
    assert control.network.weights_sha256 == "" and control.timing.training is None
    recipe = plan.Network.recipe
    monkeypatch.setattr(
        plan.Network,
        "recipe",
        lambda self, *args: replace(recipe(self, *args), learning_rate=1e-30),
    )
    still = replace(request, out=request.out / "still")
    networks, splits = trained(still)
    soft, *_ = measured_networks(still, networks, splits)
    assert soft.values == control.values


def test_what_is_measured_is_kept(study_request: Make, counted: list[int]) -> None:
    request = study_request()
    networks, splits = trained(request)
    records = measured_networks(request, networks, splits)
    assert counted == [5, 5, 5], "two networks and the control"
    before = {path: path.read_bytes() for path in request.records.iterdir()}
    assert measured_networks(request, networks, splits) == records and len(counted) == 3
    assert before == {path: path.read_bytes() for path in request.records.iterdir()}


def test_a_killed_study_measures_only_the_rest(
    study_request: Make, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    request = study_request()
    networks, splits = trained(request)

    def killer(what: str, _done: int, _total: int) -> None:
        if "sparsemax" in what:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measured_networks(request, networks, splits, killer)
    assert counted == [5]
    (path,) = request.records.iterdir()
    assert path.name == "mini-bilstm-softmax-seed0.json"
    records = measured_networks(request, networks, splits)
    assert counted == [5, 5, 5] and read_record(path) == records[0]


def test_a_record_of_anything_else_is_measured_again(
    study_request: Make, counted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an older version, of other weights, or under other settings."""
    request = study_request()
    networks, splits = trained(request)
    soft, sparse, _ = measured_networks(request, networks, splits)
    del counted[:]
    write_record(soft.model_copy(update={"version": 0}), request.records)
    changed = sparse.network.model_copy(update={"weights_sha256": "00" * 32})
    write_record(sparse.model_copy(update={"network": changed}), request.records)
    again = measured_networks(request, networks, splits)
    assert counted == [5, 5]
    assert [record.values for record in again[:2]] == [soft.values, sparse.values]
    monkeypatch.setattr(plan, "OTHERS", replace(SMALL, texts=4))
    assert [record.task.n for record in measured_networks(request, networks, splits)] == [4] * 3
    assert counted == [5, 5, 4, 4, 4]


def test_several_processes_measure_the_same(study_request: Make, tmp_path: Path) -> None:
    request = study_request()
    networks, splits = trained(request)
    alone = measured_networks(request, networks, splits)
    # Records lie beside the networks, so that others are written elsewhere.
    other = replace(request, out=tmp_path / "other", jobs=2)
    together = measured_networks(other, networks, splits)
    assert [record.values for record in together] == [record.values for record in alone]
    assert len(list(other.records.iterdir())) == 3


def test_measuring_leaves_the_number_of_threads_alone(
    study_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = study_request()
    networks, splits = trained(request)
    before, seen = torch.get_num_threads(), []

    def fail(*_: Any) -> Any:
        seen.append(torch.get_num_threads())
        raise KeyboardInterrupt

    monkeypatch.setattr(measure, "_values", fail)
    torch.set_num_threads(2)
    with pytest.raises(KeyboardInterrupt):
        measured_networks(request, networks, splits)
    after = torch.get_num_threads()
    torch.set_num_threads(before)
    assert (seen, after) == ([1], 2)
