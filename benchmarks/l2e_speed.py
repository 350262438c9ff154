"""CPU seconds of a student, of the model's own forward, and of teachers: one run, one thread."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
from l2e_chart import chart
from tabulate import tabulate

from faithbench.core.types import Encoding, Floats
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.explainers.l2e import L2e
from faithbench.explainers.selection import Selected, find_explainers, select_object
from faithbench.models.encoding import collate, encode
from faithbench.models.model import Model, load_model
from faithbench.models.session import Session
from faithbench.run.attribute import explain, seed_of
from faithbench.run.request import model_for

TEXTS = 200
BATCH = 64
TEACHERS = ("input-x-gradient", "lrp", "deep-shap", "occlusion", "lime:samples=64")
SLOWEST = "lime:samples=1000"
FEW = 4
"""Texts that the slowest teacher explains."""
ALONE = 20
"""Texts that are explained one at a time."""
AIMS = (("occlusion", 15, 100), (SLOWEST, 400, 3000))
"""How many times as fast as a teacher: with the forward that finds out the class, and without."""
PICTURE = Path(__file__).parents[1] / "docs" / "l2e-speed.svg"


@dataclass(frozen=True)
class Timed:
    """What an explainer took: CPU seconds per 1,000 texts, CPU ms of one, forward equivalents."""

    name: str
    seconds: float
    alone: float
    cost: float
    texts: int


@dataclass(frozen=True)
class Texts:
    """Test texts sorted by length, and the classes that the model predicts."""

    encodings: tuple[Encoding, ...]
    targets: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.encodings)

    def part(self, places: Sequence[int]) -> Texts:
        """Return the texts at some places."""
        return Texts(
            tuple(self.encodings[i] for i in places), tuple(self.targets[i] for i in places)
        )

    def even(self, count: int) -> Texts:
        """Return texts drawn evenly by length: the middle ones of as many equal groups."""
        places = (np.arange(count) + 0.5) * len(self) / count
        return self.part([int(place) for place in places])


def speed(task: str, data: Path, student: Path, model: str | None, *, write: bool) -> None:
    """Time everything in one run, and write the section and its picture, or print them."""
    torch.set_num_threads(1)
    loaded, texts = read_texts(task, data, model)
    timed = measure(loaded, texts, student)
    body = table(task, timed, texts)
    picture = chart(
        [(one.name, one.seconds) for one in timed],
        f"CPU seconds per 1,000 {task} texts, log scale",
    )
    if not write:
        print(body)
        return
    from tables import write_section

    PICTURE.write_text(picture)
    command = (
        f"python benchmarks/l2e.py speed --task {task} --data <data folder> --student <folder>"
    )
    write_section(f"L2E: speed ({task})", command, f"{body}\n\n![Speed](../docs/{PICTURE.name})")


def read_texts(task: str, data: Path, model: str | None) -> tuple[Model, Texts]:
    """Load the model and the test texts, drawn by digest, as the engine predicts them."""
    the_task = load_task(task)
    examples = load_dataset(the_task, folder=data, limit=TEXTS)
    name, revision = model_for(the_task, examples, model)
    loaded = load_model(name, labels=the_task.labels, kind=the_task.kind, revision=revision)
    encodings = sorted(
        (encode(loaded, example, the_task.evidence) for example in examples.examples),
        key=lambda encoding: (len(encoding.ids), encoding.example.id),
    )
    with Session(loaded) as session:
        classes = forward(session, encodings).argmax(axis=1)
    return loaded, Texts(tuple(encodings), tuple(int(target) for target in classes))


def measure(model: Model, texts: Texts, student: Path) -> list[Timed]:
    """Time the forward, the student, both, and the teachers, the fast ones several times."""
    learned = select_object(L2e(student=str(student)))
    model_alone = time_one(model, texts, None, repeats=5)
    student_alone = time_one(model, texts, learned, repeats=5)
    timed = [
        student_alone,
        model_alone,
        Timed(
            "student + forward",
            student_alone.seconds + model_alone.seconds,
            student_alone.alone + model_alone.alone,
            student_alone.cost + model_alone.cost,
            len(texts),
        ),
    ]
    for name in TEACHERS:
        (chosen,) = find_explainers(name)
        slow = name not in ("input-x-gradient", "lrp", "deep-shap")
        timed.append(time_one(model, texts, chosen, repeats=1 if slow else 3))
        print(f"{name}: {timed[-1].seconds:.1f} CPU s per 1,000", flush=True)
    (slowest,) = find_explainers(SLOWEST)
    return [*timed, time_one(model, texts.even(min(FEW, len(texts))), slowest, repeats=1)]


def time_one(model: Model, texts: Texts, selected: Selected | None, repeats: int) -> Timed:
    """Time an explainer, or the model's own forward: the median of some rounds over all texts."""
    name = "the model's forward" if selected is None else _name(selected)
    batched = [
        texts.part(range(i, min(i + BATCH, len(texts)))) for i in range(0, len(texts), BATCH)
    ]
    few = texts.even(min(ALONE if repeats > 1 else FEW, len(texts)))
    # One session for all, as in a run: packing the model's weights takes longer than a short text,
    # and happens outside the clock, in the warm-up.
    with Session(model) as session:
        seconds_of(session, texts.even(1), selected)
        rounds = [[seconds_of(session, one, selected) for one in batched] for _ in range(repeats)]
        alone = [
            median(seconds_of(session, few.part([place]), selected)[0] for _ in range(repeats))
            for place in range(len(few))
        ]
    total = median(sum(spent for spent, _ in one) for one in rounds)
    cost = sum(cost for _, cost in rounds[0]) / len(texts)
    return Timed(name, 1000 * total / len(texts), 1000 * median(alone), cost, len(texts))


def seconds_of(session: Session, texts: Texts, selected: Selected | None) -> tuple[float, float]:
    """Return the CPU seconds and the forward equivalents of explaining texts in one batch.

    The session forgets rows and passes before, so that nothing is known from another batch.
    """
    session.clear()
    seeds = [seed_of(0, encoding.example.id) for encoding in texts.encodings]
    before, start = session.meter.total, time.process_time()
    if selected is None:
        forward(session, texts.encodings)
    else:
        batch = collate(session.model, texts.encodings, texts.targets, seeds)
        explain(session, selected.explainer, batch)
    spent = time.process_time() - start
    return spent, session.meter.since(before).forward_equivalents


def forward(session: Session, encodings: Sequence[Encoding]) -> Floats:
    """Predict texts through the engine."""
    return session.engine.log_probabilities([(one.ids, one.types) for one in encodings])


def _name(selected: Selected) -> str:
    return "student" if selected.name == "l2e" else selected.label.replace(":samples=", "-")


def table(task: str, timed: Sequence[Timed], texts: Texts) -> str:
    """Return the table of all, with ratios to the student with and without the forward."""
    by_name = {one.name: one for one in timed}
    bare, whole = by_name["student"].seconds, by_name["student + forward"].seconds
    rows = []
    for one in timed:
        ratios = (f"{one.seconds / whole:.2g}", f"{one.seconds / bare:.2g}")
        if one.seconds > 10 * whole:
            ratios = (f"{one.seconds / whole:,.0f}", f"{one.seconds / bare:,.0f}")
        mark = "" if one.texts == len(texts) else f" ({one.texts} texts)"
        rows.append(
            (
                one.name + mark,
                f"{one.seconds:,.2f}",
                *ratios,
                f"{one.alone:,.1f}",
                f"{one.cost:,.3g}",
            )
        )
    head = (
        "what", "CPU s per 1,000", "times student + forward", "times student", "one alone, ms",
        "forward equivalents",
    )  # fmt: skip
    shown = tabulate(rows, head, "pipe", disable_numparse=True, colalign=("left", *["right"] * 5))
    tokens = sum(len(encoding.ids) for encoding in texts.encodings) / len(texts)
    return (
        f"{len(texts)} test texts of {task}, {tokens:.0f} tokens on average, in batches of {BATCH} "
        f"sorted by length; CPU seconds of one thread, the median of 5 rounds (forward, student), "
        f"3 (gradients) or 1. One alone: the median text of {ALONE} (of {FEW} where there is one "
        f"round), drawn evenly by length. The student is told the class that the model predicts; "
        f"whoever has not asked the model yet pays its forward too.\n\n{shown}\n\n"
        + " ".join(_aims(by_name, bare, whole))
    )


def _aims(by_name: dict[str, Timed], bare: float, whole: float) -> list[str]:
    """Say which aims are met: those of the ratios, and that of the student's own seconds."""
    told = [
        f"Aimed at: at most 2 CPU s per 1,000 for the student alone: {bare:.2f}, {_met(bare <= 2)}."
    ]
    for name, with_forward, without in AIMS:
        shown = name.replace(":samples=", "-")
        if shown not in by_name:
            continue
        first, second = (by_name[shown].seconds / base for base in (whole, bare))
        told.append(
            f"{with_forward} times as fast as {shown} counting the forward: {first:,.0f}, "
            f"{_met(first >= with_forward)}; {without:,} times without it: {second:,.0f}, "
            f"{_met(second >= without)}."
        )
    return told


def _met(is_met: bool) -> str:
    return "met" if is_met else "**missed**"
