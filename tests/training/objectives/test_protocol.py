"""Optional members of objectives: what training sees of one that has them, and of one without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.training.items import TrainingItem, TrainingSet
from faithbench.training.objectives.protocol import (
    added_items,
    added_labels,
    captures_of,
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
    auxiliary: ClassVar[bool] = True
    needs_rationale: ClassVar[bool] = True
    captures: ClassVar = frozenset({"levels"})
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
    assert added_labels([bare]) == ()


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
