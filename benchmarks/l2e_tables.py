"""The tables of the study of L2E, as those of the paper, and what they say in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from l2e_compare import (
    Line,
    Measure,
    Note,
    adjusted_of,
    lines_of,
    mean_text,
    overall,
    short,
    spread,
)
from l2e_study import study
from tabulate import tabulate

AGREEMENT = Measure("agreement", "agreement", 3)
LOG_ODDS = Measure("delta_log_odds", "delta log-odds", 2)
AOPC = Measure("aopc", "AOPC", 3)
OWN_AGREEMENT = Measure("agreement", "agreement of labelled tokens", 3, reading=True)
POSITIVE = Measure("positive", "positive delta log-odds", 2, reading=True)
NEGATIVE = Measure("negative", "negative delta log-odds", 2, False, reading=True)
OVERLAPS = {
    "iou_semantic": "Table 3: overlap (IoU) of the top 30% words with the 3 nearest in meaning",
    "iou_lexical": "Table 7: overlap (IoU) of the top 30% words with the 3 nearest in wording",
    "iou_labels": "Table 3, labelling: overlap (IoU) by sign and strength, nearest in meaning",
}
RAW = {name: Measure(f"{name}:variant=raw", f"{name}, raw", 3) for name in OVERLAPS}
ABOVE_CHANCE = {name: Measure(name, f"{name}, above chance", 4) for name in OVERLAPS}


def tables(notes: Sequence[Note]) -> str:
    """Return all tables of the study, and what they say in sentences."""
    single = [note for note in notes if "teacher" in note.records and _usual(note)]
    if not single:
        return "Nothing is measured yet.\n"
    parts = [
        _preamble(single),
        findings(single),
        _targets(single),
        _part("Table 1, top 30%: agreement of the prediction", single, [AGREEMENT], both="both"),
        _part(
            "Table 1, labelling: agreement, with as many tokens as the student labels positive",
            single, [OWN_AGREEMENT], count="count positive", both="both own",
        ),
        _part(
            "Table 2: positive delta log-odds, without as many tokens (higher is better)",
            single, [POSITIVE], count="count positive",
        ),
        _part(
            "Table 8: negative delta log-odds, without as many tokens as the student labels "
            "negative (lower is better)",
            single, [NEGATIVE], count="count negative",
        ),
        _part("Table 9: delta log-odds without the top 30%", single, [LOG_ODDS]),
        *(
            _part(
                f"{title}: raw, and above chance on content words",
                [note for note in single if name != "iou_labels" or note.pair.form == "labelling"],
                [RAW[name], ABOVE_CHANCE[name]],
            )
            for name, title in OVERLAPS.items()
        ),
        _part("AOPC", single, [AOPC]),
    ]  # fmt: skip
    return "\n\n".join(part for part in parts if part) + "\n"


def _usual(note: Note) -> bool:
    return note.pair in set(study(note.pair.task))


def _part(
    title: str, notes: Sequence[Note], measures: Sequence[Measure],
    *, both: str | None = None, count: str | None = None,
) -> str:  # fmt: skip
    """Return a table with its title and what it says; several measures take turns."""
    groups = [lines_of(notes, measure) for measure in measures]
    if not groups[0]:
        return ""
    adjusted = [adjusted_of(lines) for lines in groups]
    rows = []
    for number in range(len(groups[0])):
        for lines, ps in zip(groups, adjusted, strict=True):
            line, pair = lines[number], lines[number].note.pair
            row = [pair.task, pair.shown, pair.reading]
            row += [line.measure.title.partition(", ")[2]] if len(groups) > 1 else []
            row.append(str(line.test.n))
            if count is not None:
                row += [str(line.blank), mean_text(line.note.tables[count], 1)]
            row += line.cells(ps[number])
            if both is not None:
                row.append(spread(line.note.tables[both], 3))
            rows.append(row)
    head = ["task", "teacher", "form"] + ["overlap"] * (len(groups) > 1) + ["n"]
    head += ["blank", "tokens"] if count is not None else []
    head += ["random", "teacher's", "student's", "p"] + ["Both"] * (both is not None)
    shown = tabulate(rows, head, "pipe", disable_numparse=True)
    told = " ".join(_tally(lines, ps) for lines, ps in zip(groups, adjusted, strict=True))
    return f"### {title}\n\n{shown}\n\n{told}"


def outcomes(notes: Sequence[Note], measure: Measure) -> tuple[int, int, int]:
    """Return the number of students, and of those significantly better and worse."""
    lines = lines_of(notes, measure)
    told = [line.outcome(p) for line, p in zip(lines, adjusted_of(lines), strict=True)]
    return len(told), told.count("better"), told.count("worse")


def _tally(lines: Sequence[Line], adjusted: Sequence[float | None]) -> str:
    told = [line.outcome(p) for line, p in zip(lines, adjusted, strict=True)]
    higher = sum((overall(line.student) or 0) > (overall(line.teacher) or 0) for line in lines)
    return (
        f"By {lines[0].measure.title}, {told.count('better')} of {len(told)} students are "
        f"significantly better than their teacher and {told.count('worse')} worse; the mean is "
        f"higher in {higher}."
    )


def findings(notes: Sequence[Note]) -> str:
    """Return in sentences whether the claims of the paper hold here."""

    def told(measure: Measure) -> str:
        every, better, worse = outcomes(notes, measure)
        return f"{better} of {every} (significantly less: {worse})"

    faithful = ", ".join(
        f"{measure.title} {worse} of {every} (more: {better})"
        for measure in (AGREEMENT, LOG_ODDS, AOPC, OWN_AGREEMENT, POSITIVE, NEGATIVE)
        for every, better, worse in [outcomes(notes, measure)]
        if every
    )
    raw, above = (
        f"{told(of['iou_semantic'])} by neighbours in meaning and {told(of['iou_lexical'])} by "
        "neighbours in wording"
        for of in (RAW, ABOVE_CHANCE)
    )
    survives = [
        sum(outcomes(notes, of[name])[1] for name in ("iou_semantic", "iou_lexical"))
        for of in (RAW, ABOVE_CHANCE)
    ]
    verdict = (
        "There is no raw gain to survive the correction."
        if not survives[0]
        else "The gain in stability does not survive the correction for chance."
        if not survives[1]
        else f"Of {survives[0]} significant gains, {survives[1]} are left after the correction."
    )
    return (
        f"**More stable?** Raw overlaps, as in the paper: the student is significantly more stable "
        f"than its teacher in {raw}. Corrected for chance, on content words: in {above}. {verdict}"
        f"\n\n**As faithful?** Students that are significantly less faithful than their teacher: "
        f"{faithful}."
    )


def _preamble(notes: Sequence[Note]) -> str:
    """Return what all tables share, and how good the models are that are explained."""
    models = []
    for task in dict.fromkeys(note.pair.task for note in notes):
        rows = next(n for n in notes if n.pair.task == task).records["random"].rows
        right = fmean(row.right for row in rows)
        labels = [row.label for row in rows]
        share = max(labels.count(label) for label in set(labels)) / len(labels)
        weak = " (a weak model: little to explain)" if right < share + 0.1 else ""
        models.append(
            f"{task} {len(rows)} texts, {short(right, 3)} predicted right, commonest class "
            f"{short(share, 3)}{weak}; students learned from {_learned(notes, task)}"
        )
    return (
        f"The same test texts for all, drawn by digest. {'. '.join(models)}. A student's value is "
        "the mean of its three initialisations, in brackets the lowest and the highest; random "
        "scores have three seeds, teachers one. `by size`: student and teacher are read by "
        "magnitude. p: Wilcoxon's signed-rank test of student against teacher over n texts, after "
        "Holm over the whole table, bold below .05. `blank` counts the texts, once per "
        "initialisation, of which the student labels no token so; they are left out for all three. "
        "`tokens` is the mean number of tokens labelled so. `Both` is the share of texts of which "
        "the tokens of student and of teacher give the same prediction."
    )


def _learned(notes: Sequence[Note], task: str) -> str:
    """Return how many training texts the students of each teacher had."""
    teachers: dict[int, list[str]] = {}
    for note in notes:
        if note.pair.task == task and note.pair.shown not in teachers.get(note.texts, []):
            teachers.setdefault(note.texts, []).append(note.pair.shown)
    return ", ".join(f"{count:,} texts ({', '.join(of)})" for count, of in teachers.items())


def _targets(notes: Sequence[Note]) -> str:
    """Return how the students of deep-shap on sst2 meet what was aimed at."""
    chosen = [
        note
        for note in notes
        if (note.pair.task, note.pair.teacher) == ("sst2", "deep-shap")
        and note.pair.target == "signed"
    ]
    if not chosen:
        return ""
    rows = [
        _target("agreement", ".98", [_of(n, AGREEMENT)[0] for n in chosen], 0.98, 3),
        _target("log-odds / teacher's", ".95", [_ratio(n, LOG_ODDS) for n in chosen], 0.95, 3),
        _target("AOPC / teacher's", ".93", [_ratio(n, AOPC) for n in chosen], 0.93, 3),
        _target(
            "lexical IoU, raw, above the teacher's", ".01",
            [_gain(n, RAW["iou_lexical"]) for n in chosen], 0.01, 4,
        ),
    ]  # fmt: skip
    if all(note.costs for note in chosen):
        seconds = [sum(t["cpu_seconds"] for t in (n.costs or {})["training"]) for n in chosen]
        told = [f"{s:.0f} {'met' if s <= 300 else '**missed**'}" for s in seconds]
        rows.append(["training of all three, CPU s (lower)", "300", *told])
    head = ("deep-shap on sst2", "aim", *(note.pair.form for note in chosen))
    return "### What was aimed at\n\n" + tabulate(rows, head, "pipe", disable_numparse=True)


def _target(name: str, aim: str, values: Sequence[float], least: float, decimals: int) -> list[str]:
    return [
        name, aim,
        *(f"{short(v, decimals)} {'met' if v >= least else '**missed**'}" for v in values),
    ]  # fmt: skip


def _of(note: Note, measure: Measure) -> tuple[float, float]:
    """Return the means of student and teacher."""
    first, second = (overall(note.values(measure, who)) or 0.0 for who in ("student", "teacher"))
    return first, second


def _ratio(note: Note, measure: Measure) -> float:
    student, teacher = _of(note, measure)
    return student / teacher


def _gain(note: Note, measure: Measure) -> float:
    student, teacher = _of(note, measure)
    return student - teacher
