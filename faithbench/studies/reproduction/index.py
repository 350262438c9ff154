"""The page of all papers: how many of their claims hold here, and each claim with its verdict."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import replace_file
from faithbench.leaderboard.pages.formatting import grid
from faithbench.studies.reproduction.page import PAGE, VERDICTS, item_name, said, verdict_counts
from faithbench.studies.reproduction.result import ClaimResult, Reproduction, read_reproduction
from faithbench.studies.reproduction.trials import ALONE

_TITLE = "# Reproductions"


def write_index(out: Path) -> None:
    """Write the page of all papers below a folder: how many of their claims hold."""
    index = out / PAGE
    if index.is_file() and not index.read_text(encoding="utf-8").startswith(_TITLE):
        return  # somebody else's page
    found = []
    for folder in sorted(path for path in out.iterdir() if path.is_dir()):
        with suppress(FaithbenchError):  # a broken neighbour is told when it is asked for
            one = read_reproduction(folder)
            found += [] if one is None else [one]
    blocks = [_TITLE, summary_table(found), _untested_counts(found)]
    blocks.append(
        "Made by `faithbench reproduce all --data DATA`. Verdicts speak of the stand-ins and texts "
        "that were measured here; each page says where they depart from the paper's. How they are "
        "reached: [docs/reproduce.md](../docs/reproduce.md)."
    )
    if any(one.quick for one in found):
        blocks.append("**Quick reproductions: no number of them means anything.**")
    for one in found:
        rows = [
            (item_name(item.id), said(claim), _verdict_cell(claim))
            for items in one.sources.values()
            for item in items.values()
            for claim in item.claims
        ]
        blocks.append(f"## [{one.paper}]({one.paper}/README.md)")
        blocks.append(grid(rows, ("", "claim", "verdict"), names=3))
    replace_file(index, ("\n\n".join(blocks) + "\n").encode())


def summary_table(found: Sequence[Reproduction]) -> str:
    """Return how many claims of each paper hold, do not hold, and cannot be told."""
    rows = []
    for one in found:
        counts = verdict_counts(one.claims)
        number = str(sum(counts.values()))
        rows.append((one.paper, number, *(str(counts[name]) for name in VERDICTS)))
    totals = [str(sum(int(row[place]) for row in rows)) for place in range(1, 5)]
    rows.append(("**all**", *totals))
    return grid(rows, ("paper", "claims", *VERDICTS))


def _untested_counts(found: Sequence[Reproduction]) -> str:
    counts = verdict_counts([c for one in found for c in one.claims if is_untested(c)])
    return (
        f"{counts['holds']} of those that hold, and {counts['does not hold']} of those that do "
        'not, were decided by single numbers, without a test: "no test" below.'
    )


def is_untested(claim: ClaimResult) -> bool:
    """Return whether a claim was decided by single numbers alone."""
    reached = [trial for trial in claim.trials if trial.side != "missing"]
    return claim.verdict != VERDICTS[2] and all(trial.why == ALONE for trial in reached)


def _verdict_cell(claim: ClaimResult) -> str:
    return f"**{claim.verdict}**" + (", no test" if is_untested(claim) else "")
