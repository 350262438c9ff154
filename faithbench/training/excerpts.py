"""Short lessons out of long ones: the sentences of a rationale, with some around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from faithbench.rationales import overlaps
from faithbench.sentences import sentence_spans
from faithbench.types import Example


def with_excerpts(
    examples: Sequence[Example], reaches: Sequence[int], *, alone: bool = False
) -> Iterator[Example]:
    """Yield each example, then its excerpts; those that are no shorter are left out.

    Where a document is long and evidence rare, a few hundred of them do not show a small
    encoder what to look for; excerpts do, and cost little. With excerpts `alone`, documents are
    left out, but for those that have none.
    """
    for example in examples:
        texts: set[str] = set()
        if not alone or not excerpt(example, min(reaches, default=0)):
            yield example
            texts.add(example.text)
        for reach in reaches:
            text = excerpt(example, reach)
            if text and text not in texts:
                texts.add(text)
                yield replace(example, id=f"{example.id}#{reach}", text=text, rationale=None)


def excerpt(example: Example, reach: int) -> str:
    """Return the sentences that hold a rationale, and `reach` sentences before and after each."""
    spans = sentence_spans(example.text)
    marked = overlaps(spans, example.rationale or ()).nonzero()[0].tolist()
    wanted = {i for place in marked for i in range(place - reach, place + reach + 1)}
    return " ".join(
        example.text[start:end].strip() for i, (start, end) in enumerate(spans) if i in wanted
    )
