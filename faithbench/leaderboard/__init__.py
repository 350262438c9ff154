"""From records to a ranking: tables, overall ranks, and the pages that show them.

Three steps, each a command. `read_plan` and `run_plan` run what a plan names and has no record
yet; `publish_results` copies finished records, trimmed and packed (`complete` brings them up to
date when a metric changes); `build_files` makes a `Board` of all published and submitted records,
and every file of the leaderboard of that board alone. Of submissions, only what
`records.passed` lists takes part.

    submitted = accepted_submissions(Path("submissions"), Path("leaderboard/passed.json"))
    board, files = build_files(Path("leaderboard/records"), submitted.accepted)
    write_files(files, Path("leaderboard"))

A board comes about in `gather` (comparable records), `columns`, `standings`, `column_power`,
`cost_columns` and `examples` (of one group), `tables`, `rankings` and `operators` (of all), and
`findings` says it in sentences. The folder `pages` writes it as markdown and LaTeX, `html` as one
page.
"""

from faithbench.leaderboard.board import Board
from faithbench.leaderboard.build import build_files, differences, make_board, render, write_files
from faithbench.leaderboard.plan import Plan, read_plan, run_plan
from faithbench.leaderboard.publish import publish_results

__all__ = [
    "Board",
    "Plan",
    "build_files",
    "differences",
    "make_board",
    "publish_results",
    "read_plan",
    "render",
    "run_plan",
    "write_files",
]
