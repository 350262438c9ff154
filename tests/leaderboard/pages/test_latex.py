"""Tables for papers: a tabular per family, with nothing that LaTeX would obey."""

from __future__ import annotations

from faithbench.leaderboard.board import Score, Table
from faithbench.leaderboard.pages.latex import latex
from tests.support.boards import small_board


def table_with(scores: dict[str, Score]) -> Table:
    table = small_board().tables[1]
    column = table.columns[0].model_copy(update={"cells": scores})
    return table.model_copy(update={"columns": (column,)})


BEST = Score(mean=0.5, ci95=(0.4, 0.6), n=9, skipped=0, letters="a", best=True, tie=False)
TIED = Score(mean=0.45, ci95=None, n=9, skipped=0, letters="ab", best=False, tie=True)
WORSE = Score(mean=-0.25, ci95=None, n=9, skipped=0, letters="", best=False, tie=False)
NONE = Score(mean=None, ci95=None, n=0, skipped=9, letters="", best=False, tie=False)


def test_best_and_ties_are_bold_with_letters() -> None:
    text = latex(table_with({"a": BEST, "b": TIED, "c": WORSE, "d": NONE}))
    body = text.split("\\midrule\n")[1].split("\\bottomrule")[0]
    rows = [
        [part.strip() for part in line.removesuffix("\\\\").split("&")]
        for line in body.splitlines()
    ]
    assert rows == [
        ["a", r"\textbf{.500}\textsuperscript{a}"],
        ["b", r"\textbf{.450}\textsuperscript{ab}"],
        ["c", "-.250"],
        ["d", "--"],
    ]
    assert r"AOPC $\uparrow$" in text and r"\begin{tabular}{lr}" in text


def test_every_family_has_a_tabular_and_proxies_are_named() -> None:
    text = latex(small_board().tables[0])
    assert text.count(r"\begin{tabular}") == text.count(r"\end{tabular}") == 4
    assert "\n% plausibility (proxy rationales)\n" in text and "\n% speed\n" in text
    assert text.startswith("% made by `faithbench leaderboard build`")


def test_names_cannot_become_commands() -> None:
    text = latex(table_with({"\\input{x}": BEST, "a_b & 50%": WORSE, "\ue000bold\ue001": WORSE}))
    assert "\\input" not in text and r"a\_b \& 50\%" in text
    assert "bold" in text and r"\textbf{bold" not in text, "no stand-in comes in with data"
