"""Lessons: teachers' weights joined with texts, and explanations of something else refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import Dataset
from faithbench.explainers.selection import find_explainers
from faithbench.records.store import StoredRecord
from faithbench.run.backends.serial import Serial
from faithbench.training.distil.lessons import collate_lessons, cut_batches, joined, make_lessons
from faithbench.training.explained_split import explained
from tests.support.students import known, put_texts
from tests.support.training import silent


@pytest.fixture(scope="module")
def taught(tiny_model: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model, 120 texts, and the explanations of two teachers."""
    folder = tmp_path_factory.mktemp("lessons")
    data = put_texts(folder, 120)
    model = known(tiny_model())
    chosen = find_explainers("input-x-gradient,gradient")
    records = explained(model, data, chosen, folder / "scores", 1, Serial(), silent)
    return model, data, list(records.values())


def test_texts_are_held_out_by_their_ids(taught: Any) -> None:
    model, data, (teacher, _) = taught
    lessons = make_lessons(model, data, [teacher])
    assert len(lessons.train) + len(lessons.dev) == 120
    assert 4 <= len(lessons.dev) <= 24
    names = {lesson.encoding.example.id for lesson in lessons.dev}
    backwards = replace(data, examples=data.examples[::-1])
    again = make_lessons(model, backwards, [teacher])
    assert {lesson.encoding.example.id for lesson in again.dev} == names
    lesson = lessons.train[0]
    row = teacher.by_id[lesson.encoding.example.id]
    assert lesson.predicted == row.target
    assert lesson.weights.tolist() == list(row.scores)


def test_a_batch_has_a_column_for_each_tag(taught: Any) -> None:
    model, data, (teacher, _) = taught
    lessons = make_lessons(model, data, [teacher]).train[:3]
    batch = collate_lessons(model, lessons)
    assert batch.words.shape == (3, batch.ids.shape[1] + 2)
    for row, lesson in enumerate(lessons):
        positions = np.flatnonzero(lesson.encoding.erasable) + 1
        assert batch.words[row].nonzero().flatten().tolist() == positions.tolist()
        np.testing.assert_allclose(batch.weights[row, positions], lesson.weights, rtol=1e-6)
        assert batch.labels[row, positions].tolist() == lesson.labels.tolist()
    assert not batch.words[:, :2].any(), "the tag and [CLS]"


def test_batches_hold_every_lesson_once(taught: Any) -> None:
    model, data, (teacher, _) = taught
    lessons = make_lessons(model, data, [teacher]).train
    batches = cut_batches(lessons, 8, seed=0, epoch=1)
    assert sorted(id(one) for part in batches for one in part) == sorted(map(id, lessons))
    assert all(len(part) == 8 for part in batches if part is not batches[-1]) or len(batches) > 8
    assert [len(p) for p in cut_batches(lessons, 8, 0, 1)] == [len(p) for p in batches]
    assert cut_batches(lessons, 8, 0, 2) != batches


def test_several_teachers_are_joined_by_signed_ranks() -> None:
    first, second = np.array([0.1, -0.4, 0.2, 0.0]), np.array([-30.0, -10.0, 20.0, 40.0])
    assert joined([first]).tolist() == first.tolist()
    ranks = [[2 / 4, -4 / 4, 3 / 4, 0.0], [-3 / 4, -1 / 4, 2 / 4, 4 / 4]]
    assert joined([first, second]).tolist() == pytest.approx(np.mean(ranks, axis=0).tolist())


def test_explanations_of_something_else(taught: Any) -> None:
    model, data, (teacher, _) = taught

    def refused(stored: StoredRecord, of: Dataset = data, by: Any = model) -> str:
        with pytest.raises(FaithbenchError) as caught:
            make_lessons(by, of, [stored])
        return str(caught.value)

    def changed(part: str, **facts: Any) -> StoredRecord:
        section = getattr(teacher.record, part).model_copy(update=facts)
        return StoredRecord(teacher.path, teacher.record.model_copy(update={part: section}))

    assert "explains task imdb (version 1), not mini" in refused(changed("task", name="imdb"))
    assert "a student explains the model of its teacher" in refused(
        teacher, by=known(model, "6" * 64)
    )
    assert "give the --data and --source that it was made with" in refused(
        changed("task", data_sha256="0" * 64)
    )
    new = replace(data.examples[0], id="new")
    more = replace(data, examples=(*data.examples, new))
    assert "explains 120 texts of split 'train', and not all of the 121" in refused(
        teacher, of=more
    )
    fewer = replace(data, examples=data.examples[:110])
    lessons = make_lessons(model, fewer, [teacher])
    assert len(lessons.train) + len(lessons.dev) == 110


def test_too_few_texts(taught: Any) -> None:
    model, data, (teacher, _) = taught
    few = replace(data, examples=data.examples[:99])
    with pytest.raises(FaithbenchError, match="99 texts are too few to learn from"):
        make_lessons(model, few, [teacher])
