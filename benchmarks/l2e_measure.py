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
from typing import Any

import numpy as np
import torch
from l2e_study import SEEDS, Pair, joint, study, tested
from saloss import claimed

from faithbench import explainer
from faithbench.core.erasure import erase, top_count
from faithbench.core.files import replace_file
from faithbench.core.types import Batch, Bools, Encoding, Floats, Ints, quiet, rank
from faithbench.explainers.l2e import L2e
from faithbench.explainers.selection import find_explainers, select_explainers
from faithbench.explainers.students.card import load_student, read_student
from faithbench.metrics.faithfulness import log_odds
from faithbench.metrics.stability import HIGH_POSITIVE, LOW_NEGATIVE, LOW_POSITIVE
from faithbench.models.encoding import collate, encode
from faithbench.models.model import Model
from faithbench.models.session import Session
from faithbench.records.record import read
from faithbench.records.store import StoredRecord
from faithbench.run import Job, Request, make_job, run
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
READERS = ("student", "teacher", "random")
OWN = ("agreement", "positive", "negative")
_BATCH = 32

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


def same_prediction(
    session: Session, encodings: Sequence[Encoding], scores: Mapping[str, Sequence[Floats]]
) -> list[float | None]:
    """Return 1 per text if only the top 30% of student and of teacher give the same prediction."""
    keeps = [
        [
            _only(s, rank(s)[: top_count(len(s), 30)])
            for s in (scores[who][text] for who in READERS[:2])
        ]
        for text in range(len(encodings))
    ]
    classes = answers(session, encodings, keeps).argmax(axis=2)
    return [float(first == second) for first, second in classes]


def own_readings(
    session: Session,
    encodings: Sequence[Encoding],
    targets: Sequence[int],
    full: Sequence[float],
    labels: Sequence[Ints],
    scores: Mapping[str, Sequence[Floats]],
) -> dict[str, list[float | None]]:
    """Read explanations with as many tokens as the student labels positive, and negative.

    The student's are those that it labels so; of teacher and random scores they are as many of the
    largest and of the smallest. `agreement`: is the prediction the same from the positive tokens
    alone? `positive` and `negative`: how far do the log-odds fall without them? None where the
    student labels no token so. `both own`: is the prediction the same from the student's positive
    tokens as from the teacher's? The numbers of tokens are `count positive` and `count negative`.
    """
    every: list[list[Bools]] = []
    counts = []
    for text, own in enumerate(labels):
        up, down = np.flatnonzero(own >= LOW_POSITIVE), np.flatnonzero(own <= LOW_NEGATIVE)
        counts.append((len(up), len(down)))
        keeps = []
        for who in READERS:
            s = scores[who][text]
            top, bottom = (up, down) if who == "student" else (
                rank(s)[: len(up)], rank(-s)[: len(down)],
            )  # fmt: skip
            keeps += [_only(s, top), _without(s, top), _without(s, bottom)]
        every.append(keeps)
    answered = answers(session, encodings, every)
    found: dict[str, list[float | None]] = {
        f"count {name}": [float(count[place]) for count in counts]
        for place, name in enumerate(OWN[1:])
    }
    alike = answered[:, 0].argmax(axis=1) == answered[:, len(OWN)].argmax(axis=1)
    found["both own"] = [
        float(same) if count[0] else None for same, count in zip(alike, counts, strict=True)
    ]
    for number, who in enumerate(READERS):
        for place, name in enumerate(OWN):
            here = answered[:, len(OWN) * number + place]
            found[f"{name} {who}"] = [
                None
                if not counts[text][name == "negative"]
                else float(line.argmax() == target)
                if name == "agreement"
                else log_odds(whole) - log_odds(float(np.exp(line[target])))
                for text, (line, target, whole) in enumerate(zip(here, targets, full, strict=True))
            ]
    return found


def answers(
    session: Session, encodings: Sequence[Encoding], keeps: Sequence[Sequence[Bools]]
) -> Floats:
    """Return log-probabilities [texts, masks, classes] of each text under each of its masks."""
    mask = session.model.erasure_id("mask")
    rows = [
        erase(encoding, keep, "mask", mask)
        for encoding, of in zip(encodings, keeps, strict=True)
        for keep in of
    ]
    answered = session.engine.log_probabilities(rows)
    return answered.reshape(len(encodings), -1, answered.shape[1])


def student_labels(
    model: Model,
    folder: Path,
    seed: int,
    encodings: Sequence[Encoding],
    targets: Sequence[int],
) -> list[Ints]:
    """Return, per text, the most probable label of each erasable token, from 0 to 4."""
    student = load_student(folder, read_student(folder), seed, model)
    vectors: Any = model.network.get_input_embeddings()
    labels: list[Ints] = []
    for start in range(0, len(encodings), _BATCH):
        part = encodings[start : start + _BATCH]
        batch = collate(model, part, targets[start : start + _BATCH], [0] * len(part))
        with torch.no_grad():
            outputs = student(vectors, batch.ids, batch.types, batch.attention, batch.targets)
        best = outputs[:, 1:-1].argmax(dim=-1).cpu().numpy()
        assert best.max() <= HIGH_POSITIVE
        labels += [
            line[: len(encoding.ids)][encoding.erasable]
            for line, encoding in zip(best, part, strict=True)
        ]
    return labels


def _only(scores: Floats, chosen: Ints) -> Bools:
    return ~_without(scores, chosen)


def _without(scores: Floats, chosen: Ints) -> Bools:
    keep = np.ones(len(scores), dtype=bool)
    keep[chosen] = False
    return keep
