"""Write records of an older schema anew, in today's, under the names of today's runs."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import file_sha256, read_object, reason, replace_file
from faithbench.records.identity import identity_of, model_folder_name, renamed_stem, run_key
from faithbench.records.passed import (
    PassedCheck,
    content_digest,
    problem_of,
    read_passed,
    write_passed,
)
from faithbench.records.record import dumps, read
from faithbench.records.rows import to_header, to_line
from faithbench.records.rows_file import read_keyed_rows
from faithbench.records.schema import SCHEMA, Record, RowsFacts
from faithbench.records.store import StoredRecord, record_files


def upgrade_records(folder: Path, *, chunk: int, budget: int) -> Iterator[tuple[str, str]]:
    """Upgrade all records below a folder, yielding the old and the new path of each inside it.

    Values stay as they are; `chunk` and `budget` are those of a run of a submission. The old files
    are removed last, so that a stopped upgrade continues.
    """
    if not folder.is_dir():
        raise FaithbenchError(f"records folder {folder} does not exist; check --records")
    for path, inside in record_files(folder):
        if read_object(path).get("schema") != SCHEMA:
            new = _upgrade(StoredRecord(path, read(path)), chunk, budget)
            yield inside, new.relative_to(folder).as_posix()


def upgrade_submissions(
    submissions: Path, passed: Path, *, chunk: int, budget: int
) -> Iterator[tuple[str, str]]:
    """Upgrade the records of all submissions, yielding old and new paths below their folder.

    What passed its check has passed it under its new digest, since values stay as they are. If it
    was stopped within a submission, that one has to be measured and checked again.
    """
    checks = read_passed(passed)
    for folder in sorted(path.parent for path in submissions.glob("*/records")):
        check = checks.get(folder.name)
        has_passed = check is not None and not problem_of(folder, check)
        moved = {}
        for old, new in upgrade_records(folder / "records", chunk=chunk, budget=budget):
            moved[f"records/{old}"] = f"records/{new}"
            yield f"{folder.name}/records/{old}", new
        if check is not None and has_passed and moved:
            paths = tuple(moved.get(path, path) for path in check.records)
            checks[folder.name] = PassedCheck(content=content_digest(folder), records=paths)
            write_passed(passed, checks)


def _upgrade(stored: StoredRecord, chunk: int, budget: int) -> Path:
    """Write one record and its rows anew, and return the record's path."""
    path, record = stored.path, stored.record
    old_rows = path.with_name(record.rows.file)
    key, rows = read_keyed_rows(old_rows, record.rows.sha256)
    before = _known_by_weights(record)
    place = _folder(path.parent, before, record)
    stem = renamed_stem(path.stem, before, record, rows)
    new, new_rows = place / f"{stem}.json", place / (stem + old_rows.name.removeprefix(path.stem))

    def of_submission(one: Record) -> str:
        """Return the key of a submission's rows, which follows from its record."""
        identity, device = identity_of(one, rows).digest, one.environment.device
        labels = [one.explainer.name]
        return run_key(identity, labels=labels, chunk=chunk, budget=budget, device=device)

    try:
        data = old_rows.read_bytes()
        if key == of_submission(before) != of_submission(record):
            data = to_header(of_submission(record)) + b"".join(map(to_line, rows))
            data = gzip.compress(data, mtime=0) if new_rows.suffix == ".gz" else data
        place.mkdir(exist_ok=True)
        if new_rows != old_rows:
            replace_file(new_rows, data)
        named = RowsFacts(file=new_rows.name, sha256=file_sha256(new_rows))
        replace_file(new, dumps(record.model_copy(update={"rows": named})).encode())
        if new != path:
            path.unlink()  # first: a record without its rows could not be upgraded again
        if new_rows != old_rows:
            old_rows.unlink()
        if place != path.parent and not any(path.parent.iterdir()):
            path.parent.rmdir()
    except OSError as error:
        raise FaithbenchError(
            f"cannot write {new}: {reason(error)}; choose another folder with --records"
        ) from error
    return new


def _known_by_weights(record: Record) -> Record:
    """Return a record as it was named before its model had a digest of its own."""
    model = record.model.model_copy(update={"sha256": None})
    return record.model_copy(update={"model": model})


def _folder(folder: Path, before: Record, record: Record) -> Path:
    """Return the folder of the model's records today; one of another name stays."""
    name = model_folder_name(before.model.name, before.model.digest)
    if folder.name != name:
        return folder
    return folder.with_name(model_folder_name(record.model.name, record.model.digest))
