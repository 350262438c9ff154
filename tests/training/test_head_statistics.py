"""What heads look at: counts done by hand, real attention, and one real parse."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Encoding, Example
from faithbench.explainers.passes.capture import run_capture
from faithbench.models.encoding import encode
from faithbench.training import head_statistics
from faithbench.training.head_statistics import (
    Arc,
    measure,
    spacy_parse,
    strongest_keys,
    tokens_of,
)
from tests.support.architectures import ARCHITECTURES

# Tokens: 1 good, 2 ##ly, 3 film, 4 is, 5 dull / 1 bad, 2 plot / 1 film, 2 good.
TEXTS = ["goodly film is dull", "bad plot", "film good"]
ARCS = [
    [Arc("amod", (0, 6), (7, 11), 1), Arc("nsubj", (7, 11), (15, 19), 2)],
    # The second arc points at a word that truncation cut off.
    [Arc("amod", (0, 3), (4, 8), 1), Arc("amod", (100, 104), (4, 8), -9)],
    [Arc("amod", (5, 9), (0, 4), -1)],
]
# One block of three heads; a target for every row, [CLS] and [SEP] included.
TARGETS = [
    [[[1, 3, 3, 2, 3, 4, 1], [1, 1, 3, 5, 4, 3, 1], [5, 2, 1, 3, 4, 5, 5]]],
    [[[1, 2, 1, 1], [1, 2, 2, 2], [1, 1, 2, 2]]],
    [[[1, 2, 1, 1], [1, 2, 2, 2], [1, 1, 2, 2]]],
]


def measured(model: Any, monkeypatch: pytest.MonkeyPatch, chunk: int) -> tuple[Any, Any, Any]:
    """Measure the made-up sentences; returns relations, positions and the progress."""

    def keys(_model: Any, encodings: Sequence[Encoding]) -> list[Any]:
        return [np.array(TARGETS[int(e.example.id)]) for e in encodings]

    def parse(texts: Iterable[str]) -> Iterable[list[Arc]]:
        return (ARCS[TEXTS.index(text)] for text in texts)

    steps: list[tuple[str, int, int]] = []
    monkeypatch.setattr(head_statistics, "strongest_keys", keys)
    examples = [Example(str(i), text, 0) for i, text in enumerate(TEXTS)]
    facts = measure(model, examples, parse, lambda *step: steps.append(step), chunk)
    return (*facts, steps)


@pytest.mark.parametrize("chunk", [1, 2, 32])
def test_relations_by_hand(chunk: int, tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    relations, _, _ = measured(tiny_model("bert"), monkeypatch, chunk)
    assert set(relations) == {"amod", "nsubj"}
    amod, nsubj = relations["amod"], relations["nsubj"]
    # Three pairs; two are one word to the right.
    assert (amod.pairs, amod.best_offset, amod.best_offset_share) == (3, 1, 0.666667)
    # Dependent to head. Head 0: good->film, bad->plot, good->film. Head 1: in the first
    # sentence only the second sub-token ##ly points at film, which does not count.
    assert amod.to_head == ((1.0, 0.333333, 0.0),)
    # Head to dependent. Head 0: film->##ly, plot->bad, film->good. Head 1: film->good.
    assert amod.to_dependent == ((1.0, 0.333333, 0.0),)
    assert (nsubj.pairs, nsubj.best_offset, nsubj.best_offset_share) == (1, 2, 1.0)
    assert nsubj.to_head == ((0.0, 1.0, 0.0),)
    assert nsubj.to_dependent == ((0.0, 1.0, 0.0),)


def test_positions_by_hand(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine rows vote, those of [CLS] and [SEP] not; attending to oneself is no offset."""
    _, positions, _ = measured(tiny_model("bert"), monkeypatch, 2)
    assert positions.rows == 9
    # Head 0: -1 five times, +1 three times, +2 once. Head 1: 0 four times, +1 three times.
    # Head 2: 0 seven times, -1 and +1 once each: of equals, the first of -1, 1, -2, ...
    assert positions.best_offset == ((-1, 1, -1),)
    assert positions.share == ((0.555556, 0.333333, 0.111111),)


def test_progress_is_told(tiny_model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = measured(tiny_model("bert"), monkeypatch, 2)[2]
    assert steps == [("reading heads", 2, 3), ("reading heads", 3, 3)]


@pytest.mark.parametrize(
    ("distances", "expected"),
    [((3, 3, 1), (3, 0.666667)), ((2, -1), (-1, 0.5)), ((-1, 1), (1, 0.5))],
    ids=["commonest", "then nearest", "then to the right"],
)
def test_best_offset(
    distances: tuple[int, ...],
    expected: tuple[int, float],
    tiny_model: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arcs = [[Arc("dobj", (0, 3), (4, 8), distance)] for distance in distances]
    monkeypatch.setattr(
        head_statistics, "strongest_keys", lambda _, encodings: [np.array([[[1, 2, 1, 1]]])]
    )
    examples = [Example(str(i), "bad plot", 0) for i in range(len(distances))]
    relations, _ = measure(
        tiny_model("bert"), examples, lambda _: iter(arcs), lambda *_: None, chunk=1
    )
    assert (relations["dobj"].best_offset, relations["dobj"].best_offset_share) == expected


def test_tokens_of_a_span(tiny_model: Any) -> None:
    model = tiny_model("bert")
    encoding = encode(model, Example("a", "goodly film", 0, "film is"), "text")
    assert [int(i) for i in np.flatnonzero(encoding.erasable)] == [1, 2, 3]
    assert tokens_of(encoding, (0, 6)).tolist() == [1, 2]
    assert tokens_of(encoding, (4, 6)).tolist() == [2]
    # The second text's film has the same characters, but is not this text's.
    assert tokens_of(encoding, (0, 11)).tolist() == [1, 2, 3]
    assert tokens_of(encoding, (6, 7)).tolist() == []


# Real attention


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_strongest_keys_are_words(architecture: str, tiny_model: Any, batch_of: Any) -> None:
    """The strongest key that is no special token and no padding, the same alone."""
    model = tiny_model(architecture)
    texts = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
    encodings = list(batch_of(model, texts).encodings)
    keys = strongest_keys(model, encodings)
    for text, encoding, targets in zip(texts, encodings, keys, strict=True):
        n = len(encoding.ids)
        assert targets.shape == (2, 4, n)
        assert encoding.erasable[targets].all()
        attentions = run_capture(model.eager(), batch_of(model, [text])).attentions
        for block in range(2):
            for head in range(4):
                rows = attentions[block][0, head].numpy()[:, 1 : n - 1]
                assert targets[block, head].tolist() == (rows.argmax(1) + 1).tolist()


@pytest.mark.parametrize(
    ("architecture", "said"),
    [("bilstm", "has no square attention"), ("cnn", "gives no attention matrices")],
)
def test_networks_without_heads_are_refused(
    architecture: str, said: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture)
    with pytest.raises(FaithbenchError, match=f"a {architecture} model {said}"):
        strongest_keys(model, list(batch_of(model, ["good film"]).encodings))


def test_specials_would_often_win(tiny_model: Any, batch_of: Any) -> None:
    """The masking above is not idle: unmasked, many rows point at [CLS] or [SEP]."""
    model = tiny_model("bert")
    attentions = run_capture(model.eager(), batch_of(model, ["good film"])).attentions
    best = np.stack([a[0].argmax(-1).numpy() for a in attentions])
    assert np.isin(best, [0, 3]).sum() > 5


# A real parse


def test_one_sentence_parsed() -> None:
    text = "The clever script quickly surprises tired viewers ."
    (arcs,) = spacy_parse([text])
    relations = {
        (a.relation, text[slice(*a.dependent)], text[slice(*a.head)], a.distance) for a in arcs
    }
    assert relations == {
        ("amod", "clever", "script", 1),
        ("nsubj", "script", "surprises", 2),
        ("advmod", "quickly", "surprises", 1),
        ("amod", "tired", "viewers", 1),
        ("dobj", "viewers", "surprises", -2),
    }
    assert len(arcs) == 5


def test_without_a_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, head_statistics.PARSER, None)
    with pytest.raises(FaithbenchError, match=r"pip install 'faithbench\[heads\]'"):
        next(iter(spacy_parse(["good film"])))
