"""Long documents in windows: what is read, what is erased, and how scores are folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Attribution, Example
from faithbench.data.windows import cut_windows, erased_rows, fold, parts_of, rows_of
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.predictions import evaluate_inputs, predictions

WORDS = [f"w{i % 10}" for i in range(150)]


def document(model: Any, words: int = 150, **options: Any) -> Any:
    return encode(model, Example("long", " ".join(WORDS[:words]), 0), long="window", **options)


def test_windows_by_hand() -> None:
    """Ten text tokens between two special ones, four to a window: neighbours share two."""
    fixed, text = np.array([0, 11]), np.arange(1, 11)
    with pytest.raises(FaithbenchError, match="takes 2 of the model's 6 tokens and leaves no room"):
        cut_windows(fixed, text, 6, "a")
    text = np.arange(1, 41)
    found = cut_windows(np.array([0, 41]), text, 22, "a")
    # Twenty to a window, ten shared: from 1, 11 and 21.
    assert [w.tolist() for w in found] == [
        [0, *range(1, 21), 41],
        [0, *range(11, 31), 41],
        [0, *range(21, 41), 41],
    ]
    # A text that does not divide ends with a window of full length.
    found = cut_windows(np.array([0, 36]), np.arange(1, 36), 22, "a")
    assert [w[1] for w in found] == [1, 11, 16]
    assert {len(w) for w in found} == {22}


def test_every_token_is_read_and_parts_are_what_the_model_takes(tiny_model: Any) -> None:
    model = tiny_model()
    whole = document(model)
    assert len(whole.ids) == 152 and whole.truncated == 0
    parts = parts_of(whole)
    assert len(parts) == len(whole.windows) > 1
    assert set(np.concatenate(whole.windows).tolist()) == set(range(152))
    for part, places in zip(parts, whole.windows, strict=True):
        assert len(part.ids) <= model.max_tokens and not part.windows
        assert part.ids[0] == whole.ids[0] and part.ids[-1] == whole.ids[-1]
        assert part.ids.tolist() == whole.ids[places].tolist()
        assert [part.spans[i] for i in (1, 5)] == [whole.spans[places[i]] for i in (1, 5)]


def test_a_short_text_has_no_windows(tiny_model: Any) -> None:
    model = tiny_model()
    short = document(model, 10)
    assert short.windows == () and parts_of(short) == (short,)
    assert rows_of(short)[0][0].tolist() == encode(model, short.example).ids.tolist()


def test_the_second_text_is_in_every_window(tiny_model: Any) -> None:
    model = tiny_model()
    example = Example("pair", " ".join(WORDS), 0, "good film")
    whole = encode(model, example, "text", "window")
    query = np.flatnonzero(whole.types == 1).tolist()
    assert len(query) == 3 and all(set(query) <= set(w.tolist()) for w in whole.windows)
    assert not whole.erasable[query].any()


def test_the_answer_is_the_mean_of_the_windows(tiny_model: Any) -> None:
    model = tiny_model()
    whole, short = document(model), document(model, 10)
    engine = Engine(model)
    alone = np.exp(engine.log_probabilities([(p.ids, p.types) for p in parts_of(whole)]))
    said = predictions(engine, [short, whole, short])
    assert said[1].target == int(alone.mean(axis=0).argmax())
    assert np.exp(said[1].log_probability) == pytest.approx(alone.mean(axis=0).max(), abs=1e-12)
    assert said[0] == said[2] == predictions(engine, [short])[0]


def test_a_token_is_erased_from_every_window_that_reads_it(tiny_model: Any) -> None:
    model = tiny_model()
    whole = document(model)
    twice = int(np.intersect1d(*[w[1:-1] for w in whole.windows[:2]])[0])
    keep = np.ones(152, dtype=bool)
    keep[twice] = False
    rows = erased_rows(whole, keep, "mask", 4)
    masked = [int((ids == 4).sum()) for ids, _ in rows]
    assert masked[:2] == [1, 1] and sum(masked) == sum(twice in w for w in whole.windows)
    shorter = erased_rows(whole, keep, "delete", 0)
    assert len(shorter[0][0]) == len(rows[0][0]) - 1
    engine = Engine(model)
    (prediction,) = predictions(engine, [whole])
    answers = evaluate_inputs(engine, [rows], [whole], [prediction.target])
    by_hand = np.exp(engine.log_probabilities(list(rows)))[:, prediction.target].mean()
    assert answers.probability[0] == pytest.approx(by_hand, abs=1e-12)


def test_scores_are_averaged_where_windows_overlap(tiny_model: Any) -> None:
    model = tiny_model()
    whole, short = document(model), document(model, 10)
    found = [Attribution(short, 1, np.arange(12.0), 1, 2, 3)]
    for number, part in enumerate(parts_of(whole)):
        scores = np.full(len(part.ids), float(number))
        found.append(Attribution(part, 1, scores, 1, 2, 3, elsewhere=0.25))
    first, second = fold([short, whole], found)
    assert first is found[0]
    readers = [[n for n, w in enumerate(whole.windows) if place in w] for place in range(152)]
    assert second.every_score.tolist() == [float(np.mean(r)) for r in readers]
    count = len(whole.windows)
    assert (second.seconds, second.forwards, second.backwards) == (count, 2 * count, 3 * count)
    assert (first.elsewhere, second.elsewhere) == (0.0, 0.25 * count)
    assert second.encoding is whole and second.gap is None


def test_costs_that_are_not_known_stay_so(tiny_model: Any) -> None:
    whole = document(tiny_model())
    found = [
        Attribution(part, 1, np.zeros(len(part.ids)), 1, None, None, elsewhere=None)
        for part in parts_of(whole)
    ]
    (folded,) = fold([whole], found)
    assert (folded.forwards, folded.backwards, folded.elsewhere) == (None, None, None)
