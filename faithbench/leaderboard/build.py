"""Build the leaderboard's files from records, write them, or list those that differ."""

from __future__ import annotations

import gc
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import reason, replace_file
from faithbench.core.parallel import map_in_processes
from faithbench.leaderboard.board import BOARD_SCHEMA, Board, board_schema
from faithbench.leaderboard.former.manifest import (
    FOLDERS,
    MANIFEST,
    Manifest,
    Tables,
    digests_on_disk,
    manifest_json,
    manifest_of,
    not_ours,
    stale_files,
)
from faithbench.leaderboard.gather import (
    Part,
    PublishedRecord,
    find_records,
    groups_in,
    parts_of,
    records_digest,
)
from faithbench.leaderboard.html.page import render_page, table_json
from faithbench.leaderboard.operators import operator_pairs
from faithbench.leaderboard.pages.badges import badges
from faithbench.leaderboard.pages.formatting import counted
from faithbench.leaderboard.pages.heads_page import heads_page
from faithbench.leaderboard.pages.latex import latex
from faithbench.leaderboard.pages.overview import overview
from faithbench.leaderboard.pages.table_page import table_page
from faithbench.leaderboard.rankings import counted_tables, pareto_of, ranking_of
from faithbench.leaderboard.tables import TableContent, content_of, tables_of
from faithbench.records.passed import Accepted

Files = dict[str, bytes]
"""Contents by path below the leaderboard's folder."""

PARALLEL_FROM = 60
"""Number of records from which on several processes share the work."""

HEADS_PAGE = "heads.md"
"""The page that tests the claim of Mask-LRP, where records allow it."""


def make_board(records: Path, submissions: Sequence[Accepted]) -> Board:
    """Read all records and work out the board."""
    return board_of(find_records(records, submissions))


def board_of(published: Sequence[PublishedRecord]) -> Board:
    """Work out the board of these records."""
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


def build_files(
    records: Path, submissions: Sequence[Accepted], tables: Tables = "inside"
) -> tuple[Board, Files]:
    """Read all records, and return the board and every file of the leaderboard."""
    with _no_collection():
        board = make_board(records, submissions)
        return board, render(board, tables)


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


def render(board: Board, tables: Tables = "inside") -> Files:
    """Return every file of the leaderboard: a function of the board and of where tables go."""
    beside: dict[str, str] = {}
    if tables == "beside":
        names = [f"data/{table.id}.json" for table in board.tables]
        texts = _made([partial(table_json, table) for table in board.tables], board.records)
        beside = dict(zip(names, texts, strict=True))
    makers: dict[str, Callable[[], str]] = {
        "index.html": partial(render_page, board, beside=beside),  # the longest work first
        "leaderboard.json": partial(board_json, board),
        "leaderboard.schema.json": board_schema,
        "README.md": partial(overview, board),
    }
    if (heads := heads_page(board)) is not None:
        makers[HEADS_PAGE] = lambda: heads
    for table in board.tables:
        makers[f"tasks/{table.id}.md"] = partial(table_page, table, board.operators)
        makers[f"tables/{table.id}.tex"] = partial(latex, table)
    made = dict(zip(makers, _made(list(makers.values()), board.records), strict=True))
    every = made | beside | badges(board)
    files = {name: text.encode() for name, text in sorted(every.items())}
    return files | {MANIFEST: manifest_json(manifest_of(files, tables))}


def _made(makers: Sequence[Callable[[], str]], records: int) -> list[str]:
    return map_in_processes(lambda make: make(), makers, _processes(records))


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


def write_files(files: Files, out: Path, overwrite: bool = False) -> list[str]:
    """Write all files, remove those of former builds, and return the names of what changed.

    What no build made is refused; with `overwrite` it is replaced.
    """
    _check_links(out)
    try:
        if not overwrite:
            _check_ours(files, out)
        stale = stale_files(files, out, overwrite)
        changed = [name for name, data in files.items() if not _holds(out / name, data)]
        if changed or stale:
            _replace(files, changed, stale, out)
    except OSError as error:
        raise FaithbenchError(
            f"cannot write the leaderboard to {out}: {reason(error)}; "
            "choose another folder with --out"
        ) from error
    return changed + stale


def _replace(files: Files, changed: Sequence[str], stale: Sequence[str], out: Path) -> None:
    """Write and remove files; the manifest is first, with what is on disk, and again last."""
    manifest = Manifest.model_validate_json(files[MANIFEST])
    former = digests_on_disk([*changed, *stale], out)
    former.pop(MANIFEST, None)
    out.mkdir(parents=True, exist_ok=True)
    replace_file(out / MANIFEST, manifest_json(manifest.model_copy(update={"former": former})))
    for name in changed:
        if name != MANIFEST:
            (out / name).parent.mkdir(exist_ok=True)
            replace_file(out / name, files[name])
    for name in stale:
        (out / name).unlink()
    # Of a first build it is there already: killed while it wrote the same again, it would leave a
    # temporary file to a next build that has nothing to write.
    if former:
        replace_file(out / MANIFEST, files[MANIFEST])


def _holds(path: Path, data: bytes) -> bool:
    """Return whether a file has this content; what is no file, such as a pipe, has not."""
    return path.is_file() and not path.is_symlink() and path.read_bytes() == data


def differences(files: Files, out: Path) -> list[str]:
    """Return a line for each file that is not what a build would write."""
    lines = []
    for name, data in files.items():
        path = out / name
        if not _holds(path, data):
            lines.append(f"{path}: {'differs' if os.path.lexists(path) else 'missing'}")
    return lines + [f"{out / name}: no longer belongs here" for name in stale_files(files, out)]


def _check_links(out: Path) -> None:
    """Refuse a folder whose folders are links: files elsewhere would be replaced."""
    for folder in (out / name for name in FOLDERS):
        if folder.is_symlink():
            raise FaithbenchError(
                f"{folder} is a link, and files elsewhere would be overwritten; remove it, or "
                "choose another folder with --out"
            )


def _check_ours(files: Files, out: Path) -> None:
    """Refuse to replace what is not listed, with its digest, as made by a build."""
    foreign = not_ours(files, out)
    if foreign:
        first, *others = foreign
        more = f" and {counted(len(others), 'other file')}" if others else ""
        them = "them" if others else "it"
        raise FaithbenchError(
            f"{out / first}{more} would be overwritten, and {out / MANIFEST} does not list {them} "
            f"as made by a build; move {them} away, choose another folder with --out, or replace "
            f"{them} with --overwrite"
        )


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
