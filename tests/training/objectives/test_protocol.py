"""Optional members of objectives: what training sees of one that has them, and of one without."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.training.items import TrainingItem, TrainingSet
from faithbench.training.objectives import SelectedObjective
from faithbench.training.objectives.protocol import (
    added_items,
    added_labels,
    captures_of,
    folder_facts,
    is_auxiliary,
    needs_rationale,
    prepared,
    weight_of,
)


class Bare:
    def __call__(self, batch: Any, forward: Any) -> Any: ...


@dataclass(frozen=True)
class Full(Bare):
    weight: float = 0.25
    teacher: str = ""
    auxiliary: ClassVar[bool] = True
    needs_rationale: ClassVar[bool] = True
    captures: ClassVar = frozenset({"levels"})
    folder_settings: ClassVar[tuple[str, ...]] = ("teacher",)
    added_label: ClassVar[str] = "none"

    def check(self, model: Any, training_set: Any) -> None:
        if not training_set.items:
            raise FaithbenchError("nothing to learn from")

    def prepare(self, model: Any, training_set: Any) -> Any:
        return ("prepared", model, len(training_set.items))

    def more_items(self, model: Any, item: Any, label: int) -> list[Any]:
        return [(item, label)]


@dataclass(frozen=True)
class Other(Full):
    added_label: ClassVar[str] = "other"


def test_without_members_the_defaults_hold() -> None:
    bare = Bare()
    assert not is_auxiliary(bare) and not needs_rationale(bare)
    assert weight_of(bare) == 1 and captures_of(bare) == frozenset()
    assert prepared(bare, None, None) is bare  # neither is looked at
    assert added_labels([bare]) == () and folder_facts(bare) == {}


def test_members_are_found() -> None:
    full = Full()
    assert is_auxiliary(full) and needs_rationale(full)
    assert weight_of(full) == 0.25 and captures_of(full) == {"levels"}
    items: Any = ("item",)
    ready: Any = prepared(full, "model", TrainingSet(items, None, {}))
    assert ready == ("prepared", "model", 1)
    with pytest.raises(FaithbenchError, match="nothing to learn from"):
        prepared(full, "model", TrainingSet((), None, {}))


def test_added_classes_follow_those_of_the_task_in_order() -> None:
    losses = (Bare(), Full(), Other())
    item: Any = "item"
    assert added_labels(losses) == ("none", "other")
    found: list[TrainingItem] = added_items(losses, None, item, 2)
    assert found == [("item", 2), ("item", 3)]


def test_of_a_folder_the_last_part_and_the_digest_are_facts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders of equal weights are one model; without weights, the name is all there is."""
    for name, weights in (("a/one", b"weights"), ("b/one", b"weights"), ("a/two", b"others")):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "model.safetensors").write_bytes(weights)
    facts = folder_facts(Full(teacher=str(tmp_path / "a/one")))
    digest = hashlib.sha256(b"weights").hexdigest()
    assert facts == {"teacher": "one", "teacher_sha256": digest}
    assert folder_facts(Full(teacher=str(tmp_path / "b/one/"))) == facts
    other = folder_facts(Full(teacher=str(tmp_path / "a/two")))
    assert other["teacher_sha256"] == hashlib.sha256(b"others").hexdigest()
    assert folder_facts(Full(teacher="some/where")) == {"teacher": "where"}
    monkeypatch.chdir(tmp_path / "a/one")
    assert folder_facts(Full()) == {"teacher": ""}, "no folder is not the one we are in"


def test_a_card_says_the_facts_in_place_of_the_setting(tmp_path: Path) -> None:
    loss: Any = Full(teacher=str(tmp_path / "teacher"))
    settings = SelectedObjective("full", loss).facts()["settings"]
    assert settings == {"weight": 0.25, "teacher": "teacher"}
    assert SelectedObjective("full", loss).settings["teacher"] == str(tmp_path / "teacher")
