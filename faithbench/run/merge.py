"""From the rows of shards to records: the files of one run, byte by byte but for times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Progress
from faithbench.data.kinds.kind import Prediction
from faithbench.models.encoding import encode
from faithbench.records.rows import ResultRow
from faithbench.records.rows_writer import open_rows, read_unfinished
from faithbench.run.job import Cell, Job, partial_path
from faithbench.run.measures.aopc_bounds import append_bounds, bounds_key, read_bounds
from faithbench.run.request import Request
from faithbench.run.shard import Asked, Shard, ShardFacts, read_shard, write_shard


def finish_shard(job: Job, shard: Shard, request: Request) -> int:
    """Mark a shard as finished once its rows are there, and return how many examples it has."""
    for name in ("explainer", "task"):
        if not isinstance(getattr(request, name), str):
            raise FaithbenchError(f"a shard needs the name of its {name}; give a name, not a value")
    asked = {name: getattr(request, name) for name in Asked.model_fields}
    asked |= {
        "data": None if request.data is None else str(request.data),
        "plugins": tuple(str(path) for path in request.plugins),
    }
    facts = ShardFacts(
        index=shard.index,
        count=shard.count,
        examples=len(job.data.examples),
        keys={cell.selected.label: cell.key for cell in job.cells},
        asked=Asked.model_validate(asked),
    )
    write_shard(job.results, facts)
    return len(_rows_of(job.cells[0], job.results))


def read_shards(folders: Sequence[Path]) -> ShardFacts:
    """Read shards, check that they are all of one run, each once, and return the first one."""
    shards = [read_shard(folder) for folder in folders]
    first = shards[0]
    for folder, one in zip(folders, shards, strict=True):
        if (one.keys, one.count, one.examples) != (first.keys, first.count, first.examples):
            what = _difference(first, one)
            raise FaithbenchError(
                f"{folder} is a shard of another run than {folders[0]} ({what}); merge shards of "
                "one command"
            )
    indices = [one.index for one in shards]
    for number, index in enumerate(indices):
        if index in indices[:number]:
            raise FaithbenchError(
                f"{folders[indices.index(index)]} and {folders[number]} are both shard {index} of "
                f"{first.count}; give each shard once"
            )
    if missing := sorted(set(range(1, first.count + 1)) - set(indices)):
        names = ", ".join(map(str, missing[:10])) + (" ..." if len(missing) > 10 else "")
        raise FaithbenchError(
            f"{len(missing)} of {first.count} shards are missing ({names}); run them with "
            f"--shard i/{first.count}, and give their folders too"
        )
    return first


def request_of(facts: ShardFacts, data: Path | None, results: Path) -> Request:
    """Return the request of the whole run; `data` replaces the folder that the shards read."""
    asked = facts.asked.model_dump()
    folder = data or (None if facts.asked.data is None else Path(facts.asked.data))
    return Request(
        **asked
        | {
            "data": folder,
            "results": results,
            "plugins": tuple(Path(path) for path in facts.asked.plugins),
        }
    )


def gather_rows(job: Job, facts: ShardFacts, folders: Sequence[Path], progress: Progress) -> Job:
    """Put the rows of all shards where those of the whole run grow; return the job to finish."""
    served = tuple(one for one in job.explainers if one.label in facts.keys)
    job = replace(job, explainers=served)
    if {cell.selected.label: cell.key for cell in job.cells} != facts.keys:
        raise FaithbenchError(
            "the shards were made from other data, weights, plugins or versions than are here; "
            "merge them where these are the same"
        )
    for number, cell in enumerate(job.cells):
        progress(f"merging {cell.selected.label}", number, len(job.cells))
        _gather(cell, folders)
    _gather_bounds(job, folders)
    return job


def _gather(cell: Cell, folders: Sequence[Path]) -> None:
    rows: dict[str, tuple[ResultRow, float]] = {}
    for folder in folders:
        for id_, row in _rows_of(cell, folder).items():
            if id_ in rows:
                raise FaithbenchError(
                    f"example {id_!r} is in {folder} and in another shard; give shards of one run"
                )
            rows[id_] = row
    ids = [example.id for example in cell.job.data.examples]
    if missing := [id_ for id_ in ids if id_ not in rows]:
        raise FaithbenchError(
            f"{len(missing)} of {len(ids)} examples are in no shard, {missing[0]!r} for one; run "
            "the shards' commands again"
        )
    path = partial_path(cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    with open_rows(path, cell.key) as file:
        file.append([rows[id_] for id_ in ids if id_ not in file.done])


def _rows_of(cell: Cell, folder: Path) -> dict[str, tuple[ResultRow, float]]:
    """Return the rows and seconds that a shard has for a cell, by example id."""
    path = partial_path(Cell(replace(cell.job, results=folder), cell.selected))
    try:
        return read_unfinished(path)
    except FileNotFoundError as error:
        raise FaithbenchError(
            f"{folder} lacks {Path(error.filename).name}; run the shard's command again"
        ) from None


def _gather_bounds(job: Job, folders: Sequence[Path]) -> None:
    """Keep the shards' AOPC bounds, in the order in which one run would have found them."""
    known = {
        key: pair for folder in folders for key, pair in read_bounds(folder, job.model).items()
    }
    if not known:
        return
    with open_rows(partial_path(job.cells[0]), job.cells[0].key) as file:
        rows = file.done
    encodings = [encode(job.model, e, job.data.task.evidence, job.long) for e in job.data.examples]
    there = read_bounds(job.results, job.model)
    found: dict[str, tuple[float, float]] = {}
    for encoding in sorted(encodings, key=lambda e: (len(e.ids), e.example.id), reverse=True):
        row = rows[encoding.example.id]
        prediction = Prediction(row.target, 0.0, row.right)  # of which the key reads the target
        key = bounds_key(job.model, encoding, prediction, job.operator)
        if key in known and key not in there:
            found[key] = known[key]
    append_bounds(job.results, job.model, found)


def _difference(first: ShardFacts, other: ShardFacts) -> str:
    if first.count != other.count:
        return f"of {other.count} shards, not {first.count}"
    for name in Asked.model_fields:
        ours, theirs = getattr(first.asked, name), getattr(other.asked, name)
        if ours != theirs:
            return f"{name} {theirs!r}, not {ours!r}"
    return "other data, weights or versions"
