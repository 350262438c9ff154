"""What a request makes of a recipe's sizes, and a clock that counts no work twice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.studies.reproduction import request as module
from faithbench.studies.reproduction.recipe import ModelSpec, Training
from faithbench.studies.reproduction.request import QUICK_LESSONS, QUICK_TEXTS, Clock
from tests.studies.reproduction import HEAD, MODEL, TABLE, recipe_of, request_of

TRAIN = Training(arch="cnn", epochs=3, limit=4000, dev_limit=500, width=20)
SPEC = ModelSpec(task="sst2", stands_for="BERT", train=TRAIN, texts=150, lessons=1000)


@pytest.mark.parametrize(
    ("changes", "texts", "lessons", "seeds"),
    [
        ({}, 150, 1000, 3),
        ({"limit": 20}, 20, 1000, 3),
        ({"limit": 400}, 400, 1000, 3),
        ({"seeds": 5}, 150, 1000, 5),
        ({"quick": True}, QUICK_TEXTS, QUICK_LESSONS, 1),
        ({"quick": True, "limit": 4, "seeds": 5}, 4, QUICK_LESSONS, 1),
        ({"quick": True, "limit": 400}, QUICK_TEXTS, QUICK_LESSONS, 1),
    ],
)
def test_sizes(
    tmp_path: Path, changes: dict[str, Any], texts: int, lessons: int, seeds: int
) -> None:
    request = request_of(recipe_of(tmp_path, HEAD, MODEL, TABLE), tmp_path, **changes)
    assert (request.texts(SPEC), request.lessons(SPEC), request.seeds_of(3)) == (
        texts, lessons, seeds,
    )  # fmt: skip


def test_a_quick_training_is_short_and_else_the_same(tmp_path: Path) -> None:
    recipe = recipe_of(tmp_path, HEAD, MODEL, TABLE)
    assert request_of(recipe, tmp_path).training(SPEC) == TRAIN
    quick = request_of(recipe, tmp_path, quick=True).training(SPEC)
    assert (quick.limit, quick.dev_limit, quick.epochs) == (QUICK_LESSONS, QUICK_TEXTS, 1)
    assert (quick.arch, quick.width) == ("cnn", 20)


def test_a_model_with_few_lessons_has_few_in_a_quick_one(tmp_path: Path) -> None:
    few = SPEC.model_copy(update={"lessons": 40})
    request = request_of(recipe_of(tmp_path, HEAD, MODEL, TABLE), tmp_path, quick=True)
    assert request.lessons(few) == 40


@pytest.fixture
def cpu(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """CPU seconds that the test turns on by hand."""
    now = {"seconds": 100.0}
    monkeypatch.setattr(module, "_cpu", lambda: now["seconds"])
    return now


def test_a_piece_is_timed_once_and_found_again(tmp_path: Path, cpu: dict[str, float]) -> None:
    path = tmp_path / "results" / "times.json"
    clock = Clock(path)
    with clock.piece("train"):
        cpu["seconds"] += 12.34
    with clock.piece("explain"):
        cpu["seconds"] += 1.0
    assert clock.spent() == 13.3 and json.loads(path.read_text()) == {"train": 12.3, "explain": 1.0}
    # Who asks again, in this call or in another, is told the time that it took.
    before = path.read_bytes()
    for one in (clock, Clock(path)):
        with one.piece("train"):
            cpu["seconds"] += 0.5
        assert one.spent() == 12.3
    assert path.read_bytes() == before


def test_what_was_asked_for_is_forgotten_once_it_is_told(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "times.json")
    assert clock.spent() == 0.0
    with clock.piece("a"):
        pass
    assert clock.used == {"a"}
    clock.spent()
    assert clock.used == set() and clock.spent() == 0.0


def test_a_piece_that_fails_has_no_time(tmp_path: Path, cpu: dict[str, float]) -> None:
    clock = Clock(tmp_path / "times.json")
    with pytest.raises(KeyboardInterrupt), clock.piece("train"):
        cpu["seconds"] += 7.0
        raise KeyboardInterrupt
    assert clock.seconds == {} and not (tmp_path / "times.json").exists()


def test_a_damaged_file_of_times_is_told_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "times.json"
    path.write_text('{"train": ')
    with pytest.raises(FaithbenchError, match=r"times.json is not JSON \(.*\); remove it$"):
        Clock(path)
