"""Explain one text outside any task's data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape

from rich.console import Group
from rich.table import Table
from rich.text import Text

from faithbench.core.shown import Shown
from faithbench.core.types import Attribution, Encoding, Evidence, Example, Floats
from faithbench.explainers.selection import Selected
from faithbench.metrics.word_scores import words_of
from faithbench.models.encoding import collate, encode
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.attribute import attribute, seed_of
from faithbench.run.heat_map import heat_map, heat_map_html


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """A prediction in words, and the attribution that explains it; strongest words first.

    `explainer` is the label of the explainer.
    """

    said: str
    probability: float
    attribution: Attribution
    words: tuple[tuple[str, float], ...]
    explainer: str = ""

    def __rich__(self) -> Group:
        """Return the prediction, the text in colour, and its ten strongest words."""
        table = Table("word", "score")
        for word, score in self.words[:10]:
            table.add_row(Text(word), f"{score:+.4g}")
        return Group(
            Text.assemble((self.explainer, "bold"), f": {self._prediction}"),
            heat_map(self.attribution.encoding, self.attribution.scores),
            table,
        )

    def _repr_html_(self) -> str:
        """Return the same for a notebook."""
        words = "".join(
            f"<tr><td>{escape(word)}</td><td>{score:+.4g}</td></tr>"
            for word, score in self.words[:10]
        )
        return (
            f"<p><b>{escape(self.explainer)}</b>: {escape(self._prediction)}</p>"
            f"<p>{heat_map_html(self.attribution.encoding, self.attribution.scores)}</p>"
            "<table><thead><tr><th>word</th><th>score</th></tr></thead>"
            f"<tbody>{words}</tbody></table>"
        )

    @property
    def _prediction(self) -> str:
        return f"{self.said} (p = {self.probability:.3f})"


def explain_text(
    session: Session,
    evidence: Evidence,
    selected: Selected,
    text: str,
    text_b: str | None = None,
    seed: int = 0,
) -> Explanation:
    """Explain the model's prediction for one text."""
    model = session.model
    encoding = encode(model, Example("your text", text, 0, text_b), evidence)
    (prediction,) = predictions(session.engine, [encoding])
    seeds = [seed_of(seed, encoding.example.id)]
    batch = collate(model, [encoding], [prediction.target], seeds, seed)
    attribution = attribute(session, selected, batch)[0]
    session.drop_passes()
    words = word_scores(encoding, attribution.scores)
    return Explanation(
        said=model.kind.describe(model.labels, encoding, prediction.target),
        probability=math.exp(prediction.log_probability),
        attribution=attribution,
        words=words,
        explainer=selected.label,
    )


def word_scores(encoding: Encoding, scores: Floats) -> tuple[tuple[str, float], ...]:
    """Return each word as it is written and the sum of its tokens, strongest word first."""
    words, example = words_of(encoding, scores), encoding.example
    first = len(words.spans) - words.second
    texts = [example.text] * first + [example.text_b or ""] * words.second
    named = [
        (text[slice(*span)], float(score))
        for text, span, score in zip(texts, words.spans, words.scores, strict=True)
    ]
    return tuple(sorted(named, key=lambda item: -abs(item[1])))
