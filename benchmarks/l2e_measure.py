"""Measure the students of the study and their teachers on the same test texts.

Most are metrics of ordinary records. What records do not have is read off the model here, and kept
in a note next to them: whether the predictions on a student's and on its teacher's explanation are
the same ("Both" in Table 1 of L2E), and what happens with as many tokens as the student labels.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import torch
from l2e_study import SEEDS, Pair, joint, study, tested
from saloss import claimed

from faithbench import explainer
from faithbench.core.files import replace_file
from faithbench.core.types import Batch, Floats, quiet
from faithbench.explainers.l2e import L2e
from faithbench.explainers.selection import find_explainers, select_explainers
from faithbench.explainers.students.card import read_student
from faithbench.models.encoding import encode
from faithbench.models.session import Session
from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from faithbench.run import Job, Request, make_job, run
from faithbench.studies.reproduction.measures.pairs import (
    own_readings,
    same_prediction,
    student_labels,
)
from faithbench.training.card import is_finished

OVERLAPS = ("iou_semantic", "iou_lexical", "iou_labels")
METRICS = (
    "agreement",
    "delta_log_odds",
    "aopc",
    *OVERLAPS,
    *(f"{name}:variant=raw" for name in OVERLAPS),
)
NOTES = ".l2e"
"""Folder of the notes; hidden, so that nobody takes them for records."""

Table = list[list[float | None]]
"""A value per text and initialisation; None where there is none."""


@explainer("magnitude")
@dataclass(frozen=True)
class Magnitude:
    """Read another explainer by magnitude: what a student of `target=absolute` learned."""

    teacher: str = "deep-shap"

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the size of each of the other's scores."""
        (chosen,) = find_explainers(self.teacher)
        return chosen.explainer(session, batch).abs()


def measure(task: str, data: Path, out: Path, records: Path, model: str | None = None) -> None:
    """Measure every student of a task that is distilled by now, and its teacher."""
    job = make_job(
        Request(
            "random", task, model=model, data=data, limit=tested(task), metrics=",".join(METRICS),
            seeds=SEEDS, human=False, results=records,
        )
    )  # fmt: skip
    recorded(job, "random", SEEDS)
    for pair in dict.fromkeys((*study(task), *joint(task))):
        if not is_finished(out / pair.folder):
            continue
        with claimed(records / NOTES, f"measure-{pair.folder}") as mine:
            if mine:
                measure_pair(job, pair, out / pair.folder)
                print(f"measured {pair.folder}", flush=True)


def measure_pair(job: Job, pair: Pair, folder: Path) -> None:
    """Make the records of a student, of its teacher and of random scores, and the note on them."""
    stored = {
        "student": recorded(job, L2e(student=str(folder)), SEEDS),
        "random": recorded(job, "random", SEEDS),
    }
    if not pair.joint:
        by_size = pair.target == "absolute"
        stored["teacher"] = recorded(job, Magnitude(pair.teacher) if by_size else pair.teacher, 1)
    path = job.results / NOTES / f"{pair.folder}.json"
    digests = {name: one.record.rows.sha256 for name, one in stored.items()}
    if path.exists() and json.loads(path.read_text())["rows"] == digests:
        return
    costs, lessons = folder / "costs.json", read_student(folder).lessons
    note = {
        "pair": asdict(pair),
        "texts": lessons.n + lessons.held_out,
        "rows": digests,
        "records": {
            name: one.path.relative_to(job.results).as_posix() for name, one in stored.items()
        },
        "costs": json.loads(costs.read_text()) if costs.exists() else None,
        "tables": {} if pair.joint else readings(job, pair, folder, stored),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, (json.dumps(note) + "\n").encode())


def recorded(job: Job, wanted: object, seeds: int) -> StoredRecord:
    """Return the record of an explainer on a job's texts, made now if it is not there."""
    one = replace(job, explainers=select_explainers(wanted), seeds=seeds)
    (cell,) = one.cells
    path = cell.folder / f"{cell.stem}.json"
    if not path.exists():
        run(one, quiet)
    return StoredRecord(path, read(path))


def readings(
    job: Job, pair: Pair, folder: Path, stored: Mapping[str, StoredRecord]
) -> dict[str, Table]:
    """Return what records do not have, each a value per text (in their order) and initialisation.

    `both` is 1 where the model predicts the same from the student's and the teacher's top 30%. A
    labelling student is also read by its labels: see `own_readings`.
    """
    evidence = job.data.task.evidence
    encodings = [encode(job.model, example, evidence) for example in job.data.examples]
    ids = [encoding.example.id for encoding in encodings]
    rows = {name: [one.by_id[key] for key in ids] for name, one in stored.items()}
    targets = [int(row.target) for row in rows["student"]]  # type: ignore[arg-type]  # a class
    full = [row.probability for row in rows["student"]]
    columns: dict[str, list[list[float | None]]] = {}
    with Session(job.model) as session:
        for seed in range(SEEDS):
            scores = {
                name: [_scores(row.scores, row.more_scores, seed) for row in of]
                for name, of in rows.items()
            }
            found = {"both": same_prediction(session, encodings, scores)}
            if pair.form == "labelling":
                labels = student_labels(job.model, folder, seed, encodings, targets)
                found |= own_readings(session, encodings, targets, full, labels, scores)
            for name, column in found.items():
                columns.setdefault(name, []).append(column)
            session.clear()
    return {
        name: [list(line) for line in zip(*seeds, strict=True)] for name, seeds in columns.items()
    }


def _scores(first: Sequence[float], more: Sequence[Sequence[float]], seed: int) -> Floats:
    """Return the scores under a seed; those of a teacher, which has one seed, are always these."""
    every = (first, *more)
    return np.array(every[seed % len(every)], dtype=np.float64)
