"""What the commands of submissions are given: folders, files beside them, and limits on code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faithbench.cli.help.command import DATA, LIMITS
from faithbench.cli.options import PASSED

Folders = Annotated[
    list[str], typer.Argument(help="Folders of submissions, or all.", metavar="FOLDER|all")
]
Root = Annotated[
    Path,
    typer.Option(metavar="FOLDER", help="Folder of all submissions.", rich_help_panel=DATA),
]
PassedOfRoot = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help=f"File of passed checks. By default {PASSED}, beside the root.",
        rich_help_panel=DATA,
    ),
]
RecordsOfRoot = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Folder of the leaderboard's records. By default leaderboard/records, "
        "beside the root.",
        rich_help_panel=DATA,
    ),
]
Seconds = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Stop each submission after N seconds.",
        rich_help_panel=LIMITS,
    ),
]
Memory = Annotated[
    int,
    typer.Option(
        min=256,
        metavar="N",
        help="Allow each submission N MB of memory.",
        rich_help_panel=LIMITS,
    ),
]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Run only where every limit can be enforced.",
        rich_help_panel=LIMITS,
    ),
]

AllowUnconfined = Annotated[
    bool,
    typer.Option(
        "--allow-unconfined",
        help="Run them even where no limit on files or network is enforced.",
        rich_help_panel=LIMITS,
    ),
]
