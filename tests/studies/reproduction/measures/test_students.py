"""Students of a recipe: bundled or distilled once, and read beside their teachers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.core.seals import parse_sealed, seal_json
from faithbench.core.types import quiet
from faithbench.models.encoding import encode
from faithbench.models.session import Session
from faithbench.studies.reproduction.cells import CellReader
from faithbench.studies.reproduction.measures import students as module
from faithbench.studies.reproduction.measures.explanations import Wanted
from faithbench.studies.reproduction.measures.networks import Network
from faithbench.studies.reproduction.measures.pairs import (
    own_readings,
    same_prediction,
    student_labels,
)
from faithbench.studies.reproduction.measures.students import Students
from faithbench.studies.reproduction.recipe import Part
from faithbench.studies.reproduction.values import Measured, Missing
from faithbench.training.distil.distil import DistilRequest
from tests.studies.reproduction import HEAD, MODEL, clock_of, recipe_of, refuse, request_of
from tests.support.students import put_student
from tests.support.training import save_base

TABLE = """\
[[items]]
id = "table-1"
title = "A student beside its teacher"
cells = { model = "net", teacher = "gradient" }
rows = [
    { name = "A", who = "teacher" },
    { name = "L2E", who = "student" },
    { name = "Both", who = "student", measure = "pair", metric = "both" },
]
columns = [
    { name = "Ranking", form = "ranking", metric = "agreement" },
    { name = "Labelling", form = "labelling", metric = "aopc" },
]
printed = [[1, 2], [3, 4], [5, 6]]
"""
SMALL = MODEL + "texts = 8\nlessons = 20\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_base(tmp_path_factory.mktemp("models"), "bert")


def reader_of(place: Path, folder: Path | None, **changes: Any) -> CellReader:
    recipe = recipe_of(place, HEAD, SMALL, TABLE, model=folder)
    request = request_of(recipe, place, **{"seeds": 2} | changes)
    return CellReader(request, clock_of(request), quiet)


def network_of(reader: CellReader) -> Network:
    found = reader.networks.of("net")
    assert not isinstance(found, Missing), found
    return found[0]


@pytest.fixture
def distilled(monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[DistilRequest]:
    """What was asked for; students with random weights are put in its place."""
    asked: list[DistilRequest] = []

    def fake(request: DistilRequest, _progress: object) -> None:
        from faithbench.models.model import load_model

        asked.append(request)
        model = load_model(str(folder), labels=("negative", "positive"), device="cpu")
        assert request.out is not None
        put_student(request.out, model, form=request.recipe.form, seeds=request.seeds)

    monkeypatch.setattr(module, "distil", fake)
    return asked


def test_a_student_is_distilled_once(
    tmp_path: Path, folder: Path, distilled: list[DistilRequest]
) -> None:
    reader = reader_of(tmp_path, folder)
    network = network_of(reader)
    out = reader.students.folder(network, "gradient", "ranking")
    assert reader.students.folder(network, "gradient", "ranking") == out
    (request,) = distilled
    digest = reader.networks.load(network).sha256[:8]
    assert (
        out
        == request.out
        == (tmp_path / "results" / "students" / f"net-gradient-ranking-20-{digest}-2")
    )
    assert (request.teacher, request.recipe.form, request.seeds) == ("gradient", "ranking", 2)
    assert (request.limit, request.model) == (20, str(folder))
    assert list(reader.clock.seconds) == [f"distil {out.name}"]
    labelling = reader.students.folder(network, "gradient", "labelling")
    assert labelling != out and len(distilled) == 2


def test_a_bundled_student_is_taken_unless_it_is_a_quick_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quick reproduction shows that distillation works, too."""
    monkeypatch.setattr(module, "distil", refuse)
    reader = reader_of(tmp_path, None)
    found = reader.students.folder(network_of(reader), "deep-shap", "labelling")
    assert found.parts[-3:] == ("sst2", "students", "deep-shap-labelling")
    with pytest.raises(AssertionError, match="done already"):
        reader.students.folder(network_of(reader), "deep-shap", "ranking")
    quick = reader_of(tmp_path, None, quick=True)
    with pytest.raises(AssertionError, match="done already"):
        quick.students.folder(network_of(quick), "deep-shap", "labelling")


def pair(metric: str, form: str = "labelling", who: str = "student") -> Part:
    facts = {"measure": "pair", "model": "net", "teacher": "gradient", "scale": 100}
    return Part.model_validate(facts | {"metric": metric, "form": form, "who": who})


def value_of(students: Students, part: Part) -> Measured:
    value = students.value(part)
    assert isinstance(value, Measured), value
    return value


def by_hand(reader: CellReader, form: str) -> list[dict[str, list[float | None]]]:
    """Read both initialisations from records and labels, as the pair does."""
    network = network_of(reader)
    model, data = reader.networks.load(network), reader.networks.texts(network)
    student = reader.students.folder(network, "gradient", form)
    encodings = [encode(model, example) for example in data.examples]
    rows = {}
    for who, name in (
        ("student", f"l2e:student={student}"), ("teacher", "gradient"), ("random", "random"),
    ):  # fmt: skip
        metrics = reader._metrics(
            Part(model="net", metric="agreement", explainer="random")
            if who == "random"
            else Part.model_validate(
                {"model": "net", "metric": "agreement", "who": who, "teacher": "gradient",
                 "form": form}
            )
        )  # fmt: skip
        stored = reader.explanations.record(Wanted(network, name, metrics, 2))
        assert not isinstance(stored, Missing), stored
        rows[who] = [stored.by_id[example.id] for example in data.examples]
    found = []
    for seed in (0, 1):
        scores = {
            who: [
                np.array((row.scores, *row.more_scores)[seed if row.more_scores else 0])
                for row in of
            ]
            for who, of in rows.items()
        }
        targets = [int(row.target) for row in rows["student"]]  # type: ignore[arg-type]
        full = [row.probability for row in rows["student"]]
        with Session(model) as session:
            tables = {"both": same_prediction(session, encodings, scores)}
            if form == "labelling":
                labels = student_labels(model, student, seed, encodings, targets)
                tables |= own_readings(session, encodings, targets, full, labels, scores)
        found.append(tables)
    return found


def mean(columns: list[list[float | None]]) -> float:
    """Return the mean over texts of the mean over initialisations, in percent."""
    values = []
    for text in zip(*columns, strict=True):
        there = [value for value in text if value is not None]
        values += [sum(there) / len(there)] if there else []
    return 100 * sum(values) / len(values)


def test_a_labelling_student_is_read_by_the_tokens_that_it_labels(
    tmp_path: Path, folder: Path, distilled: list[DistilRequest]
) -> None:
    reader = reader_of(tmp_path, folder)
    expected = by_hand(reader, "labelling")
    both = value_of(reader.students, pair("both"))
    assert both.mean == pytest.approx(mean([one["both own"] for one in expected]))
    for who in ("student", "teacher", "random"):
        for metric in ("agreement", "positive", "negative"):
            columns = [one[f"{metric} {who}"] for one in expected]
            if any(value is not None for column in columns for value in column):
                value = value_of(reader.students, pair(f"own_{metric}", who=who))
                assert value.mean == pytest.approx(mean(columns))
    assert len(distilled) == 1


def test_a_ranking_student_is_read_by_its_top_tokens(
    tmp_path: Path, folder: Path, distilled: list[DistilRequest]
) -> None:
    reader = reader_of(tmp_path, folder)
    expected = by_hand(reader, "ranking")
    value = value_of(reader.students, pair("both", "ranking"))
    assert value.mean == pytest.approx(mean([one["both"] for one in expected]))
    assert (value.n, len(value.by_seed)) == (8, 2)
    assert reader.students.value(pair("own_agreement", "ranking")) == Missing(
        "only students that label tokens have this number"
    )


def test_a_pair_is_read_once(
    tmp_path: Path,
    folder: Path,
    distilled: list[DistilRequest],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = reader_of(tmp_path, folder)
    first = value_of(reader.students, pair("both"))
    (path,) = (tmp_path / "results" / "pairs").iterdir()
    whole = path.read_bytes()
    known = parse_sealed(whole)
    assert set(known["rows"]) == {"student", "teacher", "random"}
    (ref,) = first.records
    assert ref.path == f"pairs/{path.name}" and len(ref.sha256) == 64
    monkeypatch.setattr(Students, "_read_pair", refuse)
    again = reader_of(tmp_path, folder)
    assert value_of(again.students, pair("both")) == first
    # Those of other rows are read again, and so are those of a file that is damaged.
    for data in (
        seal_json(known | {"rows": {}}).encode(),
        whole.replace(b"1.0", b"0.0", 1),
        whole[:-5],
    ):
        assert data != whole
        path.write_bytes(data)
        with pytest.raises(AssertionError, match="done already"):
            reader_of(tmp_path, folder).students.value(pair("both"))


def test_a_pair_that_is_there_has_the_time_that_it_took(
    tmp_path: Path, folder: Path, distilled: list[DistilRequest]
) -> None:
    """So that a second call writes the same page."""
    reader = reader_of(tmp_path, folder)
    value_of(reader.students, pair("both"))
    asked = set(reader.clock.used)
    assert any(name.startswith("pair net-") for name in asked)
    again = reader_of(tmp_path, folder)
    value_of(again.students, pair("both"))
    assert again.clock.used == asked


def test_a_student_of_a_model_that_is_not_there_is_missing(tmp_path: Path) -> None:
    reader = reader_of(tmp_path, tmp_path / "no")
    assert isinstance(reader.students.value(pair("both")), Missing)
