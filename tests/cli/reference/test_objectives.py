"""The cards of objectives: every one that comes with faithbench has its facts."""

from __future__ import annotations

import pytest

from faithbench.cli.reference.objectives import objective_card
from faithbench.training.objectives import DEFAULT, known_objectives


@pytest.mark.parametrize("name", [one.name for one in known_objectives() if not one.package])
def test_every_objective_has_its_facts(name: str) -> None:
    card = objective_card(name)
    facts = dict(card.facts)
    assert card.summary and card.paragraphs and facts["kind"] and facts["from"] == "faithbench"
    assert card.papers or name == DEFAULT


def test_some_facts() -> None:
    card = objective_card("saloss")
    assert [paper.key for paper in card.papers] == ["chrysostomou2021enjoy"]
    assert dict(card.facts)["kind"] == "its loss is added to cross-entropy"
    assert dict(card.facts)["reads"] == "logits, attentions"
    assert [(s.name, s.kind, s.default) for s in card.settings][1] == ("weight", "number", "0.001")
    assert dict(objective_card("neutral").facts)["adds"] == "a class 'neutral', and texts of it"
    assert dict(objective_card("saliency").facts)["needs"] == "a training split with rationales"
    assert dict(objective_card(DEFAULT).facts)["kind"] == "the task's own loss"
