"""Rationales on words and tokens: exact, and counted where a model does not read them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from faithbench.core.types import Example, Span
from faithbench.data.dataset import load_dataset
from faithbench.data.rationales import (
    Coverage,
    overlaps,
    rationale_coverage,
    rationale_tokens,
)
from faithbench.data.tasks import load_task
from faithbench.data.words import word_spans
from faithbench.models.encoding import encode
from faithbench.models.model import Model, load_model

REAL = Path(__file__).parents[3] / "shared" / "data"
real = pytest.mark.skipif(not REAL.is_dir(), reason="the real data are not on this machine")
# Spans, and those that an annotator began or ended inside a word.
SPANS = {
    "sst2": (17451, 0),
    "evinf": (1024, 17),
    "multirc": (30082, 0),
    "movies": (17442, 0),
    "imdb_r": (15397, 0),
    "hatexplain": (8307, 0),
}


def test_words_that_share_a_character_are_marked() -> None:
    example = Example("a", "A fine, warm film.", 1, rationale=((2, 6), (9, 17)))
    words = [example.text[start:end] for start, end in word_spans(example.text)]
    assert words == ["A", "fine", ",", "warm", "film", "."]
    marked = overlaps(word_spans(example.text), example.rationale or ())
    # The second span begins inside "warm".
    assert marked.tolist() == [False, True, False, True, True, False]
    assert not overlaps(word_spans("None here"), ()).any()
    assert overlaps([], [(0, 2)]).tolist() == []


def hulls(pieces: Sequence[Span], spans: Sequence[Span]) -> tuple[Span | None, ...]:
    """Return each span as the pieces in it have it, from the first one's start to the last's end.

    A span that begins and ends with a piece comes back as it is, apart from white space at its
    edges; one that ends inside a piece comes back with the whole of it, and one without any piece
    as None.
    """
    starts = np.array([start for start, _ in pieces], dtype=np.int64)
    ends = np.array([end for _, end in pieces], dtype=np.int64)
    widened: list[Span | None] = []
    for start, end in spans:
        first = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(starts, end, side="left")) - 1
        widened.append((int(starts[first]), int(ends[last])) if first <= last else None)
    return tuple(widened)


def test_spans_are_read_back() -> None:
    pieces = word_spans("A fine, warm film.")
    spans = [(2, 6), (1, 8), (9, 17), (6, 7), (0, 18), (7, 8)]
    assert hulls(pieces, spans) == ((2, 6), (2, 7), (8, 17), (6, 7), (0, 18), None)


def test_tokens_of_the_text_alone_are_marked(tiny_model) -> None:
    model = tiny_model()
    example = Example("a", "goodly film the plot", 0, "goodly plot", rationale=((0, 6), (16, 20)))
    encoding = encode(model, example)
    tokens = model.tokenizer.convert_ids_to_tokens(encoding.ids.tolist())
    marked = rationale_tokens(encoding)
    assert [token for token, there in zip(tokens, marked, strict=True) if there] == [
        "good",
        "##ly",
        "plot",
    ]
    assert not marked[tokens.index("[SEP]") :].any(), "the second text is not"
    assert rationale_coverage([encoding]) == Coverage(whole=2)


def test_what_truncation_takes_away_is_counted(tiny_model) -> None:
    model = tiny_model()
    # 64 tokens at most: 62 words, each of two characters and a space.
    text = " ".join(["is"] * 80)
    spans = ((0, 5), (180, 185), (183, 191), (186, 188), (200, 239))
    encoding = encode(model, Example("a", text, 0, rationale=spans))
    assert encoding.truncated == 18 and max(end for _, end in encoding.spans) == 185
    coverage = rationale_coverage([encoding])
    assert coverage == Coverage(whole=2, cut=1, lost=2)
    assert str(coverage + Coverage(lost=1)) == "6 spans: 2 read whole, 1 cut, 3 not read"
    whole = encode(model, Example("b", "good film", 0, rationale=((0, 4),)))
    assert rationale_coverage([encoding, whole]) == Coverage(3, 1, 2)
    assert rationale_coverage([encode(model, Example("c", "good film", 0))]) == Coverage()


def trimmed(text: str, span: Span) -> Span:
    part = text[slice(*span)]
    return span[0] + len(part) - len(part.lstrip()), span[1] - len(part) + len(part.rstrip())


def read_back(example: Example, pieces: list[Span]) -> list[bool]:
    """Return for each span whether the pieces in it are its own text exactly."""
    spans = example.rationale or ()
    exact = []
    for span, hull in zip(spans, hulls(pieces, spans), strict=True):
        start, end = trimmed(example.text, span)
        assert hull is not None and hull[0] <= start < end <= hull[1], "nothing is lost"
        exact.append(hull == (start, end))
    return exact


@real
@pytest.mark.parametrize("name", SPANS)
def test_every_real_span_maps_back_to_its_own_text(name: str) -> None:
    task = load_task(name)
    assert task.folder is not None
    exact: list[bool] = []
    for split in task.folder.splits:
        for example in load_dataset(task, split=split, folder=REAL).examples:
            exact += read_back(example, list(word_spans(example.text)))
    assert (len(exact), exact.count(False)) == SPANS[name]


@pytest.fixture(scope="module")
def model() -> Model:
    return load_model("bundled:sst2", labels=("negative", "positive"), device="cpu")


@real
@pytest.mark.parametrize("name", SPANS)
def test_real_spans_on_tokens(name: str, model: Model) -> None:
    task = load_task(name)
    data = load_dataset(task, folder=REAL, limit=60)
    counted = Coverage()
    for example in data.examples:
        encoding = encode(model, example, task.evidence)
        marked = rationale_tokens(encoding)
        counted += rationale_coverage([encoding])
        first = len(word_spans(example.text))
        inside = np.flatnonzero((encoding.words >= 0) & (encoding.words < first))
        pieces = [encoding.spans[token] for token in inside]
        end = max(end for _, end in pieces)
        spans = example.rationale or ()
        read = tuple(span for span in spans if trimmed(example.text, span)[1] <= end)
        assert all(read_back(Example("r", example.text, 0, rationale=read), pieces))
        there = {encoding.spans[token] for token in np.flatnonzero(marked)}
        assert all(any(a < d and c < b for c, d in spans) for a, b in there)
    total = sum(len(example.rationale or ()) for example in data.examples)
    assert counted.whole + counted.cut + counted.lost == total


def test_made_spans_on_the_bundled_tokens(model: Model) -> None:
    text = "It's a well-made, un\u2019believably tender café film — 100% fine."
    parts = ("It's", "well-made", "un\u2019believably", "café", "100% fine")
    spans = tuple((text.index(part), text.index(part) + len(part)) for part in parts)
    example = Example("a", text, 1, rationale=spans)
    encoding = encode(model, example)
    pieces = [span for span in encoding.spans if span[0] < span[1]]
    assert read_back(example, pieces) == [True] * 5
    assert rationale_coverage([encoding]) == Coverage(whole=5)
