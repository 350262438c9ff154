"""The card of a training objective: read off its class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from faithbench.cli.reference.card import Card, paragraphs_of, references, settings_of
from faithbench.core.papers import papers_of

if TYPE_CHECKING:
    from faithbench.training.objectives import SelectedObjective


def objective_card(text: str) -> Card:
    """Return the card of one objective, by its name."""
    from faithbench.training.objectives import find_objective

    one = find_objective(text)
    paragraphs = paragraphs_of(type(one.loss).__doc__)
    return Card(
        one.name,
        paragraphs[0] if paragraphs else "no docstring says what it does",
        paragraphs[1:],
        settings_of(one.settings),
        tuple(_facts(one)),
        papers_of(one.loss),
        (f"faithbench train --task sst2 --data DATA --objective {one.name}",),
    )


def _facts(one: SelectedObjective) -> Iterator[tuple[str, str]]:
    from faithbench.training.objectives.protocol import (
        AddingItems,
        captures_of,
        is_auxiliary,
        needs_rationale,
    )

    added = (
        "its loss is added to cross-entropy" if is_auxiliary(one.loss) else "the task's own loss"
    )
    yield "kind", added
    yield "from", one.package or "faithbench"
    if needs_rationale(one.loss):
        yield "needs", "a training split with rationales"
    captured = sorted(captures_of(one.loss))
    yield "reads", ", ".join(["logits", *captured])
    if isinstance(one.loss, AddingItems):
        yield "adds", f"a class {one.loss.added_label!r}, and texts of it"
    yield "papers", references(papers_of(one.loss))
