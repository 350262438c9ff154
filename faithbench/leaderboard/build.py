"""Build the leaderboard's files from records, write them, or list those that differ."""

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
from faithbench.leaderboard.board import BOARD_SCHEMA, Board, board_schema
from faithbench.leaderboard.gather import (
    Part,
    find_records,
    groups_in,
    parts_of,
    records_digest,
)
from faithbench.leaderboard.html.page import render_page
from faithbench.leaderboard.operators import operator_pairs
from faithbench.leaderboard.pages.formatting import MADE
from faithbench.leaderboard.pages.heads_page import heads_page
from faithbench.leaderboard.pages.latex import latex
from faithbench.leaderboard.pages.overview import overview
from faithbench.leaderboard.pages.table_page import table_page
from faithbench.leaderboard.rankings import counted_tables, pareto_of, ranking_of
from faithbench.leaderboard.tables import TableContent, content_of, tables_of

Files = dict[str, bytes]
"""Contents by path below the leaderboard's folder."""

PARALLEL_FROM = 60
"""Number of records from which on several processes share the work."""

HEADS_PAGE = "heads.md"
"""The page that tests the claim of Mask-LRP, where records allow it."""

# Files that a build may remove: pages of tables that are no more.
_REMOVABLE = ("tasks/*.md", "tables/*.tex", HEADS_PAGE)


def make_board(records: Path, submissions: Path) -> Board:
    """Read all records and work out the board."""
    published = find_records(records, submissions)
    processes = _processes(len(published))
    contents = map_in_processes(_contents, parts_of(published), processes)
    tables = tables_of(content for part in contents for content in part)
    ranking = ranking_of(counted_tables(tables))
    return Board(
        board_schema=BOARD_SCHEMA,
        digest=records_digest(published),
        records=len(published),
        tables=tables,
        ranking=ranking,
        operators=operator_pairs(tables),
        pareto=pareto_of(ranking),
    )


def _contents(part: Part) -> list[TableContent]:
    """Work out the tables of one part, but for their ids and titles."""
    return [content_of(group) for group in groups_in(part)]


def build_files(records: Path, submissions: Path) -> tuple[Board, Files]:
    """Read all records, and return the board and every file of the leaderboard."""
    with _no_collection():
        board = make_board(records, submissions)
        return board, render(board)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Turn the garbage collector off: rows make no cycles, and it takes a fifth of the time."""
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
    if (heads := heads_page(board)) is not None:
        makers[HEADS_PAGE] = lambda: heads
    for table in board.tables:
        makers[f"tasks/{table.id}.md"] = partial(table_page, table, board.operators)
        makers[f"tables/{table.id}.tex"] = partial(latex, table)
    texts = map_in_processes(lambda make: make(), list(makers.values()), _processes(board.records))
    return {name: text.encode() for name, text in sorted(zip(makers, texts, strict=True))}


def _processes(records: int) -> int | None:
    """Return the number of processes: one if starting more takes longer than the work, or all."""
    return None if records >= PARALLEL_FROM else 1


def board_json(board: Board) -> str:
    """Return the board as JSON, keys sorted, one table to a line so that changes show."""
    data = dict(vars(board))
    tables = ",\n".join(_compact(table) for table in data.pop("tables"))
    # `tables` is the last key, in the alphabet too: the keys of the whole stay sorted.
    head = ",\n".join(f"{_compact(key)}:{_compact(data[key])}" for key in sorted(data))
    return f'{{{head},\n"tables":[\n{tables}\n]}}\n'


def write_files(files: Files, out: Path) -> list[str]:
    """Write all files, remove pages of former builds, and return the names of what changed."""
    _check_folder(out)
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
    """Return a line for each file that is not what a build would write."""
    lines = []
    for name, data in files.items():
        path = out / name
        if not path.is_file():
            lines.append(f"{path}: missing")
        elif path.read_bytes() != data:
            lines.append(f"{path}: differs")
    return lines + [f"{out / name}: no longer belongs here" for name in stale_files(files, out)]


def stale_files(files: Files, out: Path) -> list[str]:
    """Return pages of former builds whose table is no more."""
    pages = [path for pattern in _REMOVABLE for path in sorted(out.glob(pattern))]
    names = {path: path.relative_to(out).as_posix() for path in pages}
    return [name for path, name in names.items() if name not in files and _is_built(path)]


def _check_folder(out: Path) -> None:
    """Refuse a folder whose README is not a leaderboard's, but the project's own, say."""
    readme = out / "README.md"
    if readme.is_file() and not _is_built(readme):
        raise FaithbenchError(
            f"{readme} was not made by `faithbench leaderboard build` and would be overwritten; "
            "choose another folder with --out, or move that file away"
        )


def _is_built(path: Path) -> bool:
    """Return whether a file was made by a build, by its first line."""
    with path.open("rb") as file:
        return MADE.encode() in file.readline()


def _compact(data: object) -> str:
    """Return compact JSON with sorted keys."""
    return json.dumps(
        data,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
        # Models become objects of their fields as they are met, so that no second copy of the
        # board is made; they cannot hold themselves, so that circles need not be looked for.
        default=vars,
        check_circular=False,
    )
