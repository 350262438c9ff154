"""Names on a board: labels of explainers, ids and titles of tables; one name for one thing."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import NamedTuple

from faithbench.core.files import slug
from faithbench.core.spec import setting_text
from faithbench.data.tasks import load_task, task_names
from faithbench.records.conditions import Conditions, describe_field, describe_value, differing
from faithbench.records.schema import Record
from faithbench.records.store import StoredRecord


class ExplainerKey(NamedTuple):
    """One explainer of a board: records that agree in all of this are pooled."""

    submission: str | None
    name: str
    settings: str


def labels_of(records: Sequence[tuple[StoredRecord, str | None]]) -> list[str]:
    """Return a label per record: the same for equal explainers, another for each other one.

    A label is the explainer's name with the settings that its file name tells: those that were
    not the default. Where that is not enough, it has all settings in which they differ.
    Submissions are called by the submission's name.
    """
    keys = [_key_of(stored.record, submission) for stored, submission in records]
    settings: dict[ExplainerKey, Mapping[str, object]] = {}
    candidates: dict[ExplainerKey, set[str]] = {}
    for key, (stored, _) in zip(keys, records, strict=True):
        settings[key] = stored.record.explainer.settings
        candidates.setdefault(key, set()).add(label_by_file(stored.record, stored.path.stem))
    # Records of one explainer may have file names that tell more or less; the shortest is enough.
    short = {
        key: min(labels, key=lambda label: (len(label), label))
        for key, labels in candidates.items()
    }
    submitted: dict[str, dict[ExplainerKey, str]] = {}
    for key, name in short.items():
        if key.submission is not None:
            submitted.setdefault(key.submission, {})[key] = name
    labels = _apart({k: name for k, name in short.items() if k.submission is None}, settings)
    taken = set(labels.values())
    for submission, names in submitted.items():
        title = submission if submission not in taken else f"{submission} (submitted)"
        apart = _apart(names, settings)
        labels |= {
            key: title if len(apart) == 1 else f"{title}: {name}" for key, name in apart.items()
        }
    unique = _unique(labels)
    return [unique[key] for key in keys]


def label_by_file(record: Record, stem: str) -> str:
    """Return the explainer's name with those settings that its file name has.

    A run writes there what is not the default: `lime-samples=50-1a2b3c4d` is `lime:samples=50`.
    """
    name = record.explainer.name
    rest = re.sub(r"-[0-9a-f]{8}$", "", stem).removeprefix(slug(name))
    pieces = {
        key: slug(f"{key}={setting_text(value)}")
        for key, value in record.explainer.settings.items()
    }
    starts = {
        key: match.start()
        for key, piece in pieces.items()
        # Up to the next dash or the end: `steps=5` is not in `steps=50`.
        if (match := re.search(rf"-{re.escape(piece)}(?=-|$)", rest))
    }
    keys = sorted(starts, key=lambda key: (starts[key], key))
    return _with_settings(name, record.explainer.settings, keys)


def _apart(
    short: Mapping[ExplainerKey, str], settings: Mapping[ExplainerKey, Mapping[str, object]]
) -> dict[ExplainerKey, str]:
    """Give explainers that share a label all settings in which they differ."""
    labels: dict[ExplainerKey, str] = {}
    for key, label in short.items():
        same = [other for other, name in short.items() if name == label]
        names = sorted({name for other in same for name in settings[other]})
        varied = [n for n in names if len({str(settings[other].get(n)) for other in same}) > 1]
        alone = len(same) == 1
        labels[key] = label if alone else _with_settings(key.name, settings[key], varied)
    return labels


def _unique(labels: Mapping[ExplainerKey, str]) -> dict[ExplainerKey, str]:
    """Tell labels that are still equal apart by a digest: different things are never mixed."""
    every = list(labels.values())
    return {
        key: label if every.count(label) == 1 else f"{label} ({_digest(key)})"
        for key, label in labels.items()
    }


def _digest(key: ExplainerKey) -> str:
    # Of the plain tuple: published labels must not change with the name of a class.
    return hashlib.sha256(repr(tuple(key)).encode()).hexdigest()[:6]


def _key_of(record: Record, submission: str | None) -> ExplainerKey:
    explainer = record.explainer
    return ExplainerKey(submission, explainer.name, str(sorted(explainer.settings.items())))


def _with_settings(name: str, settings: Mapping[str, object], keys: Sequence[str]) -> str:
    shown = ",".join(f"{key}={setting_text(settings[key])}" for key in keys if key in settings)
    return f"{name}:{shown}" if shown else name


MAX_ID_LENGTH = 80
"""Number of characters of a table's id, at most; it becomes a file name."""

# How an id tells each field, in the order in which fields are tried.
_ID_PARTS: dict[str, Callable[[Conditions], str]] = {
    "source": lambda given: given.source,
    "task_version": lambda given: f"v{given.task_version}",
    "split": lambda given: given.split,
    "ids": lambda given: f"{given.n}-{given.ids[:6]}",
    "data_sha256": lambda given: f"data-{given.data_sha256[:6]}",
    # Nor must the models of a study rename the table of the task's own model.
    "model_sha256": lambda given: (
        ""
        if is_own_model(given.task, given.model)
        else f"{slug(given.model)}-{given.model_sha256[:6]}"
    ),
    "dtype": lambda given: given.dtype,
    "protocol": lambda given: f"protocol-{given.protocol}",
    # The usual operator goes without saying: a second one must not rename the first one's table.
    "operator": lambda given: "" if given.operator == "mask" else given.operator,
    "erasure_token": lambda given: slug(given.erasure_token),
    "long": lambda given: given.long,
}


def is_own_model(task: str, model: str) -> bool:
    """Return whether a model is one that the task names, for any source of its data."""
    if task not in task_names():
        return False
    return model in {ref.name for ref in load_task(task).models.values()}


def table_ids(every: Sequence[Conditions]) -> list[str]:
    """Return a file name for each table: the task's name, and what its tables differ in."""
    names = []
    for conditions in every:
        parts = [_ID_PARTS[field](conditions) for field in _telling_fields(conditions, every)]
        names.append(slug("-".join([conditions.task, *filter(None, parts)])))
    # Some file systems do not tell capitals apart.
    lowered = [name.lower() for name in names]
    return [
        name
        if len(name) <= MAX_ID_LENGTH and lowered.count(name.lower()) == 1
        else f"{name[: MAX_ID_LENGTH - 9]}-{_conditions_digest(conditions)}"
        for name, conditions in zip(names, every, strict=True)
    ]


def _conditions_digest(conditions: Conditions) -> str:
    return hashlib.sha256(repr(astuple(conditions)).encode()).hexdigest()[:8]


def table_titles(every: Sequence[Conditions]) -> list[str]:
    """Return for each table the task's title, and in words what its tables differ in."""
    known = set(task_names())
    titles = []
    for conditions in every:
        task = conditions.task
        parts = [load_task(task).title if task in known else task]
        for field in _telling_fields(conditions, every):
            if field != "model_sha256" or not is_own_model(task, conditions.model):
                parts.append(f"{describe_field(field)} {describe_value(conditions, field)}")
        titles.append("; ".join(parts))
    return titles


def _telling_fields(conditions: Conditions, every: Sequence[Conditions]) -> list[str]:
    """Return fields that tell a table from all others of its task: the source first, and few.

    Tables of other data have other examples too: one that is told apart already needs no more.
    """
    alike = [other for other in every if other.task == conditions.task]
    fields = []
    for name in _ID_PARTS:
        if name in differing(alike):
            fields.append(name)
            alike = [o for o in alike if getattr(o, name) == getattr(conditions, name)]
    return fields
