"""Tie letters: worked examples, and the largest cliques of what is not different."""

from __future__ import annotations

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.errors import FaithbenchError
from faithbench.letters import letters, tie_groups


def matrix(size: int, different: set[tuple[int, int]]) -> list[list[float | None]]:
    return [
        [None if i == j else 0.01 if {(i, j), (j, i)} & different else 0.5 for j in range(size)]
        for i in range(size)
    ]


def test_by_hand() -> None:
    assert letters(matrix(3, set())) == ["a", "a", "a"]
    assert letters(matrix(3, {(0, 1), (0, 2), (1, 2)})) == ["a", "b", "c"]
    # The middle one is tied with both ends, which differ.
    assert letters(matrix(3, {(0, 2)})) == ["a", "ab", "b"]
    # Piepho's case: a chain of four, neighbours tied.
    assert letters(matrix(4, {(0, 2), (0, 3), (1, 3)})) == ["a", "ab", "bc", "c"]
    # Ties need not follow the means: the outer ones tied, the middle one apart.
    assert letters(matrix(3, {(0, 1), (1, 2)})) == ["a", "b", "a"]
    assert letters([]) == [] and letters([[None]]) == ["a"]


def test_no_test_is_no_difference_and_alpha_is_not_below_itself() -> None:
    assert letters([[None, None], [None, None]]) == ["a", "a"]
    assert letters([[None, 0.05], [0.05, None]]) == ["a", "a"]
    assert letters([[None, 0.05], [0.05, None]], alpha=0.051) == ["a", "b"]


def test_many_groups_keep_apart() -> None:
    size = 60
    found = letters(matrix(size, {(i, j) for j in range(size) for i in range(j)}))
    assert len(set(found)) == size and found[:3] == ["a", "b", "c"]
    assert found[25:27] == ["z", "A"] and found[51:53] == ["Z", "a2"]


def test_a_matrix_that_is_not_square() -> None:
    with pytest.raises(
        FaithbenchError, match=r"every pair of 2 explainers, found rows of \[2, 3\]"
    ):
        letters([[None, 1.0], [1.0, None, 1.0]])


@settings(max_examples=80, deadline=None)
@given(st.integers(1, 9), st.data())
def test_shared_letters_are_exactly_the_ties(size: int, data: st.DataObject) -> None:
    pairs = [(i, j) for j in range(size) for i in range(j)]
    different = data.draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    table = matrix(size, different)
    groups = tie_groups(table)
    tied = networkx.Graph()
    tied.add_nodes_from(range(size))
    tied.add_edges_from(pair for pair in pairs if pair not in different)
    assert set(groups) == {frozenset(clique) for clique in networkx.find_cliques(tied)}
    assert groups == sorted(set(groups), key=sorted) and 0 in groups[0]
    found = letters(table)
    for i, j in pairs:
        assert bool(set(found[i]) & set(found[j])) == ((i, j) not in different)
