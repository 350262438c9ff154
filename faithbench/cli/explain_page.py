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
    """Return one self-contained page that shows the explanations of one text side by side."""
    first = explained[0][1]  # all explain the same prediction
    cards = "\n".join(_card(label, explanation) for label, explanation in explained)
    body = (
        f'<main class="explained"><h1>{escape(task.title)}: {_isolated(first.said)}</h1>'
        f'<p class="muted">What the model {_isolated(model)} says, with probability '
        f"{first.probability:.3f}, and which words spoke for it.</p>{_LEGEND}"
        f'<div class="cards">\n{cards}\n</div></main>'
    )
    style = asset("base.css") + asset("explained.css")
    return document(title="faithbench explain", style=style, body=body, data={}, scripts=())


def _card(label: str, explanation: Explanation) -> str:
    rows = "".join(
        f'<tr><th scope="row">{_isolated(word)}</th><td>{score:+.4g}</td></tr>'
        for word, score in explanation.words
    )
    return (
        f'<article class="card"><h3>{_isolated(label)}</h3>'
        f'<p class="words">{_shaded_text(explanation)}</p>'
        f"<details><summary>Scores of all {len(explanation.words)} words, strongest first</summary>"
        '<table><thead><tr><th scope="col">word</th><th scope="col">score</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></details></article>"
    )


def _shaded_text(explanation: Explanation) -> str:
    """Return the text with its tokens shaded, ten shades each way as in the leaderboard."""
    text, spans = shaded_spans(explanation.attribution.encoding, explanation.attribution.scores)
    parts, end_of_last = [], 0
    for start, end, strength in sorted(spans):
        # Some tokenizers cut inside a character: its tokens then share a place in the text.
        if start < end_of_last or start == end:
            continue
        parts.append(_with_breaks(text[end_of_last:start]))
        shade = min(10, round(10 * abs(strength)))
        style = f" {'up' if strength > 0 else 'down'} s{shade}" if shade else ""
        title = f"{strength:+.2f} of the strongest"
        parts.append(
            f'<span class="token{style}" title="{title}">{_with_breaks(text[start:end])}</span>'
        )
        end_of_last = end
    return "".join([*parts, _with_breaks(text[end_of_last:])])


def _with_breaks(text: str) -> str:
    return escape(text).replace("\n", "<br>")


def _isolated(text: str) -> str:
    """Return text whose marks of direction cannot reorder the text next to it."""
    return f"<bdi>{escape(text)}</bdi>"
