"""Neighbours: exact, of the same class, ties to the earlier one; kept by what they depend on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.metrics import neighbours
from faithbench.metrics.neighbours import (
    NeighbourKey,
    document,
    kept_neighbours,
    lexical_neighbours,
    semantic_neighbours,
)

KEY = NeighbourKey("sum", ("a", "b", "c"), (0, 0, 1), "lexical")


def circle(degrees: list[float]) -> np.ndarray:
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def test_the_nearest_by_angle() -> None:
    found = semantic_neighbours(circle([0, 10, 25, 60, 180]), [0] * 5)
    assert found == ((1, 2, 3), (0, 2, 3), (1, 0, 3), (2, 1, 0), (3, 2, 1))


def test_only_the_same_class_counts() -> None:
    found = semantic_neighbours(circle([0, 10, 25, 60, 180]), ["x", "y", "x", "x", ("z", 1)])
    assert found == ((2, 3), (), (0, 3), (2, 0), ())


def test_ties_go_to_the_earlier_example() -> None:
    points = circle([0, 90, 90, 90, 90, 0])
    points[3] += 1e-8  # below the sixth decimal
    assert semantic_neighbours(points, [0] * 6)[0] == (5, 1, 2)
    assert lexical_neighbours(["a", "b", "a", "c a", "a", "a"], [0] * 6)[0] == (2, 4, 5)


def test_the_count_is_a_setting() -> None:
    found = semantic_neighbours(circle([0, 10, 25, 60]), [0] * 4, count=1)
    assert found == ((1,), (0,), (1,), (2,))


def test_the_nearest_by_words() -> None:
    texts = ["a good film", "a good plot", "dull", "a film", "the plot"]
    # From the first: 2/4 + 1/3 for "a good plot", 2/3 for "a film", nothing else shared.
    assert lexical_neighbours(texts, [0] * 5, count=2)[0] == (1, 3)
    assert lexical_neighbours(texts, [0] * 5)[0] == (1, 3, 2)


def test_the_released_mean_may_choose_another() -> None:
    texts = ["a b c d", "a b x y", "a"]
    # From the first: 2/6 + 1/5 against 1/4.
    assert lexical_neighbours(texts, [0] * 3, count=1)[0] == (1,)
    # The same, but the first sum is divided by four and the second by one.
    assert lexical_neighbours(texts, [0] * 3, count=1, released=True)[0] == (2,)


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = np.random.default_rng(0)
    points = draw.normal(size=(50, 5))
    points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    texts = [" ".join(f"w{i}" for i in draw.integers(9, size=6)) for _ in range(50)]
    classes = draw.integers(3, size=50).tolist()
    whole = semantic_neighbours(points, classes), lexical_neighbours(texts, classes)
    monkeypatch.setattr(neighbours, "_PAIRS", 40)
    assert (semantic_neighbours(points, classes), lexical_neighbours(texts, classes)) == whole


def test_the_order_of_examples_changes_no_neighbours() -> None:
    draw = np.random.default_rng(1)
    points = draw.normal(size=(60, 8))
    points = (points / np.linalg.norm(points, axis=1, keepdims=True)).astype(np.float32)
    # Numbers of words that differ make ties rare; those left are of examples that tie by chance.
    texts = [" ".join(f"w{i}" for i in draw.integers(40, size=10 + k)) for k in range(60)]
    classes = draw.integers(2, size=60)
    order = draw.permutation(60)
    for found, again in (
        (semantic_neighbours(points, classes), semantic_neighbours(points[order], classes[order])),
        (
            lexical_neighbours(texts, classes),
            lexical_neighbours([texts[i] for i in order], classes[order]),
        ),
    ):
        for place, index in enumerate(order):
            assert {int(order[i]) for i in again[place]} == set(found[index])


def test_both_texts_of_a_pair_are_compared() -> None:
    assert document(Example("e", "One.", 0)) == "One."
    assert document(Example("e", "One.", 0, "Two?")) == "One.\nTwo?"


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(FaithbenchError, match="3 examples by embeddings of shape"):
        semantic_neighbours(circle([0, 1]), [0] * 3)
    with pytest.raises(FaithbenchError, match="finite"):
        semantic_neighbours(np.array([[np.nan, 0.0]]), [0])
    with pytest.raises(FaithbenchError, match="2 texts of 1 classes"):
        lexical_neighbours(["a", "b"], [0])


def test_files_kept_before_are_still_found() -> None:
    """Names and order of a key's fields are part of its digest: to change one loses all files."""
    assert KEY.digest[:16] == "ee731ff6dabd9c6a"


def test_neighbours_are_kept(tmp_path: Path) -> None:
    found = kept_neighbours(tmp_path / "new", KEY, lambda: ((1,), (0,), ()))
    again = kept_neighbours(tmp_path / "new", KEY, lambda: pytest.fail("computed again"))
    assert found == again == ((1,), (0,), ())
    assert [p.name for p in (tmp_path / "new").iterdir()] == [
        f"neighbours-lexical-{KEY.digest[:16]}.json"
    ]


@pytest.mark.parametrize(
    "change",
    [
        {"data": "other"},
        {"ids": ("a", "b", "d")},
        {"classes": (0, 1, 1)},
        {"kind": "semantic"},
        {"encoder": "sum"},
        {"count": 2},
        {"released": True},
    ],
)
def test_another_key_is_another_file(tmp_path: Path, change) -> None:
    kept_neighbours(tmp_path, KEY, lambda: ((1,), (0,), ()))
    found = kept_neighbours(tmp_path, replace(KEY, **change), lambda: ((), (2,), (1,)))
    assert found == ((), (2,), (1,))


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        '{"key":"DIGEST"}',
        '{"key":"other","neighbours":[[1],[0],[]]}',
        '{"key":"DIGEST","neighbours":[[1],[0]]}',
        '{"key":"DIGEST","neighbours":[[1],[0],[3]]}',
        '{"key":"DIGEST","neighbours":[[0],[0],[]]}',
        '{"key":"DIGEST","neighbours":[[1,1],[0],[]]}',
        '{"key":"DIGEST","neighbours":[[1.0],[0],[]]}',
        '{"key":"DIGEST","neighbours":[[1],[[0]],[]]}',
        '{"key":"DIGEST","neighbours":[[1],[0],[true]]}',
        '{"key":"DIGEST","neighbours":[[1],[0],[',
    ],
)
def test_a_damaged_file_is_computed_again(tmp_path: Path, content: str) -> None:
    kept_neighbours(tmp_path, KEY, lambda: ((2,), (), ()))
    (path,) = tmp_path.iterdir()
    path.write_text(content.replace("DIGEST", KEY.digest))
    assert kept_neighbours(tmp_path, KEY, lambda: ((1,), (0,), ())) == ((1,), (0,), ())
    assert kept_neighbours(tmp_path, KEY, lambda: pytest.fail("not repaired")) == (
        (1,),
        (0,),
        (),
    )


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(FaithbenchError, match="cannot keep neighbours"):
        kept_neighbours(tmp_path / "file", KEY, lambda: ((), (), ()))
