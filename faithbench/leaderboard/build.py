"""Build the leaderboard's files from records, write them, or say which differ from a rebuild."""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import reason, replace_file
from faithbench.core.parallel import map_in_processes
from faithbench.leaderboard.board import Board, board_schema
from faithbench.leaderboard.gather import digest_of, find_records, groups_in, parts_of
from faithbench.leaderboard.html.page import render_page
from faithbench.leaderboard.pages.formatting import MADE
from faithbench.leaderboard.pages.latex import latex
from faithbench.leaderboard.pages.overview import overview
from faithbench.leaderboard.pages.table_page import task_page
from faithbench.leaderboard.rankings import pareto_of, rankings_of
from faithbench.leaderboard.tables import drafts_of, named

Files = dict[str, bytes]
"""Contents by path below the leaderboard's folder."""

MANY = 60
"""From so many records on, several processes share the work."""

# What a build may remove: pages of tables that are no more.
_OWN = ("tasks/*.md", "tables/*.tex")


def make_board(records: Path, submissions: Path) -> Board:
    """Read all records and work out the board."""
    found = find_records(records, submissions)
    work = parts_of(found)
    drafts = map_in_processes(lambda part: drafts_of(groups_in(part)), work, _processes(len(found)))
    tables = named(draft for own in drafts for draft in own)
    rankings = rankings_of(tables)
    return Board(
        board_schema=1,
        digest=digest_of(found),
        records=len(found),
        tables=tables,
        rankings=rankings,
        pareto=pareto_of(tables, rankings),
    )


def build(records: Path, submissions: Path) -> tuple[Board, Files]:
    """Read all records, and return the board and every file of the leaderboard."""
    with _no_collection():
        board = make_board(records, submissions)
        return board, render(board)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Let the garbage collector rest: rows make no cycles, and looking for them takes a fifth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def render(board: Board) -> Files:
    """Return every file of the leaderboard: a function of the board alone."""
    makers: dict[str, Callable[[], str]] = {
        "index.html": partial(render_page, board),  # the longest work first
        "leaderboard.json": partial(board_json, board),
        "leaderboard.schema.json": board_schema,
        "README.md": partial(overview, board),
    }
    for table in board.tables:
        makers[f"tasks/{table.id}.md"] = partial(task_page, table)
        makers[f"tables/{table.id}.tex"] = partial(latex, table)
    texts = map_in_processes(lambda make: make(), list(makers.values()), _processes(board.records))
    return {name: text.encode() for name, text in sorted(zip(makers, texts, strict=True))}


def _processes(records: int) -> int | None:
    """Return how many may work: all that there are, or one where they start later than it ends."""
    return None if records >= MANY else 1


def board_json(board: Board) -> str:
    """Return the board as JSON, keys sorted, one table to a line so that changes show."""
    data = dict(vars(board))
    tables = ",\n".join(_compact(table) for table in data.pop("tables"))
    # `tables` is the last key of all, also in the alphabet.
    head = ",\n".join(f"{_compact(key)}:{_compact(data[key])}" for key in sorted(data))
    return f'{{{head},\n"tables":[\n{tables}\n]}}\n'


def write_files(files: Files, out: Path) -> list[str]:
    """Put all files in place, remove pages of former builds, and return what changed."""
    _check_place(out)
    changed = []
    try:
        for name, data in files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or path.read_bytes() != data:
                replace_file(path, data)
                changed.append(name)
        for name in stale_files(files, out):
            (out / name).unlink()
            changed.append(name)
    except OSError as error:
        raise FaithbenchError(
            f"cannot write the leaderboard to {out}: {reason(error)}; "
            "choose another folder with --out"
        ) from error
    return changed


def differences(files: Files, out: Path) -> list[str]:
    """Say of each file in which way it is not what a build would write."""
    found = []
    for name, data in files.items():
        path = out / name
        if not path.is_file():
            found.append(f"{path}: missing")
        elif path.read_bytes() != data:
            found.append(f"{path}: differs")
    return found + [f"{out / name}: no longer belongs here" for name in stale_files(files, out)]


def stale_files(files: Files, out: Path) -> list[str]:
    """Return pages of former builds that are of no table any more."""
    there = [path for pattern in _OWN for path in sorted(out.glob(pattern))]
    names = {path: path.relative_to(out).as_posix() for path in there}
    return [name for path, name in names.items() if name not in files and _is_ours(path)]


def _check_place(out: Path) -> None:
    """Refuse a folder whose README is somebody's own: the project's, say."""
    readme = out / "README.md"
    if readme.is_file() and not _is_ours(readme):
        raise FaithbenchError(
            f"{readme} was not made by `faithbench leaderboard build` and would be overwritten; "
            "choose another folder with --out, or move that file away"
        )


def _is_ours(path: Path) -> bool:
    with path.open("rb") as file:
        return MADE.encode() in file.readline()


def _compact(data: object) -> str:
    """Return compact JSON; facts become objects of their fields as they are met."""
    return json.dumps(
        data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False,
        default=vars, check_circular=False,
    )  # fmt: skip
