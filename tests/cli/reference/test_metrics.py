"""The cards of metrics: every one that comes with faithbench has its facts."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.cli.reference.metrics import metric_card
from faithbench.core.errors import FaithbenchError
from faithbench.metrics import METRICS

OURS = {
    "seconds", "peak_memory", "forwards", "backwards", "forward_equivalents", "fi_entropy",
    "seed_agreement",
}  # fmt: skip
"""Metrics that stand in no paper."""

PLUGIN = '''
from faithbench import metric

FACTS = dict(family="faithfulness", higher_is_better=True, bounds=(-1, 1))

@metric("drop", papers=("yeh2019infidelity",), **FACTS)
def drop(case, outputs):
    """Nothing much."""
    return 0.0
'''


@pytest.mark.parametrize("name", [name for name in METRICS if name != "drop"])
def test_every_metric_has_its_facts(name: str) -> None:
    card, metric = metric_card(name), METRICS[name]
    facts = dict(card.facts)
    assert card.summary == metric.summary and facts["version"] == str(metric.version)
    assert facts["family"] == metric.family and facts["range"] and facts["cost"] and facts["runs"]
    assert bool(card.papers) != (name in OURS)
    assert ("needs" in facts) == (metric.need is not None)


def test_some_facts() -> None:
    aopc = dict(metric_card("aopc").facts)
    assert aopc["better"] == "up" and aopc["range"] == "-1..1"
    assert aopc["cost"].startswith("9 erased inputs for a text of 20 tokens")
    assert aopc["aspect"] == "comprehensiveness, and explainers are ranked by it"
    assert aopc["variants"] == "aopc:variant=mask-lrp, aopc:variant=attcat"
    assert dict(metric_card("tau_loo").facts)["cost"].startswith("20 erased inputs")
    assert dict(metric_card("flip_fraction").facts)["cost"].startswith("at most 20 erased inputs")
    assert "beam search" in dict(metric_card("naopc").facts)["cost"]
    assert dict(metric_card("fi_entropy").facts)["cost"] == "no pass of the model"
    assert dict(metric_card("auprc").facts)["cost"].startswith("no pass of the model: it is")
    assert dict(metric_card("fresh_f1_topk").facts)["runs"].startswith("by `faithbench fresh")
    # An attrgetter's docstring says nothing of the metric that it reads.
    assert metric_card("seconds").paragraphs == ()


def test_a_metric_is_tried_on_a_task_that_has_what_it_needs() -> None:
    run = "faithbench run -e attention,random -t "
    assert metric_card("aopc").commands == (f"{run}sst2 --metrics aopc",)
    assert metric_card("sentence_f1").commands == (f"{run}multirc --metrics sentence_f1",)
    answers = "answer_recall_at_20"
    assert metric_card(answers).commands == (f"{run}squad --metrics {answers}",)
    assert metric_card("fresh_f1_topk").commands == ()


def test_a_plugin_brings_its_papers_and_is_named_in_the_command(tmp_path: Path) -> None:
    path = tmp_path / "drop with paper.py"
    path.write_text(PLUGIN)
    card = metric_card("drop", [path])
    assert [p.key for p in card.papers] == ["yeh2019infidelity"]
    assert card.commands[0].endswith(f" --metrics drop --plugin '{path}'")


def test_a_family_is_no_metric() -> None:
    with pytest.raises(FaithbenchError, match="'speed' stands for 5 metrics; name one of them"):
        metric_card("speed")
