"""A small version of benchmarks/l2e.py: what it reads, its tables by hand, and its speeds."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from faithbench.core.erasure import top_count
from faithbench.core.types import rank
from faithbench.data.dataset import load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import find_metrics
from faithbench.models.encoding import encode
from faithbench.models.session import Session
from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from faithbench.run.job import Job
from faithbench.training.distil.distil import DistilRequest
from tests.support.benchmarks import load_benchmark
from tests.support.builders import make_task, put
from tests.support.jobs import TEXTS
from tests.support.stores import change_rows, store
from tests.support.students import known, put_student

script: Any = load_benchmark("l2e")  # its neighbours can be imported from then on
plan: Any = import_module("l2e_study")
measure: Any = import_module("l2e_measure")
compare: Any = import_module("l2e_compare")
shown: Any = import_module("l2e_tables")
together: Any = import_module("l2e_joint")
timing: Any = import_module("l2e_speed")
pictures: Any = import_module("l2e_chart")

MEASURED = "agreement,delta_log_odds,aopc,iou_lexical,iou_lexical:variant=raw"


def test_every_student_of_the_study_has_its_own_folder() -> None:
    every = list(dict.fromkeys((*plan.study("sst2"), *plan.joint("sst2"))))
    folders = [str(pair.folder) for pair in every]
    assert len(set(folders)) == len(folders) == 13 + 6
    assert folders[0] == "sst2/deep-shap-labelling"
    assert "sst2/deep-shap-ranking-absolute" in folders
    assert "sst2/deep-shap-occlusion-kernel-shap-samples=64-ranking" in folders
    # Kernel-shap alone has as many texts already; the others need students of fewer texts.
    assert "sst2-3000/occlusion-labelling" in folders and "sst2-3000/kernel" not in str(folders)
    assert [str(pair.folder) for pair in plan.study("movies")] == ["movies/deep-shap-labelling"]
    texts = {pair.teacher: pair.texts for pair in plan.study("agnews")}
    assert texts["occlusion"] == 1000 and texts["lrp"] == 3000


def test_students_that_are_there_are_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[DistilRequest] = []

    def record(request: DistilRequest, _: object) -> Any:
        made.append(request)
        return SimpleNamespace(card=SimpleNamespace(initialisations=()))

    monkeypatch.setattr("faithbench.training.distil.distil.distil", record)
    there = tmp_path / "sst2" / "deep-shap-ranking"
    there.mkdir(parents=True)
    (there / "card.json").write_text("{}")
    script.make_students("sst2", tmp_path, tmp_path, tmp_path / "e", None, "deep-shap")
    asked = [(one.recipe.form, one.recipe.target, one.limit) for one in made]
    assert asked == [
        ("labelling", "signed", None), ("ranking", "absolute", None),
        ("labelling", "signed", 3000), ("ranking", "signed", 3000),
    ]  # fmt: skip
    assert made[0].out == tmp_path / "sst2" / "deep-shap-labelling"
    assert {(one.seeds, one.folder, one.explanations) for one in made} == {
        (3, tmp_path, tmp_path / "e")
    }


@pytest.fixture
def job(tmp_path: Path) -> Job:
    from faithbench.testing.tiny import tiny_model

    rows = [{"id": f"e{i:02}", "text": text, "label": i % 2} for i, text in enumerate(TEXTS)]
    put(tmp_path, rows)
    return Job(
        data=load_dataset(make_task(), folder=tmp_path),
        model=known(tiny_model()),
        explainers=find_explainers("random"),
        metrics=find_metrics(MEASURED),
        results=tmp_path / "results",
    )


def test_a_student_is_measured_once_and_read_as_its_teacher(job: Job, tmp_path: Path) -> None:
    put_student(tmp_path / "student", job.model, seeds=3)
    pair = plan.Pair("sst2", "occlusion", "labelling")
    measure.measure_pair(job, pair, tmp_path / "student")
    path = job.results / ".l2e" / "sst2" / "occlusion-labelling.json"
    written = path.stat().st_mtime_ns
    measure.measure_pair(job, pair, tmp_path / "student")
    assert path.stat().st_mtime_ns == written
    (note,) = compare.read_notes(job.results)
    agreements = [note.values(shown.AGREEMENT, who) for who in ("student", "teacher")]
    # Of two classes, both predictions are the same if both agree with the model, or neither does.
    expected = [
        [float(one == other[0]) for one in line] for line, other in zip(*agreements, strict=True)
    ]
    assert note.tables["both"] == expected
    assert len(expected) == len(TEXTS) and len(expected[0]) == 3
    ups = note.tables["count positive"]
    blank = [[value is None for value in line] for line in note.tables["positive teacher"]]
    assert blank == [[count == 0 for count in line] for line in ups]
    assert "### Table 1" in shown.tables([note])


def test_a_student_of_magnitudes_is_compared_with_magnitudes(job: Job, tmp_path: Path) -> None:
    folder = tmp_path / "student"
    put_student(folder, job.model, form="ranking", target="absolute", seeds=3)
    measure.measure_pair(job, plan.Pair("sst2", "deep-shap", "ranking", "absolute"), folder)
    (note,) = compare.read_notes(job.results)
    plain = measure.recorded(job, "deep-shap", 1)
    sizes = [np.abs(row.scores).tolist() for row in plain.rows]
    assert [list(row.scores) for row in note.records["teacher"].rows] == sizes
    assert set(note.tables) == {"both"}


def test_as_many_tokens_as_the_metrics_take_give_the_values_of_the_metrics(job: Job) -> None:
    """A student that labels 30% of the tokens: its teacher has the record's own values."""
    teacher = measure.recorded(job, "occlusion", 1)
    encodings = [encode(job.model, example) for example in job.data.examples]
    scores = [np.array(teacher.by_id[e.example.id].scores) for e in encodings]
    labels = []
    for own in scores:
        marks = np.full(len(own), 2)
        marks[rank(own)[: top_count(len(own), 30)]] = 4
        labels.append(marks)
    rows = teacher.rows
    with Session(job.model) as session:
        found = measure.own_readings(
            session,
            encodings,
            [row.target for row in rows],
            [row.probability for row in rows],
            labels,
            dict.fromkeys(("student", "teacher", "random"), scores),
        )
    assert found["agreement teacher"] == [row.values["agreement"] for row in rows]
    falls = [row.values["delta_log_odds"] for row in rows]
    assert found["positive teacher"] == pytest.approx(falls, abs=1e-6)
    assert found["positive student"] == found["positive teacher"] == found["positive random"]
    assert found["both own"] == [1.0] * len(rows)
    # Nothing is labelled negative: there is nothing to take away.
    assert found["negative student"] == [None] * len(rows)
    assert found["count positive"] == [float((own == 4).sum()) for own in labels]


def made_up(folder: Path, pair: Any, student: list[float], teacher: list[float] | None) -> Any:
    """Store records of seven texts, the student's under three initialisations: -.1, 0 and +.1."""
    metrics = [m.name for m in (shown.AGREEMENT, shown.LOG_ODDS, shown.AOPC)]
    metrics += [
        m.name for name in shown.OVERLAPS for m in (shown.RAW[name], shown.ABOVE_CHANCE[name])
    ]
    records = {}
    for who, values in (("student", student), ("teacher", teacher), ("random", [0.1] * 7)):
        if values is None:
            continue
        stem = f"{'random' if who == 'random' else 'lrp'}-{who}-{pair.folder.name}-11111111"
        path = store(folder, stem, dict.fromkeys(metrics, values))
        if who == "student":
            seeds = {f"e{i}": tuple(v + d for d in (-0.1, 0.0, 0.1)) for i, v in enumerate(values)}
            change_rows(
                path, {key: {"by_seed": dict.fromkeys(metrics, own)} for key, own in seeds.items()}
            )
        records[who] = StoredRecord(path, read(path))
    own = [[None, 0.5, 0.6]] + [[0.4, 0.5, 0.6]] * 6
    tables: dict[str, Any] = dict.fromkeys(("both", "both own"), [[1.0, 1.0, 0.0]] * 7)
    for name in ("agreement", "positive", "negative"):
        tables |= {f"{name} {who}": own for who in ("student", "teacher", "random")}
    tables |= {"count positive": [[0.0, 2.0, 4.0]] * 7, "count negative": [[1.0] * 3] * 7}
    costs = {"training": [{"cpu_seconds": 90.0}] * 3}
    return compare.Note(pair, 3000, records, tables if teacher else {}, costs)


TEACHERS_VALUES = [0.31, 0.32, 0.33, 0.34, 0.35, 0.36, 0.37]


def test_tables_say_who_is_better(tmp_path: Path) -> None:
    """A student that is better on all of seven texts, and one that is worse on all."""
    better = [value + 0.2 + 0.01 * n for n, value in enumerate(TEACHERS_VALUES)]
    worse = [value - 0.2 - 0.01 * n for n, value in enumerate(TEACHERS_VALUES)]
    pairs = (plan.Pair("sst2", "deep-shap", "labelling"), plan.Pair("sst2", "lrp", "ranking"))
    notes = [
        made_up(tmp_path, pair, values, TEACHERS_VALUES)
        for pair, values in zip(pairs, (better, worse), strict=True)
    ]
    notes[1] = replace(notes[1], tables={"both": notes[1].tables["both"]})
    text = shown.tables(notes)
    # Both tests of seven texts have p = 2 / 2^7, and Holm doubles it.
    first = _cells(text, "### Table 1, top 30%")[0]
    assert first[:4] == ["sst2", "deep-shap", "labelling", "7"]
    assert first[4:] == [".100", ".340", ".570 (.470 to .670)", "**.031**", ".667 (.000 to 1.000)"]
    assert "students learned from 3,000 texts (deep-shap, lrp)" in text
    assert "1 of 2 students are significantly better than their teacher and 1 worse" in text
    assert "Of 2 significant gains, 2 are left after the correction." in text
    assert "significantly less faithful than their teacher: agreement 1 of 2 (more: 1)" in text
    overlaps = _cells(text, "### Table 7")
    assert [line[2:5] for line in overlaps[:2]] == [
        ["labelling", "raw", "7"], ["labelling", "above chance", "7"],
    ]  # fmt: skip
    # Its labels: one text has no value under one of the initialisations.
    own = _cells(text, "### Table 2")[0]
    assert own[3:6] == ["7", "1", "2.0"] and own[7] == ".50"
    aims = {cells[0]: cells[1:] for cells in _cells(text, "### What was aimed at")}
    assert aims["agreement"] == [".98", ".570 **missed**"]
    assert aims["training of all three, CPU s (lower)"] == ["300", "270 met"]


def test_a_gain_that_chance_explains_is_told_as_none(tmp_path: Path) -> None:
    pair = plan.Pair("sst2", "deep-shap", "labelling")
    better = [value + 0.2 + 0.01 * n for n, value in enumerate(TEACHERS_VALUES)]
    note = made_up(tmp_path, pair, better, TEACHERS_VALUES)
    corrected = [m.name for m in shown.ABOVE_CHANCE.values()]
    student = note.records["student"].path
    change_rows(
        student,
        {
            f"e{n}": {
                "by_seed": {
                    name: (value,) * 3 if name in corrected else (value + 0.2 + 0.01 * n,) * 3
                    for name in note.records["student"].rows[n].by_seed
                }
            }
            for n, value in enumerate(TEACHERS_VALUES)
        },
    )
    records = note.records | {"student": StoredRecord(student, read(student))}
    text = shown.tables([replace(note, records=records)])
    assert "The gain in stability does not survive the correction for chance." in text


def test_a_joint_student_is_compared_with_each_alone(tmp_path: Path) -> None:
    every = list(plan.joint("sst2"))
    better = [value + 0.2 + 0.01 * n for n, value in enumerate(TEACHERS_VALUES)]
    notes = [
        made_up(tmp_path, pair, better, None)
        if pair.joint
        else made_up(tmp_path, pair, TEACHERS_VALUES, TEACHERS_VALUES)
        for pair in every
        if pair.form == "ranking"
    ]
    text = together.joint_tables(notes)
    lines = _cells(text, "### sst2, ranking")
    assert [line[:2] for line in lines] == [
        ["all of them", "3000"], ["deep-shap", "3000"], ["occlusion", "3000"],
        ["kernel-shap-64", "3000"],
    ]  # fmt: skip
    # Three students by seven measures: the p of seven texts, 2 / 2^7, times 21 is not small.
    assert lines[1][2] == ".340" and lines[0][2] == ".570"
    assert "by agreement better than 0 and worse than 0 of 3" in text
    assert "No student" in together.joint_tables([])


def _cells(text: str, title: str) -> list[list[str]]:
    """Return the lines of the table below a title, without its head."""
    below = text[text.index(title) :].split("\n\n")[1]
    return [
        [cell.strip() for cell in line.strip("|").split("|")] for line in below.splitlines()[2:]
    ]


def test_speeds_are_told_with_ratios_and_aims(job: Job) -> None:
    encodings = tuple(encode(job.model, example) for example in job.data.examples)
    texts = timing.Texts(encodings, (0,) * len(encodings))
    count = len(encodings)
    timed = [
        timing.Timed("student", 1.0, 2.0, 0.04, count),
        timing.Timed("the model's forward", 9.0, 10.0, 1.0, count),
        timing.Timed("student + forward", 10.0, 12.0, 1.04, count),
        timing.Timed("occlusion", 200.0, 190.0, 30.0, count),
        timing.Timed("lime-1000", 3900.0, 4000.0, 1001.0, 4),
    ]
    text = timing.table("sst2", timed, texts)
    cells = {line[0]: line[1:] for line in _cells(text, "One alone")}
    assert cells["occlusion"] == ["200.00", "20", "200", "190.0", "30"]
    assert cells["lime-1000 (4 texts)"][1:3] == ["390", "3,900"]
    assert "for the student alone: 1.00, met." in text
    assert "400 times as fast as lime-1000 counting the forward: 390, **missed**" in text


def test_explainers_are_timed_in_batches_and_alone(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_student(tmp_path, job.model)
    monkeypatch.setattr(timing, "TEACHERS", ("occlusion",))
    monkeypatch.setattr(timing, "SLOWEST", "lime:samples=8")
    encodings = tuple(encode(job.model, example) for example in job.data.examples)
    texts = timing.Texts(encodings, (0,) * len(encodings))
    timed = timing.measure(job.model, texts, tmp_path)
    assert [one.name for one in timed] == [
        "student", "the model's forward", "student + forward", "occlusion", "lime-8",
    ]  # fmt: skip
    assert [one.texts for one in timed] == [len(TEXTS)] * 4 + [4]
    assert timed[1].cost == 1.0 and timed[2].cost == pytest.approx(1 + timed[0].cost)
    assert all(one.seconds > 0 and one.alone > 0 for one in timed)
    # The middle ones of two halves.
    assert texts.even(2).encodings == (encodings[3], encodings[9])


def test_bars_are_as_long_as_logarithms() -> None:
    drawn = pictures.chart([("student", 1.0), ("<lime>", 10.0), ("slow", 4600.0)], "CPU")
    widths = [float(w) for w in re.findall(r'<rect x="\d+" y="\d+" width="([\d.]+)"', drawn)]
    # The axis begins at .1: one decade, two, and those of 46,000.
    assert widths[1] == pytest.approx(2 * widths[0], rel=1e-3)
    assert widths[2] == pytest.approx(np.log10(46000) * widths[0], rel=1e-3)
    assert "&lt;lime&gt;" in drawn and ">4,600<" in drawn
