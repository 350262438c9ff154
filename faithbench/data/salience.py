"""Word salience: how much each token of a text stands out, without any model.

Four kinds. TextRank looks at the text alone; tf-idf and chi-squared at the terms of a training
split; uniform at nothing. SaLoss trains attention towards them ("Enjoy the Salience", EMNLP 2021,
section 3), and the explainer `salience` scores with them. Every function takes the tokens of one
text as strings, without special tokens, and returns one score per token. Tokens are word pieces:
section 3 of the paper says that each node is one, although its Appendix B speaks of words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Floats, Ints

KINDS = ("textrank", "tfidf", "chi2", "uniform")
LEARNED = ("tfidf", "chi2")
"""The kinds that need the statistics of a training split."""

FLOOR = 1e-3
"""The share of uniform salience in tf-idf and chi-squared, whose zeros would make a KL infinite."""

_CONVERGED = 1e-6
_RELEASED_WINDOW, _RELEASED_DAMPING, _RELEASED_STEPS, _RELEASED_CHANGE = 8, 0.85, 10, 1e-5


def salience_of(kind: str, tokens: Sequence[str], statistics: TermStatistics | None) -> Floats:
    """Score each token of a text by one of `KINDS`; the scores sum to 1.

    `statistics` are those of the training split, for the kinds that are `LEARNED`.
    """
    if kind == "textrank":
        return textrank(tokens)
    if kind == "uniform":
        return uniform(tokens)
    if kind not in KINDS:
        raise unknown("salience", kind, KINDS)
    if statistics is None:
        raise FaithbenchError(
            f"salience {kind!r} counts the terms of a training split, and none was given; "
            "give its statistics, or choose textrank or uniform"
        )
    return statistics.tfidf(tokens) if kind == "tfidf" else statistics.chi2(tokens)


def textrank(
    tokens: Sequence[str], *, window: int = 4, damping: float = 0.85, steps: int = 10
) -> Floats:
    """Score tokens by TextRank (SaLoss, Eq. 1 and Appendix B), normalised to sum 1.

    Nodes are the distinct tokens. Two of them are joined by one edge, however often and in
    whichever order they occur within `window` tokens of each other (neighbours: a window of 2); a
    token is never joined to itself. All nodes start at 1. There are at most `steps` steps, fewer
    once no node changes by 1e-6. A text of one distinct token has no edges, and is uniform.
    """
    nodes = _nodes(tokens)
    edges = _pairs(nodes, window)
    edges = np.maximum(edges, edges.T)
    np.fill_diagonal(edges, 0)
    scores = np.ones(len(edges))
    for _ in range(steps):
        before, scores = scores, _step(edges, scores, damping)
        if np.abs(scores - before).max() < _CONVERGED:
            break
    return _shares(scores[nodes])


def textrank_released(tokens: Sequence[str]) -> Floats:
    """Score tokens as the released code of SaLoss does, not normalised.

    Its window is 8, a pair of tokens seen in both orders weighs 2, and a token that recurs within
    the window is joined to itself. It means to take 10 steps, but stops as soon as the sum of the
    scores settles, which no step changes: after the second. For a text of one token it divides
    into uninitialised memory; here that token has no neighbours, and scores 1 - d = 0.15.
    """
    nodes = _nodes(tokens)
    pairs = _pairs(nodes, _RELEASED_WINDOW)
    edges = pairs + pairs.T - np.diag(np.diag(pairs))
    scores, total = np.ones(len(edges)), 0.0
    for _ in range(_RELEASED_STEPS):
        scores = _step(edges, scores, _RELEASED_DAMPING)
        before, total = total, float(scores.sum())
        if abs(total - before) < _RELEASED_CHANGE:
            break
    return np.asarray(scores[nodes])


def uniform(tokens: Sequence[str]) -> Floats:
    """Score all tokens alike, to sum 1."""
    return np.full(_count(tokens), 1 / _count(tokens))


@dataclass(frozen=True, eq=False)
class TermStatistics:
    """In how many texts of a labelled split each token occurs, and how this depends on the class.

    `chi_squared` is the statistic of the table of a token's presence by the classes.
    """

    texts: int
    holding: Mapping[str, int]
    chi_squared: Mapping[str, float]

    @classmethod
    def of(
        cls, texts: Iterable[Sequence[str]], labels: Sequence[str] | Sequence[int]
    ) -> TermStatistics:
        """Count the tokens of the texts, each of which has one label."""
        numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
        classes = [numbers[label] for label in labels]
        counts: dict[str, list[int]] = {}
        seen = 0
        for seen, tokens in enumerate(texts, start=1):
            if seen > len(labels):
                break
            for token in set(tokens):
                counts.setdefault(token, [0] * len(numbers))[classes[seen - 1]] += 1
        if seen != len(labels) or not seen:
            raise FaithbenchError(
                f"term statistics need one label per text, and at least one text; found "
                f"{'more than ' * (seen > len(labels))}{min(seen, len(labels))} texts and "
                f"{len(labels)} labels"
            )
        sizes = np.bincount(classes, minlength=len(numbers))
        present = np.array(list(counts.values()), dtype=np.int64).reshape(-1, len(numbers))
        return cls(
            seen,
            dict(zip(counts, present.sum(1).tolist(), strict=True)),
            dict(zip(counts, _chi_squared(present, sizes).tolist(), strict=True)),
        )

    def tfidf(self, tokens: Sequence[str]) -> Floats:
        """Score tokens by their count in the text times ln((1 + texts) / (1 + holding)) + 1.

        The ones stand for a text that holds every token, so that unseen ones have a score.
        The scores sum to 1, of which `FLOOR` is spread evenly.
        """
        count = _count(tokens)
        here = Counter(tokens)
        frequency = np.fromiter((here[token] for token in tokens), np.float64, count)
        holding = np.fromiter((self.holding.get(token, 0) for token in tokens), np.float64, count)
        return _floored(frequency * (np.log((1 + self.texts) / (1 + holding)) + 1))

    def chi2(self, tokens: Sequence[str]) -> Floats:
        """Score tokens by the chi-squared statistic of their presence and the class.

        A token that was never seen has 0. The scores sum to 1, of which `FLOOR` is spread evenly;
        where all are 0 they are uniform.
        """
        scores = (self.chi_squared.get(token, 0.0) for token in tokens)
        return _floored(np.fromiter(scores, np.float64, _count(tokens)))


def _count(tokens: Sequence[str]) -> int:
    """Return the number of tokens; refuse a text that has none."""
    if len(tokens) == 0:
        raise FaithbenchError("a text without tokens has no salience; leave empty texts out")
    return len(tokens)


def _nodes(tokens: Sequence[str]) -> Ints:
    """Number the distinct tokens by first occurrence: one number per token."""
    numbers: dict[str, int] = {}
    every = (numbers.setdefault(token, len(numbers)) for token in tokens)
    return np.fromiter(every, np.int64, _count(tokens))


def _pairs(nodes: Ints, window: int) -> Floats:
    """Return 1 for each ordered pair of nodes that occurs within the window, 0 for all others."""
    pairs = np.zeros((nodes.max() + 1, nodes.max() + 1))
    for distance in range(1, min(window, len(nodes))):
        pairs[nodes[:-distance], nodes[distance:]] = 1
    return pairs


def _step(edges: Floats, scores: Floats, damping: float) -> Floats:
    """Let every node share its score among its neighbours by the weights of the edges."""
    # A node without edges gives nothing away.
    given = scores / np.maximum(edges.sum(axis=0), 1)
    return np.asarray((1 - damping) + damping * (edges @ given))


def _chi_squared(present: Ints, sizes: Ints) -> Floats:
    """Return the statistic of each token's table: texts with and without it, by class."""
    texts = sizes.sum()
    share = present.sum(axis=1, keepdims=True) / texts
    expected = share * sizes
    # The difference of the two rows of a table is the same but for its sign, so that both are
    # summed at once: d^2 / (s c) + d^2 / ((1 - s) c) = d^2 / (s (1 - s) c).
    spread = expected * (1 - share)
    squares = (present - expected) ** 2
    # A token of every text has an empty row, and tells nothing of the class.
    return np.asarray(
        np.divide(squares, spread, out=np.zeros_like(spread), where=spread > 0).sum(1)
    )


def _shares(scores: Floats) -> Floats:
    return np.asarray(scores / scores.sum())


def _floored(scores: Floats) -> Floats:
    """Normalise to sum 1 with a floor; scores that are all 0 become uniform."""
    even = np.full(len(scores), 1 / len(scores))
    return np.asarray((1 - FLOOR) * _shares(scores) + FLOOR * even if scores.any() else even)
