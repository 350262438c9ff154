"""Rows read as examples, and every complaint about a field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.files import file_sha256
from faithbench.core.types import Answer, Example
from faithbench.data.dataset import load_dataset
from tests.support.builders import ROWS, complaint, make_task, put


def test_pairs_answers_and_line_separators_inside_texts(tmp_path: Path) -> None:
    row = {
        "id": "q",
        "text_a": "Ada wrote\u2028it.",
        "text_b": "Who?",
        "label": 0,
        "rationale": [],
        "answers": [{"start": 0, "text": "Ada", "ambiguous": 2}],
    }
    put(tmp_path, [json.dumps(row, ensure_ascii=False)])
    found = load_dataset(make_task(kind="qa", hub=None), folder=tmp_path)
    answer = (Answer(0, "Ada"),)
    assert found.examples == (Example("q", "Ada wrote\u2028it.", 0, "Who?", None, answer),)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"id": "x", "label": 0}, "field 'text': expected a text that is not blank, found None"),
        ({"id": "x", "label": 0, "text": ""}, "field 'text': expected a text that is not blank"),
        ({"id": "x", "label": 0, "text": " \t"}, "field 'text': expected a text that is not blank"),
        ({"id": "x", "label": 0, "text": "\ud800"}, "field 'text': expected valid Unicode"),
        ({"id": "x", "label": 0, "text": "t", "text_a": "t"}, "field 'text_a': expected either"),
        ({"id": "x", "label": 0, "text": "t", "text_b": "u"}, "field 'text_b': expected no second"),
        ({"id": 7, "label": 0, "text": "t"}, "field 'id': expected a text that is not blank"),
        ({"label": 0, "text": "t"}, "field 'id': expected a text that is not blank, found None"),
        ({"id": "a", "label": 0, "text": "t"}, "field 'id': expected an id used once, found 'a'"),
        ({"id": "x", "text": "t"}, "field 'label': expected 0 to 1 or one of no, yes, found None"),
        ({"id": "x", "label": 2, "text": "t"}, "field 'label': expected 0 to 1"),
        ({"id": "x", "label": -1, "text": "t"}, "field 'label': expected 0 to 1"),
        ({"id": "x", "label": True, "text": "t"}, "field 'label': expected 0 to 1"),
        ({"id": "x", "label": "maybe", "text": "t"}, "one of no, yes, found 'maybe'"),
        (
            {"id": "x", "label": 0, "text": "t", "rationales": []},
            "field 'rationale': expected that name, not 'rationales', found []; fix",
        ),
        (
            {"id": "x", "lable": 0, "text": "t", "doc": "d"},
            "found None (the row has doc, lable, not read); fix the row",
        ),
        ("[1]", "expected a JSON object, found [1]"),
        ('{"id": ', "expected one JSON object, found Expecting value"),
        ("", "expected one JSON object, found Expecting value"),
    ],
)
def test_faulty_rows_name_file_line_and_field(tmp_path: Path, row: Any, said: str) -> None:
    path = put(tmp_path, [ROWS[0], row])
    found = complaint(make_task(), folder=tmp_path)
    assert found.startswith(f"{path}, line 2: ")
    assert said in found


@pytest.mark.parametrize(
    ("rationale", "said"),
    [
        ([[0, 10]], "expected spans [start, end) within 0 to 9, found [0, 10]"),
        ([[-1, 2]], "expected spans [start, end) within 0 to 9, found [-1, 2]"),
        ([[3, 3]], "expected spans [start, end) within 0 to 9, found [3, 3]"),
        ([[0, 1.5]], "expected spans [start, end) within 0 to 9"),
        ([[0, 1, 2]], "expected spans [start, end) within 0 to 9"),
        ([[0, 4], [3, 6]], "expected spans that are sorted and do not overlap"),
        ([[5, 6], [0, 2]], "expected spans that are sorted and do not overlap"),
        ("good", "expected a list or null, found 'good'"),
    ],
)
def test_faulty_spans(tmp_path: Path, rationale: Any, said: str) -> None:
    path = put(tmp_path, [{"id": "a", "text": "good film", "label": 1, "rationale": rationale}])
    assert f"{path}, line 1: field 'rationale': {said}" in complaint(make_task(), folder=tmp_path)


def test_spans_that_touch_are_fine(tmp_path: Path) -> None:
    put(tmp_path, [{"id": "a", "text": "good", "label": 1, "rationale": [[0, 2], [2, 4]]}])
    found = load_dataset(make_task(), folder=tmp_path)
    assert found.examples[0].rationale == ((0, 2), (2, 4))


@pytest.mark.parametrize("answer", [{"start": 1, "text": "Ada"}, {"text": "Ada"}, "Ada"])
def test_answers_must_be_in_the_text(tmp_path: Path, answer: Any) -> None:
    put(tmp_path, [{"id": "a", "text": "Ada", "text_b": "Who?", "label": 1, "answers": [answer]}])
    task = make_task(kind="qa", hub=None)
    assert "line 1: field 'answers': expected a start and the" in complaint(task, folder=tmp_path)


def test_a_pair_needs_its_second_text(tmp_path: Path) -> None:
    put(tmp_path, ROWS[:1])
    task = make_task(kind="pair", hub=None)
    assert "line 1: field 'text_b': expected a text" in complaint(task, folder=tmp_path)


def test_other_fields_are_passed_over_with_one_note(tmp_path: Path) -> None:
    """Also a field that other kinds read: a class has no answers, of whatever form."""
    put(tmp_path, [row | {"doc": 3, "answers": "x"} for row in ROWS[:2]] + [ROWS[2] | {"doc": 4}])
    with pytest.warns(UserWarning) as caught:
        found = load_dataset(make_task(), folder=tmp_path, limit=1)
    assert [str(warning.message) for warning in caught] == [
        "split 'test' of task mini (folder) has fields that are not read: "
        "answers (2 rows), doc (3 rows)"
    ]
    assert len(found.examples) == 1 and found.examples[0].answers == ()


def test_the_fields_of_pinned_data_are_known(tmp_path: Path) -> None:
    path = put(tmp_path, [ROWS[0] | {"doc": 3}])
    folder = {"name": "mini", "splits": {"test": "test"}, "sha256": {"test": file_sha256(path)}}
    found = load_dataset(make_task(folder=folder), folder=tmp_path)
    assert found.checked and len(found.examples) == 1


def test_a_misspelt_answer_is_not_passed_over(tmp_path: Path) -> None:
    put(tmp_path, [{"id": "a", "text": "Ada", "text_b": "Who?", "label": 1, "answer": []}])
    task = make_task(kind="qa", hub=None)
    assert "field 'answers': expected that name, not 'answer', found []" in complaint(
        task, folder=tmp_path
    )


@pytest.mark.parametrize(
    ("choices", "label", "said"),
    [
        (None, 0, "field 'choices': expected a list of 2 to 3 texts, found None"),
        (["a"], 0, "field 'choices': expected a list of 2 to 3 texts, found ['a']"),
        (["a", "b", "c", "d"], 0, "field 'choices': expected a list of 2 to 3 texts"),
        (["a", " "], 0, "field 'choices': expected a text that is not blank, found ' '"),
        (["a", "b"], 2, "field 'label': expected 0 to 1 or one of A, B, found 2"),
    ],
)
def test_faulty_choices(tmp_path: Path, choices: Any, label: int, said: str) -> None:
    put(tmp_path, [{"id": "x", "text": "t", "label": label, "choices": choices}])
    task = make_task(kind="multiple-choice", labels=["A", "B", "C"], hub=None)
    assert said in complaint(task, folder=tmp_path)
