"""Rows of each layout under our names, whichever source they come from."""

from __future__ import annotations

from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.columns import Row, check_columns, our_rows
from faithbench.data.sources import SplitRequest
from faithbench.data.task_schema import FolderTable
from faithbench.data.tasks import Task, load_task
from tests.support.builders import make_task


def rows(task: Task, theirs: Row, names: list[str] | None = None) -> list[Row]:
    assert task.hub is not None
    wanted = SplitRequest(task, task.hub, "test")
    return list(our_rows(wanted, f"{task.hub.dataset}, row 3", 3, theirs, names or []))


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
    with pytest.raises(FaithbenchError, match=r"squad_v2, row 3: not of the layout 'squad' \(zip"):
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
    with pytest.raises(FaithbenchError, match="not of the layout 'cloze'"):
        rows(task, {"sentences": None, "question": "q", "answer": "Ann", "options": ["Ann"]})


def test_cloze_reads_the_lines_of_one_text_and_whole_words() -> None:
    task = load_task("cbt-like-ne")
    assert task.folder is not None
    theirs = {
        "id": "q7",
        "text_a": "Jo met Beth .\nJo-like , they say .\nBeth left .",
        "text_b": "XXXXX came back .",
        "label": "Jo",
        "candidates": ["Jo", "Beth"],
    }
    found = list(our_rows(SplitRequest(task, task.folder, "test"), "here", 0, theirs))
    assert [(row["id"], row["text"], row["label"], row["rationale"]) for row in found] == [
        ("q7-0", "Jo met Beth .", 1, [[0, 2]]),
        ("q7-2", "Beth left .", 0, None),
    ]


def test_typed_asks_for_one_type_and_joins_its_spans() -> None:
    task = load_task("genia")
    assert task.folder is not None
    wanted = SplitRequest(task, task.folder, "test")
    theirs = {"id": "g", "text": "A blocks and inhibits B .", "label": 1, "rationale": [[0, 1]]}
    marks = [[13, 21, "Negative_regulation"], [2, 8, "Binding"], [2, 8, "Negative_regulation"]]
    marks += [[13, 17, "Negative_regulation"]]
    types = ["Binding", "Negative_regulation"]
    (row,) = our_rows(wanted, "here", 0, theirs | {"event_types": types, "triggers": marks})
    assert row == {
        "id": "g",
        "text": "A blocks and inhibits B .",
        "label": 1,
        "rationale": [[2, 8], [13, 21]],
    }
    (row,) = our_rows(wanted, "here", 0, theirs | {"event_types": types[:1], "triggers": []})
    assert (row["label"], row["rationale"]) == (0, None)
    with pytest.raises(FaithbenchError, match="not of the layout 'typed'"):
        list(our_rows(wanted, "here", 0, theirs | {"event_types": types, "triggers": [[1, 2]]}))


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"gold": "yes", "s": {"raw": "a film"}}, {"id": "mini-test-3"}),
        ({"id": "x", "gold": "yes", "s": {"raw": "a film"}}, {"id": "x"}),
        (
            {"gold": "yes", "s": {"raw": "a film"}, "rationale": [[0, 1]], "label": "noise"},
            {"id": "mini-test-3", "rationale": [[0, 1]]},
        ),
    ],
)
def test_a_folder_reads_what_it_does_not_map_under_our_names(theirs: Row, ours: Row) -> None:
    columns = {"text": "s.raw", "label": "gold"}
    task = make_task(folder={"name": "mini", "splits": {"test": "test"}, "columns": columns})
    assert task.folder is not None
    (row,) = our_rows(SplitRequest(task, task.folder, "test"), "here", 3, theirs)
    assert row == {"text": "a film", "label": "yes"} | ours


def test_a_row_that_lacks_what_its_layout_reads() -> None:
    folder = {"name": "mini", "splits": {"test": "test"}, "layout": "squad"}
    task = make_task(kind="qa", hub=None, folder=folder)
    assert task.folder is not None
    wanted = SplitRequest(task, task.folder, "test")
    with pytest.raises(
        FaithbenchError, match=r"^here: not of the layout 'squad' \('answers'\); fix"
    ):
        list(our_rows(wanted, "here", 0, {"text": "t", "text_b": "q"}))


POST = {"id": "p", "text": "Subject: x\n\nHi.", "label": 1, "at": 12}


def from_offset(text_from: str = "at", **changes: Any) -> SplitRequest[FolderTable]:
    """Return a request for texts that begin where the column `text_from` says."""
    folder = {"name": "mini", "splits": {"test": "test"}, "text_from": text_from}
    task = make_task(folder=folder | changes, rationale="none")
    assert task.folder is not None
    return SplitRequest(task, task.folder, "test")


def test_a_text_begins_where_its_column_says() -> None:
    wanted = from_offset()
    (row,) = our_rows(wanted, "here", 0, POST)
    assert row == {"id": "p", "text": "Hi.", "label": 1}
    (row,) = our_rows(wanted, "here", 0, POST | {"at": 0, "rationale": None})
    assert row["text"] == "Subject: x\n\nHi."
    (row,) = our_rows(from_offset("meta.at"), "here", 0, POST | {"meta": {"at": 9}})
    assert row["text"] == "x\n\nHi."


@pytest.mark.parametrize("start", [10, 15])
def test_a_text_of_which_nothing_is_left_is_left_out(start: int) -> None:
    post = POST | {"text": "Subject: x\n\n \n\n", "at": start}
    assert len(post["text"]) == 15
    assert list(our_rows(from_offset(), "here", 0, post)) == []


@pytest.mark.parametrize("start", [-1, 16, 1.0, "3", None, True, [0]])
def test_what_is_no_place_in_a_text(start: Any) -> None:
    with pytest.raises(FaithbenchError) as caught:
        list(our_rows(from_offset(), "posts, row 3", 0, POST | {"at": start}))
    assert str(caught.value) == (
        f"posts, row 3: 'at' is {start!r}, which is no place in the text; "
        "fix the row, or folder.text_from of task mini"
    )


def test_a_text_that_is_none_has_no_places() -> None:
    with pytest.raises(FaithbenchError, match="here: 'at' is 12, which is no place in the text"):
        list(our_rows(from_offset(), "here", 0, POST | {"text": ["a", "b"]}))


@pytest.mark.parametrize("marks", [{"rationale": [[9, 10]]}, {"answers": [{"start": 9}]}])
def test_a_text_with_marks_cannot_be_cut(marks: Row) -> None:
    with pytest.raises(FaithbenchError, match="here: a text that is cut by text_from cannot have"):
        list(our_rows(from_offset(), "here", 0, POST | marks))


@pytest.mark.parametrize("text_from", ["at", "at.first"])
def test_the_key_to_fix_is_named(text_from: str) -> None:
    """Where the column itself is missing: that of the text's begin, or one of our columns."""
    columns = {"text": "body", "label": "label"}
    wanted = from_offset(text_from, columns=columns)
    check_columns(wanted, "here", ["body", "label", "at"])
    with pytest.raises(FaithbenchError) as caught:
        check_columns(wanted, "here", ["body", "label"])
    assert str(caught.value) == (
        "here has no column 'at', it has body, label; fix folder.text_from of task mini"
    )
    with pytest.raises(FaithbenchError, match=r"no column 'body', .*; fix folder\.columns of task"):
        check_columns(wanted, "here", ["at", "label"])
