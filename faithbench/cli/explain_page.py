"""The page that `explain --html` writes: heat maps side by side, and the score of every word."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from faithbench.data.tasks import Task
from faithbench.leaderboard.html.document import asset, document
from faithbench.run.heat_map import shaded_spans
from faithbench.run.one_text import Explanation

_LEGEND = (
    '<p class="scale small"><span class="token up s8">orange: speaks for the prediction</span>'
    '<span class="token down s8">blue: speaks against it</span>'
    '<span class="muted">the stronger the colour, the stronger the token, relative to the '
    "strongest of the text</span></p>"
)


def render_explanations(
    task: Task, model: str, explained: Sequence[tuple[str, Explanation]]
) -> str:
    """Return one self-contained page of what several explainers say of one text."""
    said = explained[0][1]
    cards = "\n".join(_card(label, one) for label, one in explained)
    body = (
        f'<main class="explained"><h1>{escape(task.title)}: {_isolated(said.said)}</h1>'
        f'<p class="muted">What the model {_isolated(model)} says, with probability '
        f"{said.probability:.3f}, and which words spoke for it.</p>{_LEGEND}"
        f'<div class="cards">\n{cards}\n</div></main>'
    )
    style = asset("base.css") + asset("explained.css")
    return document(title="faithbench explain", style=style, body=body, data={}, scripts=())


def _card(label: str, said: Explanation) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_isolated(word)}</th><td>{score:+.4g}</td></tr>'
        for word, score in said.words
    )
    return (
        f'<article class="card"><h3>{_isolated(label)}</h3><p class="words">{_words(said)}</p>'
        f"<details><summary>Scores of all {len(said.words)} words, strongest first</summary>"
        '<table><thead><tr><th scope="col">word</th><th scope="col">score</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></details></article>"
    )


def _words(said: Explanation) -> str:
    """Return the text with its tokens shaded, ten shades each way as in the leaderboard."""
    text, spans = shaded_spans(said.attribution.encoding, said.attribution.scores)
    parts, at = [], 0
    for start, end, strength in sorted(spans):
        # Some tokenizers cut inside a character: its tokens then share a place in the text.
        if start < at or start == end:
            continue
        parts.append(_lines(text[at:start]))
        shade = min(10, round(10 * abs(strength)))
        kind = f" {'up' if strength > 0 else 'down'} s{shade}" if shade else ""
        title = f"{strength:+.2f} of the strongest"
        parts.append(f'<span class="token{kind}" title="{title}">{_lines(text[start:end])}</span>')
        at = end
    return "".join([*parts, _lines(text[at:])])


def _lines(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _isolated(text: str) -> str:
    """Return text that cannot turn the direction of what stands beside it."""
    return f"<bdi>{escape(text)}</bdi>"
