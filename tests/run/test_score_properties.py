"""What never changes a metric's value, and inputs at the edges: short, long, all the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.core.types import Attribution
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import METRICS, case_metrics, find_metrics
from faithbench.models.engine import Engine
from faithbench.models.model import Model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.attribute import attribute
from faithbench.run.score import Scored, score
from tests.reference.protocol import TABLE, same, table
from tests.support.cases import attribution_of, bag_encoding, bag_model

ALL = [METRICS[name] for name in TABLE]
EVERY = [metric for metric in case_metrics(METRICS.values()) if not metric.needs_bounds]
# Metrics that only the order of the scores decides.
BY_ORDER = [
    METRICS[name] for name in TABLE if name not in ("delta_log_odds_neg", "tau_loo", "fi_entropy")
]
# Eighths add up exactly, so that values are the same to the last bit.
WEIGHTS = np.random.default_rng(0).permutation(np.arange(-12, 28)) / 8
Text = list[tuple[int, float]]

words = st.tuples(st.integers(0, 39), st.sampled_from([-1.0, -0.5, 0.0, 0.25, 0.5, 3.0]))
text_of = st.lists(words, min_size=1, max_size=14)
texts_of = st.lists(text_of, min_size=1, max_size=5)


@pytest.fixture(scope="module")
def bag(tokenizer: Any) -> Model:
    return bag_model(tokenizer, WEIGHTS, bias=-3 / 16)


def explained(model: Model, texts: list[Text]) -> tuple[list[Attribution], list[float]]:
    """Return the attributions of texts given as words with scores, and ln f of each."""
    encodings = [bag_encoding([w for w, _ in t], f"e{i}") for i, t in enumerate(texts)]
    full = predictions(Engine(model), encodings)
    found = [
        attribution_of(encoding, [s for _, s in text], said.target)
        for encoding, text, said in zip(encodings, texts, full, strict=True)
    ]
    return found, [said.log_probability for said in full]


def run(model: Model, texts: list[Text], metrics: Any = EVERY, budget: int = 2048) -> list[Scored]:
    found, full = explained(model, texts)
    return score(Engine(model, budget=budget), found, full, metrics, "mask")


# What changes nothing


@settings(deadline=None, max_examples=25)
@given(texts_of, st.randoms(use_true_random=False))
def test_the_order_of_examples(bag: Model, texts: list[Text], draw: Any) -> None:
    order = list(range(len(texts)))
    draw.shuffle(order)
    scored = run(bag, texts)
    assert run(bag, [texts[i] for i in order]) == [scored[i] for i in order]
    assert [run(bag, [text])[0] for text in texts] == scored


@settings(deadline=None, max_examples=25)
@given(texts_of, st.integers(1, 400))
def test_the_budget(bag: Model, texts: list[Text], budget: int) -> None:
    assert run(bag, texts, budget=budget) == run(bag, texts)


@pytest.mark.parametrize("operator", ["mask", "delete", "pad"])
def test_the_budget_of_a_transformer(operator: Any, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    texts = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]
    (chosen,) = find_explainers("input-x-gradient")
    said = predictions(Engine(model), batch_of(model, texts).encodings)
    found = attribute(Session(model), chosen, batch_of(model, texts, [p.target for p in said]))
    full = [p.log_probability for p in said]
    # The SaLoss code erases special tokens too: deleted, they would leave nothing to read.
    metrics = [m for m in EVERY if (m.name, operator) != ("flip_fraction:variant=saloss", "delete")]
    widest = score(Engine(model), found, full, metrics, operator)
    for budget in (1, 17, 64):
        narrow = score(Engine(model, budget=budget), found, full, metrics, operator)
        for one, other in zip(narrow, widest, strict=True):
            assert same(one.values, other.values, 1e-9)
            assert (one.rows_asked, one.distinct_rows) == (other.rows_asked, other.distinct_rows)


@settings(deadline=None, max_examples=25)
@given(texts_of, st.integers(2, 3))
def test_duplicates(bag: Model, texts: list[Text], copies: int) -> None:
    """The same attribution again costs no row, whether it is asked for together or later."""
    found, full = explained(bag, texts)
    engine = Engine(bag)
    scored = score(engine, found, full, EVERY, "mask")
    rows = engine.distinct
    assert score(engine, found * copies, full * copies, EVERY, "mask") == scored * copies
    assert engine.distinct == rows
    fresh = Engine(bag)
    assert score(fresh, found * copies, full * copies, EVERY, "mask") == scored * copies
    assert fresh.distinct == rows


@settings(deadline=None, max_examples=25)
@given(text_of)
def test_ties_go_to_the_earlier_token(bag: Model, text: Text) -> None:
    """Scores with ties are worth what their order, ties broken by place, is worth."""
    order = sorted(range(len(text)), key=lambda i: (-text[i][1], i))
    strict = [(text[i][0], -float(order.index(i))) for i in range(len(text))]
    assert run(bag, [text], BY_ORDER) == run(bag, [strict], BY_ORDER)


@settings(deadline=None, max_examples=25)
@given(text_of, st.sampled_from([0.125, 2.0, 1024.0]), st.integers(-3, 3))
def test_the_scale_of_scores(bag: Model, text: Text, factor: float, shift: int) -> None:
    """A factor changes no metric; a constant added, none that only the order decides."""
    scaled = [(word, s * factor) for word, s in text]
    (plain,), (other,) = run(bag, [text], ALL), run(bag, [scaled], ALL)
    assert same(other.values, plain.values, 1e-12)
    shifted = [(word, s + shift) for word, s in text]
    assert run(bag, [shifted], BY_ORDER) == run(bag, [text], BY_ORDER)


@settings(deadline=None, max_examples=25)
@given(text_of, st.floats(allow_nan=True), st.floats(allow_nan=True))
def test_scores_of_special_tokens(bag: Model, text: Text, first: float, last: float) -> None:
    """They may be anything: no metric of the protocol reads them."""
    (plain,), full = explained(bag, [text])
    every = plain.every_score.copy()
    every[[0, -1]] = first, last
    other = attribution_of(plain.encoding, every, plain.target)
    metrics = case_metrics(find_metrics("all"))
    engine = Engine(bag)
    assert score(engine, [other], full, metrics, "mask") == score(
        engine, [plain], full, metrics, "mask"
    )


# The edges


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 39), st.sampled_from([-1.0, 0.0, 2.5]))
def test_one_token(bag: Model, word: int, token_score: float) -> None:
    """It is the top 1% and the top 90%; only it and nothing else to compare it with."""
    (scored,) = run(bag, [[(word, token_score)]], ALL)
    sign = 1 if WEIGHTS[word] > 3 / 16 else -1
    full, blank = (1 / (1 + math.exp(-sign * (w - 3 / 16))) for w in (WEIGHTS[word], 0.0))
    fall = sign * WEIGHTS[word]
    expected = {
        "aopc": full - blank,
        "lodds": math.log(blank / full),
        "comprehensiveness": full - blank,
        "sufficiency": 0.0,
        "flip_fraction": 1.0,
        "delta_log_odds": fall,
        "delta_log_odds_neg": fall if token_score < 0 else None,
        "agreement": 1.0,
        "tau_loo": None,
        "fi_entropy": None,
    }
    assert same(scored.values, expected, 1e-12)
    # The blank row, and the full one that sufficiency and agreement ask for.
    assert scored.distinct_rows == 2


@settings(deadline=None, max_examples=25)
@given(st.lists(st.integers(0, 39), min_size=2, max_size=14), st.sampled_from([-2.0, 0.0, 0.5]))
def test_all_equal_scores(bag: Model, own: list[int], level: float) -> None:
    """The text's own order; nothing to agree with, and importance spread evenly or not there."""
    (flat,) = run(bag, [[(word, level) for word in own]], ALL)
    (falling,) = run(bag, [[(word, -float(i)) for i, word in enumerate(own)]], BY_ORDER)
    assert {m.name: flat.values[m.name] for m in BY_ORDER} == falling.values
    assert flat.values["tau_loo"] is None
    entropy = flat.values["fi_entropy"]
    assert entropy is None if level == 0 else entropy == pytest.approx(1.0)
    assert (flat.values["delta_log_odds_neg"] is None) == (level >= 0)


def test_an_input_of_512_tokens(tokenizer: Any) -> None:
    """510 words: all values equal those of the definitions, and the rows are as many as said."""
    draw = np.random.default_rng(1)
    own = draw.integers(0, 40, 510)
    scores = draw.normal(size=510).round(2)
    model = bag_model(tokenizer, WEIGHTS / 64, bias=1 / 16)
    encoding = bag_encoding(own.tolist())
    assert len(encoding.ids) == 512
    engine = Engine(model)
    (said,) = predictions(engine, [encoding])
    before = engine.distinct
    (scored,) = score(
        engine,
        [attribution_of(encoding, scores, said.target)],
        [said.log_probability],
        ALL,
        "delete",
    )
    g = WEIGHTS[own] / 64
    assert said.target == 1

    def oracle(erased: frozenset[int]) -> tuple[float, bool]:
        margin = 1 / 16 + g.sum() - sum(g[i] for i in erased)
        return 1 / (1 + math.exp(-margin)), margin > 0

    assert same(scored.values, table(scores.tolist(), oracle), 1e-9)
    assert scored.distinct_rows == len({*_distinct_sets(scores)})
    # Deleting either of two equal neighbours leaves the same row, which the engine runs once.
    assert engine.distinct - before < scored.distinct_rows


def _distinct_sets(scores: np.ndarray) -> list[frozenset[int]]:
    """List the erased sets of the table for a prediction that holds to the end."""
    n = len(scores)
    order = np.argsort(-scores, kind="stable").tolist()
    top = {k: frozenset(order[: max(1, (2 * k * n + 100) // 200)]) for k in range(1, 101)}
    lowest = np.argsort(scores, kind="stable")[: len(top[30])].tolist()
    return [
        *(top[k] for k in (1, *range(5, 101, 5))),
        *(frozenset(range(n)) - top[k] for k in (1, 5, 10, 20, 30, 50)),
        frozenset(lowest),
        *(frozenset([i]) for i in range(n)),
    ]
