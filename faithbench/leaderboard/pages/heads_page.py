"""The page on Mask-LRP's heads: the paper's claim, tested on every table.

The claim: relevance that passes only syntactic and positional heads explains better than relevance
that passes as many other heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from faithbench.leaderboard.board import Board, BoardRow, Table
from faithbench.leaderboard.pages.formatting import MADE, counted, grid, markdown, number
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
    `detectable` is the smallest difference that the table can show, and `draws` the number of
    random masks for every text.
    """

    table: str
    aopc: dict[str, float]
    labels: dict[str, str]
    p: float | None
    effect: float
    adjusted: float | None
    detectable: float | None
    draws: int

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
        draws=next(len(row.seeds) for row in table.entrants if row.label == random),
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


def heads_page(board: Board) -> str | None:
    """Return the page, or None where no table has both kinds of heads."""
    tests = head_tests(board.tables)
    return "\n".join(_page_lines(tests)) + "\n" if tests else None


def _page_lines(tests: Sequence[HeadTest]) -> Iterator[str]:
    yield f"<!-- {MADE} -->"
    yield "# Do syntactic and positional heads matter?\n"
    yield (
        "Mask-LRP (Song et al. 2023) lets relevance pass only those attention heads that follow a "
        "syntactic relation or a fixed position, and claims that this makes explanations more "
        "faithful than other heads would. Here is the test of that claim: the paper's heads "
        "against as many heads drawn at random for every text (the mean of so many draws), paired "
        "by text, by AOPC.\n"
    )
    yield f"{summary(tests)}\n"
    headers = ["table", *(f"{form} ↑" for form in FORMS)]
    headers += ["draws", "shows from", "effect", "p", "p after Holm", "the claim"]
    yield grid([_cells(test) for test in tests], headers) + "\n"
    yield (
        "*paper*: thresholds .1 and .8; *released code*: the same with the published code's rules; "
        "*calibrated*: the strictest mask that is not worse than none on dev texts, all heads if "
        "there is none (`faithbench heads` prints the whole grid); *no mask*: `lrp-rollout`. "
        "Shows from: the smallest difference that the table's examples show. Effect: "
        "rank-biserial, + where the paper's heads are better. p: Wilcoxon signed-rank, "
        "Holm-Bonferroni over the tables.\n"
    )
    yield "[Overview](README.md)"


def summary(tests: Sequence[HeadTest]) -> str:
    """Tell in a sentence on how many tables the claim holds."""
    holds = sum(test.verdict == "holds" for test in tests)
    opposite = sum(test.verdict == "the opposite holds" for test in tests)
    rest = len(tests) - holds - opposite
    return (
        f"Of {counted(len(tests), 'table')}, the paper's heads are significantly better than "
        f"random ones (p < {number(ALPHA, 2)} after Holm) on {holds}, significantly worse on "
        f"{opposite}, and not told apart on {rest}."
    )


def _cells(test: HeadTest) -> list[str]:
    best = max(test.aopc.values())
    return [
        f"[{markdown(test.table)}](tasks/{test.table}.md)",
        *(_mean_text(test.aopc.get(form), best) for form in FORMS),
        str(test.draws),
        number(test.detectable),
        f"{test.effect:+.2f}",
        "-" if test.p is None else f"{test.p:.2g}",
        "-" if test.adjusted is None else f"{test.adjusted:.2g}",
        test.verdict,
    ]


def _mean_text(mean: float | None, best: float) -> str:
    text = number(mean)
    return f"**{text}**" if mean == best else text
