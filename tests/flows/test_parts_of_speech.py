"""A small version of benchmarks/parts_of_speech.py: shares by hand, and two models compared."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.data.dataset import load_dataset
from faithbench.models.encoding import encode
from tests.support.benchmarks import load_benchmark
from tests.support.builders import make_task, put
from tests.support.jobs import TEXTS

TAGGED = [((0, 6), "ADJ"), ((7, 11), "NOUN"), ((12, 14), "AUX"), ((15, 19), "ADJ")]


@pytest.fixture(scope="module")
def study() -> ModuleType:
    return load_benchmark("parts_of_speech")


def test_a_tag_has_the_mean_share_of_its_words(study: ModuleType, tiny_model: Any) -> None:
    encoding = encode(tiny_model(), Example("a", "goodly film is dull", 0))
    # good ##ly film is dull: the pieces of a word are added, and signs do not count.
    scores = np.array([1.0, -2.0, 4.0, 0.0, 1.0])
    found = study.profile_of([encoding], [scores], [TAGGED])
    assert found.words == Counter({"ADJ": 2, "NOUN": 1, "AUX": 1})
    (shares,) = found.shares
    assert shares == {"ADJ": pytest.approx((3 / 8 + 1 / 8) / 2), "NOUN": 0.5, "AUX": 0}


def test_words_that_were_cut_off_and_texts_without_importance_have_no_share(
    study: ModuleType, tiny_model: Any
) -> None:
    encoding = encode(tiny_model(), Example("a", "goodly film", 0))
    found = study.profile_of([encoding] * 2, [np.ones(3), np.zeros(3)], [TAGGED] * 2)
    assert found.shares == ({"ADJ": pytest.approx(2 / 3), "NOUN": pytest.approx(1 / 3)}, {})
    assert found.words == {"ADJ": 1, "NOUN": 1}


def test_the_table_compares_each_model_with_the_first(study: ModuleType) -> None:
    # Eight texts: nouns gain in all of them, verbs in every other, and one word is in two.
    plain = [{"NOUN": 0.2, "VERB": 0.1}] * 6 + [{"NOUN": 0.2, "VERB": 0.1, "INTJ": 0.5}] * 2
    other = [
        {**shares, "NOUN": 0.2 + (index + 1) / 100, "VERB": 0.15 if index % 2 else 0.05}
        for index, shares in enumerate(plain)
    ]
    words = Counter({"VERB": 8, "NOUN": 16, "INTJ": 2})
    table = study.table_of(
        {"A": study.Profile(tuple(plain), words), "B": study.Profile(tuple(other), words)}
    )
    _head, _line, *lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()
    ]
    # The signed-rank test of eight rises is 2 / 2^8; Holm counts two tests, of tags in six texts.
    assert lines == [
        ["NOUN", "16", "20.00%", "24.50%", "+4.50", ".0156"],
        ["VERB", "8", "10.00%", "10.00%", "+0.00", "1.0000"],
        ["INTJ", "2", "50.00%", "50.00%", "+0.00", "-"],
    ]


def test_one_model_has_no_tests(study: ModuleType) -> None:
    alone = study.table_of({"A": study.Profile(({"NOUN": 0.25},), Counter({"NOUN": 4}))})
    assert alone.splitlines()[0].split() == ["|", "tag", "|", "words", "|", "A", "|"]
    assert alone.splitlines()[2].split() == ["|", "NOUN", "|", "4", "|", "25.00%", "|"]


def test_texts_are_tagged_and_explained(study: ModuleType, tmp_path: Path, tiny_model: Any) -> None:
    rows = [{"id": f"e{i}", "text": t, "label": i % 2} for i, t in enumerate(TEXTS[:6])]
    put(tmp_path, rows)
    task = make_task(labels=["class 0", "class 1"])
    data = load_dataset(task, folder=tmp_path)
    profiles = study.measure(
        task, {"one": tiny_model(), "two": tiny_model()}, "salience:kind=uniform", data=data
    )
    assert profiles["one"] == profiles["two"]
    good = next(i for i, example in enumerate(data.examples) if example.text == "good film")
    assert profiles["one"].shares[good] == {"ADJ": 0.5, "NOUN": 0.5}
    assert "| NOUN" in study.table_of(profiles)


def test_pairs_are_refused(study: ModuleType, tmp_path: Path, tiny_model: Any) -> None:
    put(tmp_path, [{"id": "e", "text_a": "good", "text_b": "a film", "label": 0}])
    task = make_task(labels=["class 0", "class 1"], kind="pair", evidence="both", hub=None)
    data = load_dataset(task, folder=tmp_path)
    with pytest.raises(FaithbenchError, match="task mini explains both"):
        study.measure(task, {"one": tiny_model()}, "first-tokens", data=data)
