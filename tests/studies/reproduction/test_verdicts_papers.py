"""Every claim of every paper: it holds of numbers made for it, and not once they are swapped.

Claims of less and greater have numbers that make every statement true at once; none goes round in
a circle. Turned round, all statements are false. Where no cell is in two statements, both sides of
each have each other's numbers; where one is, a swap is not one thing, and the claim is left out of
that test. A correlation has no two sides and is turned round. Equality says the same of swapped
numbers: its cells are moved apart instead, and where only one direction counts, in that one.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from faithbench.studies.reproduction.catalogue import paper_names, recipe_folder
from faithbench.studies.reproduction.claims import (
    ClaimSpec,
    Expression,
    atoms_of,
    expand,
    operands_of,
)
from faithbench.studies.reproduction.reading import read_recipe
from faithbench.studies.reproduction.recipe import CellSpec, Item, cells_of
from faithbench.studies.reproduction.values import Measured, Value
from faithbench.studies.reproduction.verdicts import judge
from tests.studies.reproduction import alone, made

TEXTS = 24
"""Enough for 240 statements: 2 / 2^24 is small after any correction."""


@cache
def claims() -> dict[str, tuple[Item, ClaimSpec]]:
    """All claims of all recipes, by the paper, the item and the place there."""
    return {
        f"{paper}/{item.id}/{number}": (item, claim)
        for paper in paper_names()
        for item in read_recipe(recipe_folder() / f"{paper}.toml").items
        for number, claim in enumerate(item.claims)
    }


def kind_of(claim: ClaimSpec) -> str:
    atoms = list(atoms_of(expand(claim)))
    if any(atom.correlation for atom in atoms):
        return "correlation"
    if any(atom.not_above for atom in atoms):
        return "bound"
    return "equality" if any(atom.same for atom in atoms) else "order"


ORDERED = [name for name, (_, claim) in claims().items() if kind_of(claim) == "order"]
CORRELATED = [name for name, (_, claim) in claims().items() if kind_of(claim) == "correlation"]
EQUAL = [name for name, (_, claim) in claims().items() if kind_of(claim) == "equality"]
BOUND = [name for name, (_, claim) in claims().items() if kind_of(claim) == "bound"]


def unprinted(item: Item) -> dict[str, CellSpec]:
    """Return the cells as if the paper printed nothing: only our own numbers decide."""
    return {name: replace(cell, printed=None) for name, cell in cells_of(item).items()}


def levels(claim: ClaimSpec) -> dict[str | float, float]:
    """Return a level for each cell, by which every statement is true; numbers keep their own.

    A cell that has to be above others gets a level above all of theirs. A cell below a number
    starts far below it.
    """
    pairs = [ordered(atom) for atom in atoms_of(expand(claim))]
    bounds = [float(one) for pair in pairs for one in pair if not isinstance(one, str)]
    found: dict[str | float, float] = {bound: bound for bound in bounds}
    for low, high in pairs:
        found.setdefault(low, min(bounds, default=0.0) - 1000.0)
        found.setdefault(high, 0.0)
    for _ in range(len(found)):
        before = dict(found)
        for low, high in pairs:
            if isinstance(high, str):
                found[high] = max(found[high], found[low] + 10.0)
        if found == before:
            return found
    raise AssertionError("these statements go round in a circle")


def ordered(atom: Expression) -> tuple[str | float, str | float]:
    """Return the operand that is to be low, and the one that is to be high."""
    first, second = operands_of(atom)
    return (first, second) if atom.less is not None else (second, first)


def values_at(found: dict[str | float, float], *, test: str, item: Item) -> dict[str, Value]:
    """Give every cell texts, or seeds for tests of seeds, that vary little around its level.

    A test of seeds cannot compare them with a number: such cells are single numbers themselves.
    """
    values: dict[str, Value] = {}
    single = test == "t" and any(not isinstance(one, str) for one in found)
    for name in cells_of(item):
        level = found.get(name, 0.0)
        if single:
            values[name] = alone(level)
            continue
        texts = {f"e{n}": level + 0.01 * n for n in range(TEXTS)}
        seeds = (level - 0.001, level, level + 0.001)
        values[name] = Measured(level, None, TEXTS, {} if test == "t" else texts, seeds)
    return values


@pytest.mark.parametrize("name", ORDERED)
def test_a_claim_holds_of_its_own_order_and_of_no_other(name: str) -> None:
    """Turned round, everything that was above is below, and no statement is true."""
    item, claim = claims()[name]
    found = levels(claim)
    cells = unprinted(item)
    held = judge(claim, cells, values_at(found, test=claim.test, item=item))
    assert held.verdict == "holds", held.count
    assert {trial.side for trial in held.trials} == {"for"}
    bounds = [level for one, level in found.items() if not isinstance(one, str)]
    middle = bounds[0] if bounds else 0.0
    assert len(set(bounds)) <= 1, "one number can be turned round, two cannot"
    turned = {one: 2 * middle - level for one, level in found.items()}
    failed = judge(claim, cells, values_at(turned, test=claim.test, item=item))
    assert failed.verdict == "does not hold", failed.count
    assert {trial.side for trial in failed.trials} == {"against"}


def pairs_of(name: str) -> list[tuple[str | float, ...]]:
    return [operands_of(atom) for atom in atoms_of(expand(claims()[name][1]))]


def disjoint(name: str) -> bool:
    """Return whether no cell of a claim is in two statements, and none is beside a number."""
    operands = [one for pair in pairs_of(name) for one in pair]
    return all(isinstance(one, str) for one in operands) and len(set(operands)) == len(operands)


@pytest.mark.parametrize("name", [name for name in ORDERED if disjoint(name)])
def test_swapped_operands_turn_the_verdict(name: str) -> None:
    """Both sides of every statement have each other's numbers; where a cell is in one alone."""
    item, claim = claims()[name]
    values = values_at(levels(claim), test=claim.test, item=item)
    assert judge(claim, unprinted(item), values).verdict == "holds"
    swapped = dict(values)
    for first, second in pairs_of(name):
        swapped |= {str(first): values[str(second)], str(second): values[str(first)]}
    assert judge(claim, unprinted(item), swapped).verdict == "does not hold"


@pytest.mark.parametrize("name", CORRELATED)
def test_a_correlation_holds_one_way_round(name: str) -> None:
    """Eleven points can show it. Five cannot, after a correction for eight: the recipe says so."""
    item, claim = claims()[name]
    up: dict[str, Value] = {}
    down: dict[str, Value] = {}
    for atom in atoms_of(expand(claim)):
        assert atom.correlation is not None
        sign = 1.0 if atom.correlation.sign == "positive" else -1.0
        for number, cell in enumerate(atom.correlation.of):
            up[cell], down[cell] = alone(sign * number), alone(-sign * number)
    verdicts = [judge(claim, unprinted(item), values).verdict for values in (up, down)]
    if name.startswith("sparse-attention/figure-3"):
        assert verdicts == ["cannot be told"] * 2 and "Five points" in claim.note
    else:
        assert verdicts == ["holds", "does not hold"]


@pytest.mark.parametrize("name", EQUAL)
def test_equality_holds_of_equal_cells_and_not_of_cells_apart(name: str) -> None:
    item, claim = claims()[name]
    atoms = list(atoms_of(expand(claim)))
    margin = max(atom.within or 0.0 for atom in atoms)
    equal = dict.fromkeys(cells_of(item), made([0.001 * margin * n for n in range(TEXTS)]))
    assert judge(claim, unprinted(item), equal).verdict == "holds"
    apart: dict[str, Value] = {
        cell: made([10 * margin * number + 0.001 * margin * n for n in range(TEXTS)])
        for number, cell in enumerate(cells_of(item))
    }
    assert judge(claim, unprinted(item), apart).verdict == "does not hold"


@pytest.mark.parametrize("name", BOUND)
def test_a_bound_is_on_one_side_alone(name: str) -> None:
    """What may not be above is far below, above by chance alone, and above for good."""
    item, claim = claims()[name]
    atoms = list(atoms_of(expand(claim)))
    margin, held = atoms[0].within or 0.0, {str(operands_of(atom)[0]) for atom in atoms}
    assert not held & {operands_of(atom)[1] for atom in atoms}
    for level, verdict in ((-99.0, "holds"), (0.0, "holds"), (0.9, "does not hold")):
        values: dict[str, Value] = {
            cell: made([(level + 0.1 * (-1) ** n) * margin * (cell in held) for n in range(TEXTS)])
            for cell in cells_of(item)
        }
        assert judge(claim, unprinted(item), values).verdict == verdict, level


def test_every_claim_is_one_of_the_four_kinds() -> None:
    assert len(ORDERED) + len(CORRELATED) + len(EQUAL) + len(BOUND) == len(claims())
    assert len(BOUND) == 5
    assert len(CORRELATED) == 3
    assert len([name for name in ORDERED if disjoint(name)]) > len(ORDERED) / 4
