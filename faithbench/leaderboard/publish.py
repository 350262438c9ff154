"""Copy finished records of a results folder to the leaderboard, trimmed and packed."""

from __future__ import annotations

import gzip
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256, reason, replace_file
from faithbench.records.record import dumps, read
from faithbench.records.rows import ResultRow, to_header, to_line
from faithbench.records.rows_file import read_bytes, read_keyed_rows
from faithbench.records.schema import RowsFacts
from faithbench.records.store import StoredRecord, record_files


@dataclass(frozen=True)
class PublishResult:
    """The number of records in the results folder, and the files written anew and removed."""

    count: int
    changed: tuple[Path, ...]
    removed: tuple[Path, ...] = ()


def publish_results(results: Path, records: Path, attributions: int = 40) -> PublishResult:
    """Copy every record below `results` to the same path below `records`.

    Values are kept for all examples, tokens and scores for at most `attributions` of them: the
    same ones for all explainers of the same examples. Files with the same content are left alone.
    Records that an older revision of the same explainer left under the same conditions are removed.
    """
    if not results.is_dir():
        raise FaithbenchError(
            f"results folder {results} does not exist; point --results at the folder that "
            "`faithbench run` wrote to"
        )
    files = record_files(results)
    if not files:
        raise FaithbenchError(
            f"no record in {results}; run `faithbench run --results {results}` first, or point "
            "--results at another folder"
        )
    changed: list[Path] = []
    removed: list[Path] = []
    for path, inside in files:
        target = records / inside
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            changed += _copy(path, target, attributions)
            removed += _remove_older(target)
        except OSError as error:
            raise FaithbenchError(
                f"cannot write {target}: {reason(error)}; choose another folder with --records"
            ) from error
    return PublishResult(len(files), tuple(changed), tuple(removed))


def kept_ids(ids: Collection[str], count: int) -> set[str]:
    """Choose at most `count` ids, spread evenly over all of them in their order."""
    ordered = sorted(ids)
    indices = np.linspace(0, len(ordered) - 1, min(count, len(ordered))).round().astype(int)
    return {ordered[index] for index in indices}


def trimmed(rows: Sequence[ResultRow], count: int) -> list[ResultRow]:
    """Drop tokens, answers and scores of all but `count` rows, and further seeds' scores of all."""
    kept = kept_ids([row.id for row in rows], count)
    return [
        msgspec.structs.replace(row, more_scores=())
        if row.id in kept
        else msgspec.structs.replace(row, more_scores=(), tokens=(), scores=(), answer="")
        for row in rows
    ]


def _copy(path: Path, target: Path, attributions: int) -> list[Path]:
    """Write rows, then the record that names them; return the files that were written."""
    record = read(path)
    key, rows = read_keyed_rows(path.with_name(record.rows.file), record.rows.sha256)
    data = to_header(key) + b"".join(to_line(row) for row in trimmed(rows, attributions))
    packed = target.with_name(f"{target.stem}.rows.jsonl.gz")
    changed = []
    # Rows first: if the second step fails, no record names rows that are not there.
    # Compared unpacked, since another zlib may pack the same bytes in another way; and packed
    # without a time, so that the same rows are the same bytes.
    if not packed.is_file() or read_bytes(packed) != data:
        replace_file(packed, gzip.compress(data, mtime=0))
        changed.append(packed)
    digest = file_sha256(packed)
    facts = RowsFacts(file=packed.name, sha256=digest)
    text = dumps(record.model_copy(update={"rows": facts})).encode()
    if not target.is_file() or target.read_bytes() != text:
        replace_file(target, text)
        changed.append(target)
    return changed


def _remove_older(target: Path) -> list[Path]:
    """Remove what older revisions of a record's explainer left; return the files.

    Their file names say the same but for the digest, though a setting may have another default.
    """
    new = StoredRecord(target, read(target))
    removed: list[Path] = []
    for path in sorted(target.parent.glob("*.json")):
        if path.stem.rpartition("-")[0] != target.stem.rpartition("-")[0]:
            continue
        old = StoredRecord(path, read(path))
        if (
            old.record.explainer.revision < new.record.explainer.revision
            and old.record.explainer.name == new.record.explainer.name
            and old.record.seeds == new.record.seeds
            and old.conditions == new.conditions
        ):
            files = (path, path.with_name(old.record.rows.file))
            for file in files:  # the record first: none is left without its rows
                file.unlink()
            removed += files
    return removed
