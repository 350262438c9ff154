"""Rows of the hub under our names, in each form."""

from __future__ import annotations

from typing import Any

import pytest

from faithbench.errors import FaithbenchError
from faithbench.hub_forms import our_rows
from faithbench.tasks import load_task
from tests.builders import make_task


def rows(task: Any, found: dict[str, Any], names: list[str] | None = None) -> list[dict[str, Any]]:
    return list(our_rows(task, "test", 3, found, names or []))


def test_snli_leaves_out_pairs_without_a_label() -> None:
    task = load_task("snli")
    pair = {"premise": "A dog runs.", "hypothesis": "It moves."}
    assert [row["label"] for row in rows(task, pair | {"label": 0})] == [1]
    assert task.labels[1] == "entailment"
    assert [row["label"] for row in rows(task, pair | {"label": 2})] == [0]
    assert rows(task, pair | {"label": -1}) == []


def test_news20_takes_two_groups_of_twenty() -> None:
    task = load_task("news20")
    post = {"text": "The goalie.", "label": 10, "label_text": "rec.sport.hockey"}
    assert rows(task, post) == [{"id": "news20-test-3", "text": "The goalie.", "label": 1}]
    assert rows(task, post | {"label_text": "sci.space"}) == []
    assert rows(task, post | {"text": "\n"}) == []


def test_labels_by_name_where_the_names_agree() -> None:
    found = {"idx": 8, "sentence": "x", "label": 0}
    assert rows(make_task(), found, ["yes", "no"])[0]["label"] == 1
    assert rows(make_task(), found, ["a", "b"])[0]["label"] == 0
    assert rows(make_task(), found)[0]["id"] == "mini-test-8"


def test_squad_with_and_without_answers() -> None:
    task = load_task("squad2")
    row = {"id": "q1", "context": "Ada wrote it.", "question": "Who?"}
    answers = {"text": ["Ada", "Ada wrote"], "answer_start": [0, 0]}
    (found,) = rows(task, row | {"answers": answers})
    assert found == {
        "id": "squad2-test-q1",
        "text": "Ada wrote it.",
        "text_b": "Who?",
        "answers": [{"start": 0, "text": "Ada"}, {"start": 0, "text": "Ada wrote"}],
        "label": "answerable",
    }
    (found,) = rows(task, row | {"answers": {"text": [], "answer_start": []}})
    assert (found["answers"], found["label"]) == ([], "no_answer")
    with pytest.raises(FaithbenchError, match=r"squad_v2, row 3: not of the form 'squad' \(zip"):
        rows(task, row | {"answers": {"text": ["Ada"], "answer_start": []}})


def test_cloze_makes_a_row_of_each_sentence_with_a_candidate() -> None:
    task = load_task("cbt-ne")
    found = rows(
        task,
        {
            "sentences": ["Ann saw Tom , and Ann ran .", "Annie slept .", "Tom sang ."],
            "question": "XXXXX came back .",
            "answer": "Ann",
            "options": ["Ann", "Tom"],
        },
    )
    assert [(row["id"], row["label"], row["rationale"]) for row in found] == [
        ("cbt-ne-test-3-0", 1, [[0, 3], [18, 21]]),
        ("cbt-ne-test-3-2", 0, None),
    ]
    assert {row["text_b"] for row in found} == {"XXXXX came back ."}
    with pytest.raises(FaithbenchError, match="not of the form 'cloze'"):
        rows(task, {"sentences": None, "question": "q", "answer": "Ann", "options": ["Ann"]})
