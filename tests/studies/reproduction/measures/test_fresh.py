"""Cells of FRESH: what is asked of the classifiers, and their scores as a value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.core.files import digest_of
from faithbench.core.types import quiet
from faithbench.studies.reproduction.measures import fresh as module
from faithbench.studies.reproduction.measures.fresh import QUICK, TESTED, fresh_value
from faithbench.studies.reproduction.measures.networks import Networks
from faithbench.studies.reproduction.recipe import Part
from faithbench.studies.reproduction.values import Measured, Missing
from faithbench.training.fresh.study import ArmScore, FreshReport, FreshRequest
from tests.studies.reproduction import HEAD, MODEL, TABLE, clock_of, recipe_of, request_of
from tests.support.training import save_base

F1 = (0.5, 0.75, 0.25)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[FreshRequest]:
    """What was asked for; three classifiers are said to have been trained, on eight texts."""
    requests: list[FreshRequest] = []

    def fake(request: FreshRequest, _progress: object) -> FreshReport:
        requests.append(request)
        record = request.records / "sst2-bundled" / "attention.json"
        arm = ArmScore("attention", "net", F1, (1.0,) * 8, 4.0, record)
        return FreshReport((arm,), (), (40, 40, 8))

    monkeypatch.setattr(module, "fresh", fake)
    return requests


def networks_of(place: Path, model: str = MODEL, **changes: Any) -> Networks:
    recipe = recipe_of(place, HEAD, model, TABLE, model=place / "tiny-bert")
    request = request_of(recipe, place, **changes)
    return Networks(request, clock_of(request), quiet)


def part_of(**changes: Any) -> Part:
    usual = {"measure": "fresh", "model": "net", "explainer": "attention", "ratio": 0.1}
    return Part.model_validate(usual | {"metric": "fresh_f1_topk"} | changes)


def test_the_value_has_a_score_per_seed(tmp_path: Path, asked: list[FreshRequest]) -> None:
    save_base(tmp_path, "bert")
    value = fresh_value(networks_of(tmp_path), part_of(scale=100))
    assert isinstance(value, Measured)
    assert (value.mean, value.by_seed, value.n) == (50.0, (50.0, 75.0, 25.0), 8)
    assert value.values == {}, "macro-F1 is of no single text"
    (ref,) = value.records
    assert ref.path == "records/sst2-bundled/attention.json" and ref.sha256 == digest_of(list(F1))


@pytest.mark.parametrize(
    ("changes", "quick", "kind", "ratio", "seeds"),
    [
        ({}, False, "topk", 0.1, 3),
        ({"metric": "fresh_f1_contiguous", "ratio": None, "seeds": 2}, False, "contiguous", 0.2, 2),
        ({}, True, "topk", 0.1, 1),
    ],
)
def test_what_is_asked_of_classifiers(
    changes: dict[str, Any],
    quick: bool,
    kind: str,
    ratio: float,
    seeds: int,
    tmp_path: Path,
    asked: list[FreshRequest],
) -> None:
    model = save_base(tmp_path, "bert")
    fresh_value(networks_of(tmp_path, quick=quick), part_of(**changes))
    (request,) = asked
    assert (request.how.selection, request.how.ratio, request.seeds) == (kind, ratio, seeds)
    assert (request.explainer, request.models, request.controls) == ("attention", (str(model),), ())
    assert request.recipe.metric == "macro_f1" and request.recipe.epochs == (1 if quick else 3)
    assert request.limits == ((QUICK, QUICK, QUICK) if quick else (None, None, TESTED))
    assert request.out == tmp_path / "results" / "fresh" / f"net-{kind}"


def test_classifiers_learn_from_as_many_texts_as_the_model_did(
    tmp_path: Path, asked: list[FreshRequest], monkeypatch: pytest.MonkeyPatch
) -> None:
    trained = MODEL.replace('bundled = "bundled:sst2"', "[models.net.train]\nlimit = 30")
    text = f"{trained}dev_limit = 7\nmax_tokens = 9\n"
    save_base(tmp_path, "bert")
    networks = networks_of(tmp_path, text)
    found = networks_of(tmp_path).of("net")
    monkeypatch.setattr(Networks, "_of", lambda *_: found)
    fresh_value(networks, part_of())
    (request,) = asked
    assert request.limits == (30, 7, TESTED) and request.recipe.max_tokens == 9


def test_without_a_model_there_is_no_score(tmp_path: Path, asked: list[FreshRequest]) -> None:
    assert isinstance(fresh_value(networks_of(tmp_path), part_of()), Missing) and not asked
