"""Students of several teachers in one against students of each teacher alone."""

from __future__ import annotations

from collections.abc import Sequence

from l2e_compare import Line, Note, adjusted_of, mean_text
from l2e_tables import ABOVE_CHANCE, AGREEMENT, AOPC, LOG_ODDS, RAW
from tabulate import tabulate

IN_JOINT = (AGREEMENT, LOG_ODDS, AOPC, *(
    of[name] for name in ("iou_semantic", "iou_lexical") for of in (RAW, ABOVE_CHANCE)
))  # fmt: skip

MARKS = {"better": "**", "worse": "_", "even": ""}
"""Around the value of a student that the joint one is better or worse than."""


def joint_tables(notes: Sequence[Note]) -> str:
    """Return how students of several teachers compare with those of each alone."""
    parts = []
    for together in (note for note in notes if note.pair.joint):
        pair = together.pair
        parts.append(
            _joint_table(
                together,
                [
                    note
                    for note in notes
                    if not note.pair.joint
                    and note.pair.target == pair.target
                    and (note.pair.task, note.pair.form) == (pair.task, pair.form)
                    and note.pair.teacher in pair.teacher.split(",")
                ],
            )
        )
    return (
        "\n\n".join(parts) + "\n" if parts else "No student of several teachers is measured yet.\n"
    )


def _joint_table(together: Note, alone: Sequence[Note]) -> str:
    """Return a line for the joint student and one for each of the others, with tests."""
    grid = [
        Line(note, measure, together.values(measure, "student"), note.values(measure, "student"),
             note.values(measure, "random"))
        for note in alone
        for measure in IN_JOINT
    ]  # fmt: skip
    adjusted = adjusted_of(grid)
    outcome = [line.outcome(p) for line, p in zip(grid, adjusted, strict=True)]
    own = [mean_text(together.values(m, "student"), m.decimals) for m in IN_JOINT]
    rows = [["all of them", str(together.texts), *own]]
    for number, note in enumerate(alone):
        cells = []
        for place, measure in enumerate(IN_JOINT):
            text = mean_text(note.values(measure, "student"), measure.decimals)
            mark = MARKS[outcome[number * len(IN_JOINT) + place]]
            cells.append(f"{mark}{text}{mark}")
        rows.append([note.pair.shown, str(note.texts), *cells])
    head = ("student of", "texts", "agreement", "delta log-odds", "AOPC", "semantic raw",
            "above chance", "lexical raw", "above chance")  # fmt: skip
    shown = tabulate(rows, head, "pipe", disable_numparse=True)
    told = "; ".join(
        f"by {measure.title} better than {found.count('better')} and worse than "
        f"{found.count('worse')} of {len(alone)}"
        for place, measure in enumerate(IN_JOINT)
        for found in [outcome[place :: len(IN_JOINT)]]
    )
    pair = together.pair
    return (
        f"### {pair.task}, {pair.form}\n\n{shown}\n\nBold: the joint student is significantly "
        f"better than this one, italic: worse (signed ranks over texts, Holm over the table). It "
        f"is {told}."
    )
