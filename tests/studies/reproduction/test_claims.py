"""Claims as expressions over cells."""

from __future__ import annotations

from faithbench.studies.reproduction.claims import Expression, atoms_of, expand, operands_of
from tests.studies.reproduction import claim


def test_each_stands_for_every_combination_of_its_values() -> None:
    whole = expand(
        claim(
            "signed-rank",
            greater=["A | {x}{y}", "{x} | B"],
            each={"x": ["1", "2"], "y": ["a", "b", "c"]},
        )
    )
    pairs = [("A | 1a", "1 | B"), ("A | 1b", "1 | B"), ("A | 1c", "1 | B")]
    pairs += [("A | 2a", "2 | B"), ("A | 2b", "2 | B"), ("A | 2c", "2 | B")]
    assert whole == Expression(all_of=tuple(Expression(greater=pair) for pair in pairs))
    assert [operands_of(atom) for atom in atoms_of(whole)] == pairs


def test_a_statement_without_each_stays_as_it_is() -> None:
    whole = expand(claim("interval", same=["A | x", 0.5], within=0.25))
    assert whole == Expression(same=("A | x", 0.5), within=0.25)
    assert list(atoms_of(whole)) == [whole] and operands_of(whole) == ("A | x", 0.5)


def test_inside_a_count_expansions_stand_side_by_side() -> None:
    """Two of four, not one of one; numbers stay numbers."""
    one = {"less": ["{t} | x", 0.5], "each": {"t": ["A", "B", "C"]}}
    whole = expand(claim("t", count_of=[one, {"greater": ["A | x", "A | y"]}], at_least=2))
    assert whole.at_least == 2 and whole.count_of == (
        Expression(less=("A | x", 0.5)),
        Expression(less=("B | x", 0.5)),
        Expression(less=("C | x", 0.5)),
        Expression(greater=("A | x", "A | y")),
    )


def test_an_outer_value_reaches_inner_statements() -> None:
    """Of each of two tasks, everything counts once: on how many tasks is A below all others?"""
    inner = {"less": ["A | {task}", "{other} | {task}"], "each": {"other": ["B", "C"]}}
    whole = expand(
        claim("t", count_of=[{"all_of": [inner], "each": {"task": ["x", "y"]}}], at_least=1)
    )
    assert whole.count_of is not None
    assert [[operands_of(atom) for atom in atoms_of(part)] for part in whole.count_of] == [
        [("A | x", "B | x"), ("A | x", "C | x")],
        [("A | y", "B | y"), ("A | y", "C | y")],
    ]


def test_a_count_for_each_value_has_to_hold_for_all() -> None:
    counted = [{"less": ["{t} | {c}", "R | {c}"], "each": {"t": ["A", "B"]}}]
    whole = expand(claim("t", count_of=counted, at_least=1, each={"c": ["x", "y"]}))
    assert whole.all_of is not None and len(whole.all_of) == 2
    for part, column in zip(whole.all_of, "xy", strict=True):
        assert part.at_least == 1 and part.count_of == (
            Expression(less=(f"A | {column}", f"R | {column}")),
            Expression(less=(f"B | {column}", f"R | {column}")),
        )


def test_one_value_of_each_is_counted_as_two_are() -> None:
    """Of one task of which two things are asked, there is one to count."""
    both = [{"less": ["A | {task}", "B | {task}"]}, {"less": ["A | {task}", "C | {task}"]}]
    whole = expand(claim("t", count_of=[{"all_of": both, "each": {"task": ["x"]}}], at_least=1))
    assert whole.count_of is not None and len(whole.count_of) == 1


def test_correlations_are_expanded_cell_by_cell() -> None:
    of = {"of": ["{t} | 0", "{t} | 1", "{t} | 2"], "by": [0, 0.5, "{t} | 1"], "sign": "negative"}
    whole = expand(claim("tau", correlation=of, each={"t": ["A", "B"]}))
    assert [operands_of(atom) for atom in atoms_of(whole)] == [
        ("A | 0", "A | 1", "A | 2", 0, 0.5, "A | 1"),
        ("B | 0", "B | 1", "B | 2", 0, 0.5, "B | 1"),
    ]


# Files
