"""The cards of explainers: every built-in one has its facts, and a plugin may bring its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.reference.explainers import explainer_card, explainer_papers
from faithbench.core.errors import FaithbenchError
from faithbench.explainers.registry import CONTROL, EXPLAINERS
from faithbench.testing.served import all_architectures

PLUGIN = '''
from dataclasses import dataclass
from faithbench import explainer

@explainer("mine", papers=("@misc{doe2026, title = {Mine}}", "ribeiro2016should"))
@dataclass(frozen=True)
class Mine:
    """Score as I like."""

    taste: float = 0.5

    def __call__(self, session, batch):
        return batch.ids.double()
'''


@pytest.mark.parametrize("name", EXPLAINERS)
def test_every_built_in_explainer_has_its_facts(name: str) -> None:
    card = explainer_card(name)
    facts = dict(card.facts)
    assert card.summary == EXPLAINERS[name].summary
    assert facts["family"] == EXPLAINERS[name].family and facts["from"].startswith("faithbench ")
    assert facts["draws"] and "forward equivalents" in facts["cost"] and facts["tested on"]
    named = set(facts["tested on"].split(", ")) | set(
        facts.get("refuses", "").partition(":")[0].split(", ")
    )
    assert name == "l2e" or set(all_architectures()) <= named
    # Controls were thought of here; all else has somebody to cite.
    assert card.papers or EXPLAINERS[name].family == CONTROL
    assert all(paper.reference in facts["papers"] for paper in card.papers)


def test_some_facts() -> None:
    card = explainer_card("smoothgrad")
    assert [(s.name, s.kind, s.default) for s in card.settings] == [
        ("samples", "whole number", "16"), ("noise", "number", "0.15"), ("norm", "text", "l2"),
    ]  # fmt: skip
    assert dict(card.facts)["draws"].startswith("at random")
    assert dict(card.facts)["cost"] == "48 forward equivalents, for 9 tokens as for 37"
    masked = {
        name: dict(explainer_card(name).facts) for name in ("lrp-mask", "lrp-mask:mask=random")
    }
    assert (
        masked["lrp-mask"]["draws"] == "nothing at random with these settings; with others it does"
    )
    assert masked["lrp-mask:mask=random"]["draws"].startswith("at random")
    facts = dict(explainer_card("value-zeroing").facts)
    assert facts["cost"] == "10 forward equivalents for a text of 9 tokens, 38 for one of 37"
    assert facts["tested on"] == "bert, roberta, distilbert, electra, albert, gpt2"
    assert facts["refuses"].startswith(
        "cnn, bilstm, transformer, xlnet, t5, bart, longformer, fnet"
    )
    assert "sum" in dict(explainer_card("deep-shap").facts)
    assert "rationales" in dict(explainer_card("human").facts)["needs"]
    assert "not read" in dict(explainer_card("random").facts)["model"]
    assert "training split" in dict(explainer_card("salience:kind=tfidf").facts)["needs"]
    assert (
        "no tiny model: model 'tiny-bert' comes" in dict(explainer_card("l2e").facts)["tested on"]
    )


def test_a_plugin_brings_its_papers(tmp_path: Path) -> None:
    path = tmp_path / "mine_with_papers.py"
    path.write_text(PLUGIN)
    card = explainer_card("mine", [path])
    assert [paper.key for paper in card.papers] == ["doe2026", "ribeiro2016should"]
    assert card.summary == "Score as I like." and card.settings[0].default == "0.5"
    facts = dict(card.facts)
    assert facts["family"] == "plugin" and "not known" in facts["tested on"]
    assert card.commands[0].endswith(f'"A dull, tiresome film." --plugin {path}')


def test_what_needs_rationales_is_tried_on_a_task() -> None:
    assert explainer_card("human").commands == (
        "faithbench run --explainer human,random --task sst2",
    )


def test_captum_and_what_is_no_explainer() -> None:
    card = explainer_card("captum:Saliency")
    assert [paper.key for paper in card.papers] == ["kokhlikyan2020captum"]
    assert dict(card.facts)["family"] == "captum"
    assert explainer_papers("mine", object()) == ()
    with pytest.raises(FaithbenchError, match="no explainer named 'lime2'"):
        explainer_card("lime2")
    with pytest.raises(FaithbenchError, match="'lime,gae' stands for 2 explainers; name one"):
        explainer_card("lime,gae")
