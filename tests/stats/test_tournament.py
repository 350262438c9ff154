"""Tables of explainers: all pairs tested, Holm over them, ties and the best."""

from __future__ import annotations

from itertools import pairwise

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.core.errors import FaithbenchError
from faithbench.stats.pairwise import holm
from faithbench.stats.signed_rank import signed_rank
from faithbench.stats.tournament import Tournament, letters, tie_groups, tournament

LOW = [0.01 * i for i in range(8)]
MIDDLE = [v + (0.001 * i if i % 2 else -0.001 * i) for i, v in enumerate(LOW)]
HIGH = [v + 1 + 0.01 * i for i, v in enumerate(LOW)]


def test_by_hand() -> None:
    """High is above both on all 8 examples: p = 2 / 256 each, and 3 or 2 times that by Holm."""
    found = tournament({"low": LOW, "high": HIGH, "middle": MIDDLE}, higher_is_better=True)
    assert found.order == ("high", "middle", "low")
    assert [(d.first, d.second) for d in found.duels] == [
        ("high", "middle"), ("high", "low"), ("middle", "low"),
    ]  # fmt: skip
    assert [d.adjusted for d in found.duels[:2]] == pytest.approx([6 / 256, 6 / 256])
    assert found.duels[0].test.effect == found.duels[1].test.effect == 1.0
    assert found.letters == {"high": "a", "middle": "b", "low": "b"}
    assert (found.best, found.ties, found.tested) == ("high", (), 3)


def test_direction_decides_who_is_best() -> None:
    table = {"low": LOW, "high": HIGH, "middle": MIDDLE}
    down = tournament(table, higher_is_better=False)
    assert down.order == ("low", "middle", "high") and down.best == "low"
    assert down.ties == ("middle",) and down.letters == {"low": "a", "middle": "a", "high": "b"}
    neither = tournament(table, higher_is_better=None)
    assert neither.order == ("high", "middle", "low")
    assert (neither.best, neither.ties) == (None, ()) and neither.letters["high"] == "a"


def test_who_wins_by_ranks_is_not_outshone_by_a_mean() -> None:
    """One example makes the best mean; on all the others it is the lower of the two."""
    lucky, steady = [100.0] + [0.0] * 19, [1.0 + i / 100 for i in range(20)]
    for sign in (1, -1):
        table = {"lucky": [sign * v for v in lucky], "steady": [sign * v for v in steady]}
        found = tournament({**table, "low": [-sign * 50.0 - v for v in steady]}, sign == 1)
        assert found.best == "lucky" and found.letters["lucky"] != found.letters["steady"]
        assert found.duels[0].test.effect * sign < 0
        assert found.ties == ("steady",)


def test_no_test_is_a_tie_and_does_not_count() -> None:
    found = tournament({"b": HIGH, "a": HIGH, "c": LOW}, higher_is_better=True)
    # Equal means are ordered by name; Holm is over two tests, not three.
    assert found.order == ("a", "b", "c") and found.tested == 2
    assert found.duels[0].adjusted is None
    assert found.duels[0].test.reason == "all differences are zero"
    assert [d.adjusted for d in found.duels[1:]] == pytest.approx([4 / 256, 4 / 256])
    assert found.ties == ("b",) and found.letters == {"a": "a", "b": "a", "c": "b"}
    short = tournament({"a": [0.0] * 5, "b": [1.0, 2, 3, 4, 5]}, higher_is_better=True)
    assert short.best == "b" and short.ties == ("a",) and short.tested == 0


def test_who_has_no_value_has_no_letter() -> None:
    found = tournament({"none": [None] * 8, "low": LOW, "high": HIGH}, higher_is_better=True)
    assert found.order == ("high", "low", "none") and found.means["none"] is None
    assert found.letters == {"high": "a", "low": "b", "none": ""} and found.ties == ()
    assert {d.test.reason for d in found.duels if d.second == "none"} == {"only 0 pairs"}
    empty = tournament({"a": [None], "b": [None]}, higher_is_better=True)
    assert empty.best is None and empty.letters == {"a": "", "b": ""}
    assert tournament({}, True) == Tournament({}, (), True, 0.05, {}, None, ())
    alone = tournament({"a": [0.5]}, True)
    assert (alone.best, alone.ties, alone.letters) == ("a", (), {"a": "a"})


def test_zero_one_values_go_to_mcnemar() -> None:
    ones, mixed = [1.0] * 10, [1.0] * 3 + [0.0] * 7
    found = tournament({"ones": ones, "mixed": mixed, "share": [0.5] * 10}, True)
    names = {frozenset((d.first, d.second)): d.test.name for d in found.duels}
    assert names[frozenset(("ones", "mixed"))] == "McNemar"
    assert names[frozenset(("ones", "share"))] == names[frozenset(("mixed", "share"))]
    duel = next(d for d in found.duels if {d.first, d.second} == {"ones", "mixed"})
    assert duel.test.p == pytest.approx(2 / 128)


def test_lengths_must_agree() -> None:
    with pytest.raises(FaithbenchError, match="found 2 of a, 3 of b; give the values of the same"):
        tournament({"a": [0.0, 1.0], "b": [0.0, 1.0, 2.0]}, True)


@settings(max_examples=25, deadline=None)
@given(st.integers(2, 6), st.integers(14, 70), st.integers(0, 10_000))
def test_a_tournament_is_its_parts(explainers: int, n: int, seed: int) -> None:
    """Holm of all pairs; blind to the order of examples and of explainers."""
    rng = np.random.default_rng(seed)
    shift = rng.integers(0, 3, size=(explainers, 1)) / 4
    values = (rng.integers(0, 12, size=(explainers, n)) / 12 + shift).round(9)
    table = {f"e{i}": row.tolist() for i, row in enumerate(values)}
    found = tournament(table, True)
    alone = [signed_rank(table[d.first], table[d.second]) for d in found.duels]
    expected = iter(holm([t.p for t in alone if t.p is not None]))
    for duel, test in zip(found.duels, alone, strict=True):
        assert duel.adjusted == (None if test.p is None else pytest.approx(next(expected)))
    pairs = sorted((d.test.p, d.adjusted) for d in found.duels if d.test.p is not None)
    assert all(p <= a <= 1 for p, a in pairs)
    assert all(x[1] <= y[1] * (1 + 1e-12) for x, y in pairwise(pairs))
    order, names = rng.permutation(n), list(table)[::-1]
    moved = tournament({name: values[int(name[1:])][order].tolist() for name in names}, True)
    assert (moved.order, moved.best, moved.ties) == (found.order, found.best, found.ties)
    assert moved.letters == found.letters
    for one, other in zip(found.duels, moved.duels, strict=True):
        assert other.adjusted == pytest.approx(one.adjusted, rel=1e-9)


def matrix(size: int, different: set[tuple[int, int]]) -> list[list[float | None]]:
    return [
        [None if i == j else 0.01 if {(i, j), (j, i)} & different else 0.5 for j in range(size)]
        for i in range(size)
    ]


def test_by_hand_letters() -> None:
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


def test_means_are_tested_where_order_says_nothing() -> None:
    """One large fall and many tiny rises: ranks prefer the first, means do not."""
    table = {"a": [0.0] + [0.01] * 19, "b": [1.0] + [0.0] * 19}
    by_rank, by_mean = tournament(table, True), tournament(table, True, by_mean=True)
    assert by_rank.order == by_mean.order == ("b", "a")
    assert by_rank.duels[0].test.name == "signed-rank" and by_rank.duels[0].test.effect < 0
    assert by_mean.duels[0].test.name == "paired t" and by_mean.duels[0].test.effect > 0
