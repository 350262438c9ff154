"""The card of an explainer: read off its class, and off what the conformance suite saw of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from faithbench.cli.reference.card import (
    Card,
    paragraphs_of,
    plugin_options,
    references,
    settings_of,
)
from faithbench.core.errors import FaithbenchError
from faithbench.core.papers import Paper, paper_of, papers_of
from faithbench.explainers.registry import EXPLAINERS

if TYPE_CHECKING:
    from faithbench.explainers.selection import Selected
    from faithbench.testing.served import Cost

CAPTUM = "kokhlikyan2020captum"


def explainer_papers(name: str, explainer: object = None) -> tuple[Paper, ...]:
    """Return the papers of an explainer: a built-in one by its name, another one by its class."""
    if name in EXPLAINERS:
        return tuple(map(paper_of, EXPLAINERS[name].papers))
    if name.startswith("captum:"):
        return (paper_of(CAPTUM),)
    return papers_of(explainer)


def explainer_card(text: str, files: Sequence[Path] = ()) -> Card:
    """Return the card of one explainer, by its name."""
    from faithbench.explainers.selection import find_explainers

    selected = find_explainers(text, files)
    if len(selected) != 1:
        raise FaithbenchError(f"{text!r} stands for {len(selected)} explainers; name one of them")
    (one,) = selected
    paragraphs = paragraphs_of(type(one.explainer).__doc__)
    if not paragraphs:
        raise FaithbenchError(f"explainer {one.name!r} has no docstring; say what it computes")
    return Card(
        one.name,
        paragraphs[0],
        paragraphs[1:],
        settings_of(type_defaults(one.explainer)),
        tuple(_facts(one)),
        explainer_papers(one.name, one.explainer),
        (_command(one) + plugin_options(files),),
    )


def _command(one: Selected) -> str:
    from faithbench.explainers.protocol import needs_rationale

    if needs_rationale(one.explainer):  # which texts that are typed have not
        return f"faithbench run --explainer {one.name},random --task sst2"
    return f'faithbench explain --explainer {one.name} --text "A dull, tiresome film."'


def type_defaults(explainer: object) -> dict[str, object]:
    """Return the settings of an explainer's class, each with its default."""
    return asdict(type(explainer)())  # type: ignore[call-overload, no-any-return]  # nor can object


def _facts(one: Selected) -> Iterator[tuple[str, str]]:
    from faithbench.explainers.protocol import PromisesSum, reads_model
    from faithbench.testing.served import served

    yield "family", _family(one)
    yield "from", f"{one.package} {one.version}".strip()
    yield "draws", _draws(one.explainer)
    if needs := _needs(one):
        yield "needs", needs
    if not reads_model(one.explainer):
        yield "model", "not read: it is a control"
    if isinstance(one.explainer, PromisesSum):
        yield "sum", "promised: the record keeps by how much scores miss it"
    if one.name in served():
        facts = served()[one.name]
        yield "cost", cost_text(facts.costs)
        yield from _architectures(facts.architectures, facts.refusal)
    else:
        yield "cost", "not known before a run measures it"
        yield "tested on", "not known: `faithbench.testing.check_explainer` tests it"
    yield "papers", references(explainer_papers(one.name, one.explainer))


def _draws(explainer: object) -> str:
    from faithbench.explainers.protocol import is_stochastic

    if is_stochastic(explainer):
        return "at random: it runs under several seeds, and values are means over them"
    # Where it is no constant of the class, the settings decide.
    if isinstance(getattr(type(explainer), "stochastic", False), property):
        return "nothing at random with these settings; with others it does"
    return "nothing at random: the same input gives the same scores"


def _family(one: Selected) -> str:
    if one.name in EXPLAINERS:
        return EXPLAINERS[one.name].family
    return "captum" if one.name.startswith("captum:") else "plugin"


def _needs(one: Selected) -> str:
    """Return what an explainer needs besides a model and a text."""
    from faithbench.explainers.protocol import needs_rationale, needs_training

    needs = []
    if needs_rationale(one.explainer):
        needs.append("rationales that people marked")
    if needs_training(one.explainer):
        needs.append("the task's training split")
    if one.name in EXPLAINERS and EXPLAINERS[one.name].by_name_only:
        needs.append("to be named: `all` does not mean it, as most models lack what it reads")
    return "; ".join(needs)


def cost_text(costs: Iterable[Cost]) -> str:
    """Say what an explainer takes, in forwards of the model, for a short and a longer text."""
    short, long = costs
    if short.forward_equivalents == long.forward_equivalents:
        return (
            f"{short.forward_equivalents:.4g} forward equivalents, for {short.tokens} tokens as "
            f"for {long.tokens}"
        )
    return (
        f"{short.forward_equivalents:.4g} forward equivalents for a text of {short.tokens} "
        f"tokens, {long.forward_equivalents:.4g} for one of {long.tokens}"
    )


def _architectures(served: tuple[str, ...], refusal: str) -> Iterator[tuple[str, str]]:
    """Yield which architectures the conformance suite passed on, and which are refused."""
    from faithbench.testing.served import all_architectures

    if not served:
        yield "tested on", f"no tiny model: {refusal}"
        return
    yield "tested on", ", ".join(served)
    refused = [name for name in all_architectures() if name not in served]
    if refused:
        yield "refuses", f"{', '.join(refused)}: in one line, before any work is done"
