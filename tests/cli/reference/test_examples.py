"""Heat maps of reference pages, made on the bundled model."""

from __future__ import annotations

import re

from faithbench.cli.reference.examples import OBJECTIVES, SENTENCE, heat_map_of
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.training.objectives import known_objectives


def words_of(html: str) -> dict[str, float]:
    found = re.findall(r'<span[^>]* title="([+-][\d.]+)">([^<]*)</span>', html)
    return {word: float(score) for score, word in found}


def test_the_human_map_shows_the_rationale() -> None:
    html = heat_map_of("human")
    assert html.startswith(
        '<figure class="heat-map"><figcaption><code>human</code>: positive (p = '
    )
    (example,) = (
        e for e in load_dataset(load_task("sst2"), source="bundled").examples if e.id == SENTENCE
    )
    assert example.rationale
    marked = " ".join(example.text[start:end] for start, end in example.rationale)
    # A word may be several tokens; together they are the words that people marked.
    shown = "".join(word for word, score in words_of(html).items() if score > 0)
    assert shown == marked.replace(" ", "")


def test_every_objective_has_an_example() -> None:
    assert set(OBJECTIVES) == {one.name for one in known_objectives() if not one.package}
