"""The record of an explainer whose rationales fresh classifiers were trained on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from faithbench.core.files import digest_of, replace_file
from faithbench.metrics.kinds import Trained
from faithbench.metrics.registry import METRICS
from faithbench.records.identity import place_of
from faithbench.records.record import write
from faithbench.records.rows import add_values, to_header, to_line
from faithbench.records.schema import FreshFacts, RowsFacts
from faithbench.records.store import StoredRecord
from faithbench.records.summary import metric_facts
from faithbench.training.fresh.extraction import Extraction
from faithbench.training.recipe import Splits


def write_record(
    folder: Path,
    label: str,
    scored: StoredRecord,
    how: Extraction,
    splits: Splits,
    card: Mapping[str, Any],
    predicted: Sequence[Sequence[int]],
) -> Path:
    """Write the record, and rows with a value per example and seed; return the record's path.

    `scored` is the record of the test split's scores, `splits` are the texts before they were
    cut, `card` is that of one of the classifiers, and `predicted` has their classes by seed.
    """
    metric = METRICS[f"fresh_f1_{how.selection}"]
    assert isinstance(metric, Trained)
    task = splits.test.task
    gold = [example.label for example in splits.test.examples]
    by_seed = [metric.score(classes, gold, len(task.labels)) for classes in predicted]
    rows = tuple(
        add_values(row, {metric.name: values})
        for row, values in zip(scored.rows, zip(*by_seed, strict=True), strict=True)
    )
    facts = FreshFacts(
        ratio=how.ratio,
        form=how.form,
        base=card["base"],
        base_sha256=card["base_sha256"],
        recipe={name: value for name, value in card["recipe"].items() if name != "seed"},
        train=len(splits.train.examples),
        train_sha256=splits.train.sha256,
        dev=len(splits.dev.examples),
        dev_sha256=splits.dev.sha256,
        macro_f1=tuple(round(sum(values) / len(values), 6) for values in by_seed),
    )
    seeds = tuple(range(len(predicted)))
    # The scores' own name says task, data, model and explainer; macro-F1 follows from the rest.
    trained = facts.model_dump(exclude={"macro_f1"})
    digest = digest_of([scored.path.stem, metric.name, metric.version, trained, seeds])
    place = folder / place_of(scored.record, label, digest)
    place.parent.mkdir(parents=True, exist_ok=True)
    lines = to_header(digest) + b"".join(to_line(row) for row in rows)
    name = f"{place.name}.rows.jsonl"
    replace_file(place.with_name(name), lines)
    record = scored.record.model_copy(
        update={
            "seeds": seeds,
            "metrics": {metric.name: metric_facts(metric, rows, proxy=False)},
            "rows": RowsFacts(file=name, sha256=hashlib.sha256(lines).hexdigest()),
            "fresh": facts,
        }
    )
    path = place.with_name(f"{place.name}.json")
    write(record, path)
    return path
