"""Adversaries: the furthest attention and the way there by brute force, and what is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import brentq
from scipy.spatial.distance import jensenshannon

from faithbench.core.errors import FaithbenchError
from faithbench.core.seals import parse_sealed, seal_json
from faithbench.models.encoding import encode
from faithbench.models.model import load_model
from faithbench.studies.sparse_attention import adversary
from faithbench.studies.sparse_attention.adversary import (
    Adversary,
    _least,
    _sibling,
    _towards,
    adversaries,
)
from faithbench.studies.sparse_attention.networks import Trained, read_splits, trained_networks
from faithbench.studies.sparse_attention.plan import StudyRequest, networks_of, study_tasks
from faithbench.training.objectives.divergence import jensen_shannon
from faithbench.training.recipe import Splits

Make = Callable[..., StudyRequest]


def attentions(rows: int = 30, width: int = 6) -> tuple[torch.Tensor, torch.Tensor]:
    """Return rows of dense and of sparse attention over two to six words, and which words are."""
    draw = np.random.default_rng(1)
    there = np.arange(width) < draw.integers(2, width + 1, (rows, 1))
    weights = draw.dirichlet(np.ones(width), rows) * there
    weights[::2, 1] = 0
    weights /= weights.sum(axis=1, keepdims=True)
    return torch.tensor(weights), torch.tensor(there)


def test_no_attention_is_further_away_than_that_on_the_least_word() -> None:
    """Not that on any other word, nor any of a hundred drawn ones."""
    attention, there = attentions()
    far = _least(attention, there)
    assert ((far == 0) | (far == 1)).all() and (far.sum(dim=1) == 1).all()
    assert (far <= there).all(), "no attention goes to padding"
    found = jensen_shannon(attention, far)
    draw = np.random.default_rng(2)
    for row, real in enumerate(there.sum(dim=1).tolist()):
        weights = attention[row, :real].numpy()
        others = np.concatenate([np.eye(real), draw.dirichlet(np.full(real, 0.2), 100)])
        divergences = [jensenshannon(weights, other) ** 2 for other in others]
        assert max(divergences) == pytest.approx(found[row].item(), abs=1e-12)


@pytest.mark.parametrize(
    ("weights", "real", "expected"),
    [
        ([0.5, 0.2, 0.3, 0.0], 3, 1),
        ([1.0, 0.0, 0.0, 0.0], 4, 2),
        ([0.0, 0.0, 1.0, 0.0], 4, 1),
        ([0.0, 1.0, 0.0, 0.0], 3, 0),
        ([0.25, 0.25, 0.25, 0.25], 4, 1),
        ([1.0, 0.0, 0.0, 0.0], 1, 0),
    ],
)
def test_of_tied_words_the_one_in_the_middle(
    weights: list[float], real: int, expected: int
) -> None:
    """Of an even number, the earlier of the two."""
    far = _least(torch.tensor([weights]), (torch.arange(4) < real)[None])
    assert far.tolist() == [[float(index == expected) for index in range(4)]]


def test_the_way_to_a_divergence_is_that_of_a_root_finder() -> None:
    attention, there = attentions()
    far = _least(attention, there)
    most = jensen_shannon(attention, far)
    wanted = most * torch.linspace(0.05, 0.95, len(most), dtype=most.dtype)
    near = _towards(attention, far, wanted)
    torch.testing.assert_close(jensen_shannon(attention, near), wanted, rtol=0, atol=1e-8)
    for row in range(len(near)):
        start, end = attention[row].numpy(), far[row].numpy()

        def gap(step: float, start: Any = start, end: Any = end, row: int = row) -> float:
            return jensenshannon(start, start + step * (end - start)) ** 2 - wanted[row].item()

        step = brentq(gap, 0, 1, xtol=1e-12)
        np.testing.assert_allclose(near[row], start + step * (end - start), rtol=0, atol=2e-9)


def test_the_ends_of_the_way() -> None:
    """Where the end itself diverges by less than wanted it is the end, and 0 is the start."""
    attention, there = attentions()
    far = _least(attention, there)
    beyond = torch.full((len(far),), log(2) + 1e-6, dtype=far.dtype)
    torch.testing.assert_close(_towards(attention, far, beyond), far, rtol=0, atol=1e-15)
    start = _towards(attention, far, torch.zeros_like(beyond))
    torch.testing.assert_close(start, attention, rtol=0, atol=1e-8)


def trained(request: StudyRequest) -> tuple[tuple[Trained, ...], Splits]:
    (task,) = study_tasks(request.tasks)
    splits = read_splits(request, task)
    return trained_networks(request, splits), splits


def test_bilstms_get_adversaries_of_three_weights(
    study_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other weights only from the first start; a Transformer gets none."""
    pairs: list[Any] = []
    monkeypatch.setattr(adversary, "_adversary", lambda pair, **_: pairs.append(pair) or pair)
    request = study_request(seeds=2, archs=("bilstm", "transformer"))
    (task,) = study_tasks(request.tasks)
    networks: Any = [
        Trained(network, request.models / network.name, {})
        for network in networks_of(request, task)
    ]
    nothing: Any = None
    adversaries(request, networks, nothing)
    found = [(one.network.projection, one.network.seed, weight) for one, weight in pairs]
    assert found == [
        ("softmax", 0, 0.1), ("softmax", 1, 0.1), ("sparsemax", 0, 0.1), ("sparsemax", 1, 0.1),
        ("softmax", 0, 0.01), ("softmax", 0, 1.0), ("sparsemax", 0, 0.01), ("sparsemax", 0, 1.0),
    ]  # fmt: skip
    assert {one.network.arch for one, _ in pairs} == {"bilstm"}
    del pairs[:]
    adversaries(replace(request, quick=True), networks, nothing)
    assert {weight for _, weight in pairs} == {0.1}, "one weight shows that it works"
    assert _sibling(networks[0], networks) == networks[1]
    assert _sibling(networks[1], networks) == networks[0]
    assert _sibling(networks[0], networks[:1]) == networks[0]


def test_an_adversary_is_measured_on_every_test_text(
    study_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against each text alone, though texts go through the networks four at a time."""
    monkeypatch.setattr(adversary, "TOGETHER", 4)
    monkeypatch.setattr(adversary, "MORE_WEIGHTS", ())
    request = study_request(seeds=2)
    networks, splits = trained(request)
    found = adversaries(request, networks, splits)
    assert [(one.projection, one.seed) for one in found] == [
        ("softmax", 0), ("softmax", 1), ("sparsemax", 0), ("sparsemax", 1),
    ]  # fmt: skip
    first, other = networks[0], networks[1]
    folder = request.models / "mini-bilstm-softmax-seed0-diverged-0.1"
    digests = [
        json.loads((one / "card.json").read_text())["weights_sha256"]
        for one in (first.folder, folder, other.folder)
    ]
    assert list(found[0].weights_sha256) == digests and len(set(digests)) == 3
    models = [
        load_model(str(path), labels=("no", "yes"), device="cpu")
        for path in (first.folder, folder, other.folder)
    ]
    for index, example in enumerate(splits.test.examples):
        ids = torch.tensor(encode(models[0], example).ids)[None]
        passes = [
            model.network(ids, output_attentions=True, output_hidden_states=True)
            for model in models
        ]
        own, diverged, again = (
            one.attentions[0][0, 0, 0].detach().double().numpy() for one in passes
        )
        distance = jensenshannon(own, diverged) ** 2
        assert found[0].divergence[index] == pytest.approx(distance, abs=1e-6)
        expected = jensenshannon(own, again) ** 2
        assert found[0].another_seed[index] == pytest.approx(expected, abs=1e-6)
        far = torch.tensor(np.eye(len(own))[own.argmin()])[None]
        near = _towards(torch.tensor(own)[None], far, torch.tensor([distance]))
        h, classify = passes[0].hidden_states[1], models[0].network.classify
        moved = [classify(h, one.float()[None, None]) for one in (far, near)]
        right = [
            bool(logits.argmax() == example.label)
            for logits in (passes[0].logits, *moved, passes[1].logits)
        ]
        columns = (found[0].base, found[0].far, found[0].near, found[0].trained)
        assert right == [column[index] for column in columns]
    assert len(found[0].base) == len(splits.test.examples) == 10


def test_what_is_measured_is_kept_until_its_networks_change(
    study_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a second seed, divergence between seeds is that from it, no more from itself."""
    monkeypatch.setattr(adversary, "MORE_WEIGHTS", ())
    calls: list[str] = []
    measured = adversary._measured

    def counted(base: Trained, *more: Any) -> Any:
        calls.append(base.network.name)
        return measured(base, *more)

    monkeypatch.setattr(adversary, "_measured", counted)
    request = study_request()
    networks, splits = trained(request)
    first = adversaries(request, networks, splits)
    assert len(calls) == 2 and set(first[0].another_seed) == {0.0}
    assert adversaries(request, networks, splits) == first and len(calls) == 2
    request = replace(request, seeds=2)
    networks, splits = trained(request)
    more = adversaries(request, networks, splits)
    assert len(calls) == 6 and min(more[0].another_seed) > 0
    assert more[0].divergence == first[0].divergence


def test_a_record_of_another_form_is_refused(study_request: Make) -> None:
    request = study_request()
    networks, splits = trained(request)
    (found, *_) = adversaries(request, networks[:1], splits)
    path = request.records / "adversaries" / "mini-bilstm-softmax-seed0-diverged-0.1.json"
    whole = path.read_text()
    data = parse_sealed(whole.encode())
    assert Adversary.model_validate(data) == found
    path.write_text(json.dumps(data | {"schema": 1}))
    again, *_ = adversaries(request, networks[:1], splits)
    assert again == found.model_copy(update={"schema_": 1}), "from before there was a sha256"
    path.write_text(seal_json(data | {"more": 1}))
    with pytest.raises(FaithbenchError) as caught:
        adversaries(request, networks[:1], splits)
    assert str(caught.value) == (
        f"study record {path}: unknown key 'more'; remove it to measure again"
    )
    for text, said in (
        ("{", "Expecting property name"),
        (whole.replace("true", "false", 1), "its content does not match its sha256"),
    ):
        assert text != whole
        path.write_text(text)
        with pytest.raises(FaithbenchError, match=rf"{said}.*; remove it to measure again"):
            adversaries(request, networks[:1], splits)
