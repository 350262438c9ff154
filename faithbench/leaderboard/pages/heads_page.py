"""The page on Mask-LRP's heads: the paper's claim, tested on every table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from faithbench.leaderboard.board import Board
from faithbench.leaderboard.head_claim import FORMS, HeadTest, head_tests
from faithbench.leaderboard.pages.formatting import MADE, counted, grid, markdown, number
from faithbench.stats.pairwise import ALPHA


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
        "against as many heads drawn at random (five draws for every text, their mean), paired by "
        "text, by AOPC.\n"
    )
    yield f"{summary(tests)}\n"
    headers = ["table", *(f"{form} ↑" for form in FORMS)]
    headers += ["effect", "p", "p after Holm", "the claim"]
    yield grid([_cells(test) for test in tests], headers) + "\n"
    yield (
        "*paper*: thresholds .1 and .8; *released code*: the same with the published code's rules; "
        "*calibrated*: the strictest mask that is not worse than none on dev texts, all heads if "
        "there is none (`faithbench heads` prints the whole grid); *no mask*: `lrp-rollout`. "
        "Effect: rank-biserial, + where the paper's heads are better. p: Wilcoxon signed-rank, "
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
        f"{test.effect:+.2f}",
        "-" if test.p is None else f"{test.p:.2g}",
        "-" if test.adjusted is None else f"{test.adjusted:.2g}",
        test.verdict,
    ]


def _mean_text(mean: float | None, best: float) -> str:
    text = number(mean)
    return f"**{text}**" if mean == best else text
