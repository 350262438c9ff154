"""The claim of Mask-LRP, tested: syntactic and positional heads against as many random ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from faithbench.leaderboard.board import BoardRow, Table
from faithbench.leaderboard.rankings import counted_tables
from faithbench.leaderboard.standings import GATE
from faithbench.stats.pairwise import ALPHA, holm

FORMS = ("paper", "random heads", "released code", "calibrated", "no mask")
"""How the method is run: by the paper's thresholds, with as many heads drawn at random, as its code
does, with thresholds calibrated on dev, and as the method that it adds masks to."""


@dataclass(frozen=True)
class HeadTest:
    """One table: the AOPC of each form, and the test of the paper's heads against random ones.

    `effect` is positive where the paper's heads are better; `adjusted` is p after Holm over tables.
    `detectable` is the smallest difference that the table can show.
    """

    table: str
    aopc: dict[str, float]
    labels: dict[str, str]
    p: float | None
    effect: float
    adjusted: float | None
    detectable: float | None

    @property
    def verdict(self) -> str:
        """Return what the test says of the claim."""
        if self.adjusted is None or self.adjusted >= ALPHA:
            return "no difference found"
        return "holds" if self.effect > 0 else "the opposite holds"


def head_tests(tables: Sequence[Table]) -> list[HeadTest]:
    """Test the claim on every table that counts and has both; Holm over the tables."""
    tests = [_head_test(table) for table in counted_tables(tables)]
    known = [test for test in tests if test is not None]
    stepped = iter(holm([test.p for test in known if test.p is not None]))
    return [test if test.p is None else replace(test, adjusted=next(stepped)) for test in known]


def _head_test(table: Table) -> HeadTest | None:
    forms = {form: row.label for row in table.entrants if (form := form_of(row))}
    column = next((c for c in table.columns if c.metric == GATE), None)
    if column is None or not {"paper", "random heads"} <= set(forms):
        return None
    paper, random = forms["paper"], forms["random heads"]
    pair = next((p for p in column.pairs if {p.first, p.second} == {paper, random}), None)
    cells = {form: column.cells[label] for form, label in forms.items() if label in column.cells}
    sign = 1 if pair is None or pair.first == paper else -1
    return HeadTest(
        table=table.id,
        aopc={form: cell.mean for form, cell in cells.items() if cell.mean is not None},
        labels=forms,
        p=None if pair is None else pair.p,
        effect=0.0 if pair is None else sign * pair.effect,
        adjusted=None,
        detectable=None if column.power is None else column.power.detectable,
    )


def form_of(row: BoardRow) -> str | None:
    """Return which form of the method a row is, if it is one of those that are compared."""
    settings = row.settings
    if row.submission is not None:
        return None
    if row.name == "lrp-rollout" and not settings.get("last_only"):
        return "no mask"
    if row.name != "lrp-mask":
        return None
    forms = {
        ("paper", "both", False): "paper",
        ("paper", "random", False): "random heads",
        ("paper", "both", True): "released code",
        ("calibrated", "both", False): "calibrated",
    }
    released = bool(settings.get("released"))
    return forms.get((str(settings.get("thresholds")), str(settings.get("mask")), released))
