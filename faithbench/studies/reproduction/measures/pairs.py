"""A student beside its teacher: what records of single explainers do not have (L2E, Table 1).

Whether the predictions on a student's and on its teacher's explanation are the same, and what
happens with as many tokens as the student labels positive or negative.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from faithbench.core.erasure import erase, top_count
from faithbench.core.types import Bools, Encoding, Floats, Ints, rank
from faithbench.explainers.students.card import load_student, read_student
from faithbench.metrics.faithfulness import log_odds
from faithbench.metrics.stability import HIGH_POSITIVE, LOW_NEGATIVE, LOW_POSITIVE
from faithbench.models.encoding import collate
from faithbench.models.model import Model
from faithbench.models.session import Session

READERS = ("student", "teacher", "random")
OWN = ("agreement", "positive", "negative")
_BATCH = 32


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
