"""Records with their rows in a results folder, made up without a run."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from faithbench.explainers.registry import EXPLAINERS
from faithbench.metrics.registry import METRICS
from faithbench.records.passed import Accepted
from faithbench.records.record import read, write
from faithbench.records.rows import to_header, to_line
from faithbench.records.rows_file import read_rows
from faithbench.records.schema import Record
from faithbench.records.store import record_files
from faithbench.stats.summaries import summarise
from tests.support.builders import KEY, row
from tests.support.records import METRIC, RECORD

Values = Mapping[str, Sequence[float | None]]


def store(
    folder: Path,
    stem: str,
    values: Values,
    *,
    ids: Sequence[str] | None = None,
    settings: dict[str, Any] | None = None,
    version: int = 1,
    seeds: tuple[int, ...] = (0,),
    textless: Collection[str] = (),
    **parts: dict[str, Any],
) -> Path:
    """Write a record named `<stem>` of the explainer that its name begins with.

    Rows of `textless` ids have no tokens, as published ones of data that are not bundled.

    `parts` change fields of the record's parts: `task={"split": "dev"}`.
    """
    n = len(next(iter(values.values())))
    names = list(ids or (f"e{i}" for i in range(n)))
    rows = [
        row(
            name,
            values={key: own[i] for key, own in values.items()},
            **({"tokens": [], "scores": []} if name in textless else {"tokens": ["a", name]}),
        )
        for i, name in enumerate(names)
    ]
    data = to_header(KEY) + b"".join(to_line(one) for one in rows)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{stem}.rows.jsonl").write_bytes(data)
    digest = hashlib.sha256(data).hexdigest()
    explainer = {"name": _name_of(stem), "settings": settings or {}}
    changes: dict[str, dict[str, Any]] = {
        **parts,
        "task": {"n": n, **parts.get("task", {})},
        "explainer": {**explainer, "assets": {}, **parts.get("explainer", {})},
        "rows": {"file": f"{stem}.rows.jsonl", "sha256": digest},
    }
    made = {key: {**RECORD[key], **change} for key, change in changes.items()}
    metrics = {key: _facts(key, own, version) for key, own in values.items()}
    path = folder / f"{stem}.json"
    write(Record.model_validate({**RECORD, **made, "seeds": seeds, "metrics": metrics}), path)
    return path


def accepted(submissions: Path) -> tuple[Accepted, ...]:
    """Return all submissions below a folder with all their records, as if all had passed."""
    return tuple(
        Accepted(
            folder, tuple(f"records/{inside}" for _, inside in record_files(folder / "records"))
        )
        for folder in sorted(submissions.iterdir())
    )


def _name_of(stem: str) -> str:
    """Return the explainer of `first-tokens-1a2b3c4d`: one of ours, or what is before the dash."""
    ours = [name for name in EXPLAINERS if stem.startswith(f"{name}-")]
    return max(ours, key=len, default=stem.split("-", maxsplit=1)[0])


def change_rows(path: Path, changes: Mapping[str, Mapping[str, Any]]) -> None:
    """Change fields of some rows of a stored record, by id: `{"e1": {"scores": ...}}`."""
    record = read(path)
    rows_file = path.with_name(record.rows.file)
    rows = [msgspec.structs.replace(r, **changes.get(r.id, {})) for r in read_rows(rows_file)]
    data = to_header(KEY) + b"".join(map(to_line, rows))
    rows_file.write_bytes(data)
    facts = record.rows.model_copy(update={"sha256": hashlib.sha256(data).hexdigest()})
    write(record.model_copy(update={"rows": facts}), path)


def _facts(name: str, values: Sequence[float | None], version: int) -> dict[str, Any]:
    mean, interval, n, skipped = summarise(values)
    told = {"mean": mean, "ci95": interval, "n": n, "skipped": skipped}
    known = METRICS[name]
    facts = {"family": known.family, "higher_is_better": known.higher_is_better}
    return {**METRIC, **told, **facts, "version": version}
