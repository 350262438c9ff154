"""What the leaderboard's commands do once their options are parsed."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard.build import build, differences, write_files
from faithbench.leaderboard.pages.formatting import counted


def run_command(
    *, plan: Path, only: list[str], data: Path | None, results: Path, records: Path
) -> None:
    """Run what is missing of a plan, and publish it."""
    from faithbench.cli.display import progress_on
    from faithbench.leaderboard.plan import read_plan, run_plan

    console = Console(highlight=False)
    wanted = read_plan(plan)
    with progress_on(console) as progress:
        run_plan(
            wanted,
            data=data,
            results=results,
            records=records,
            only=tuple(only),
            say=lambda line: console.print(line, markup=False),
            progress=progress,
        )


def build_command(*, records: Path, submissions: Path, out: Path) -> None:
    """Write the leaderboard and say what changed."""
    board, files = build(records, submissions)
    changed = write_files(files, out)
    console = Console(highlight=False)
    for name in changed:
        console.print(f"{out / name}", soft_wrap=True, markup=False)
    done = f"{len(changed)} files changed" if changed else "nothing changed"
    said = f"{counted(len(board.tables), 'table')} from {board.records} records in {out}: {done}"
    console.print(said, soft_wrap=True, markup=False)


def check_command(*, records: Path, submissions: Path, out: Path) -> None:
    """Build in memory and fail if the files there are others."""
    board, files = build(records, submissions)
    found = differences(files, out)
    console = Console(highlight=False)
    for line in found:
        console.print(line, soft_wrap=True, markup=False)
    if found:
        raise FaithbenchError(
            f"{len(found)} files in {out} are not what the records give; "
            "run `faithbench leaderboard build` and commit what it writes"
        )
    said = (
        f"{counted(len(board.tables), 'table')} from {board.records} records in {out}: up to date"
    )
    console.print(said, soft_wrap=True, markup=False)


def publish_command(*, results: Path, records: Path, attributions: int) -> None:
    """Copy finished records to the leaderboard and say what changed."""
    from faithbench.leaderboard.publish import publish

    found = publish(results, records, attributions)
    console = Console(highlight=False)
    for path in found.changed:
        console.print(f"{path}", soft_wrap=True, markup=False)
    done = f"{len(found.changed)} changed" if found.changed else "nothing changed"
    console.print(f"{found.count} records of {results} in {records}: {done}",
                  soft_wrap=True, markup=False)  # fmt: skip
