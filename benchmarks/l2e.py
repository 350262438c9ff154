"""Distil explainers into students (L2E), and ask what they gain and lose against their teachers.

    python benchmarks/l2e.py students --task sst2 --data <data folder> [--out students]
    python benchmarks/l2e.py measure --task sst2 --data <data folder> [--records results/l2e]
    python benchmarks/l2e.py tables [--records results/l2e] [--no-write]
    python benchmarks/l2e.py joint [--records results/l2e] [--no-write]
    python benchmarks/l2e.py speed --task sst2 --data <data folder> --student <folder>

`students` distils what is not there yet; `measure` explains the same test texts with every student
that is there, with its teacher and at random. Both continue where they were stopped, and may run
several times at once: each takes what no other works on. `tables` and `joint` write sections of
RESULTS.md from what is measured by then. `speed` takes one run on an otherwise idle core. What is
distilled, from how many texts, is in `l2e_study.py`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from l2e_study import SEEDS, TEXTS, Pair, joint, study
from saloss import claimed


def make_students(
    task: str, data: Path, out: Path, explanations: Path, model: str | None, teacher: str | None
) -> None:
    """Distil the students that are not there yet and that no other process is making."""
    from faithbench.core.types import quiet
    from faithbench.data.tasks import load_task
    from faithbench.training.card import is_finished
    from faithbench.training.distil.distil import DistilRequest, distil
    from faithbench.training.distil.recipe import DistilRecipe

    for pair in wanted(task, teacher):
        folder = out / pair.folder
        with claimed(out, f"distil-{pair.folder}") as mine:
            if not mine or is_finished(folder):
                continue
            request = DistilRequest(
                load_task(task),
                pair.teacher,
                DistilRecipe(form=pair.form, target=pair.target),
                seeds=SEEDS,
                model=model,
                folder=data,
                limit=pair.texts,
                jobs=1,
                out=folder,
                explanations=explanations,
            )
            made = distil(request, quiet)
            told = [f"{one.correlation or 0:.3f}" for one in made.card.initialisations]
            print(f"{pair.folder}: correlation with the teacher {', '.join(told)}", flush=True)


def wanted(task: str, teacher: str | None) -> list[Pair]:
    """Return the students of a task, each once; those of one teacher alone, if asked."""
    every = dict.fromkeys((*study(task), *joint(task)))
    return [pair for pair in every if teacher in (None, pair.teacher)]


def main() -> None:
    """Run one of the commands."""
    asked = _parser().parse_args()
    if asked.command == "students":
        explanations = asked.explanations or asked.out / "explanations"
        make_students(asked.task, asked.data, asked.out, explanations, asked.model, asked.teacher)
    elif asked.command == "measure":
        from l2e_measure import measure

        measure(asked.task, asked.data, asked.out, asked.records, asked.model)
    elif asked.command == "speed":
        from l2e_speed import speed

        speed(asked.task, asked.data, asked.student, asked.model, write=not asked.no_write)
    else:
        _tell(asked.command, asked.records, write=not asked.no_write)


def _tell(command: str, records: Path, *, write: bool) -> None:
    """Print the tables of a command, or write them as its section of RESULTS.md."""
    from l2e_compare import read_notes
    from l2e_joint import joint_tables
    from l2e_tables import tables

    notes = read_notes(records)
    titles = {"tables": "L2E", "joint": "L2E: several teachers in one student"}
    body = tables(notes) if command == "tables" else joint_tables(notes)
    if not write:
        print(body)
        return
    from tables import write_section

    write_section(titles[command], f"python benchmarks/l2e.py {command}", body, timed=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    students, measure, tables, together, speed = (
        commands.add_parser(name) for name in ("students", "measure", "tables", "joint", "speed")
    )
    for one in (students, measure, speed):
        one.add_argument("--task", choices=TEXTS, default="sst2")
        one.add_argument("--data", type=Path, required=True)
        one.add_argument("--model", help="the model to explain, if not the task's own")
    for one in (students, measure):
        one.add_argument("--out", type=Path, default=Path("students"))
    for one in (measure, tables, together):
        one.add_argument("--records", type=Path, default=Path("results/l2e"))
    for one in (tables, together, speed):
        one.add_argument("--no-write", action="store_true", help="print, and change no file")
    students.add_argument("--explanations", type=Path, help="those of the teachers")
    students.add_argument("--teacher", help="make the students of this teacher alone")
    speed.add_argument("--student", type=Path, required=True)
    return parser


if __name__ == "__main__":
    main()
