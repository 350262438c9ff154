"""What explainers are called on a board: short, and one label for one thing everywhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple

from faithbench.core.files import slug
from faithbench.core.spec import setting_text
from faithbench.data.tasks import load_task, task_names
from faithbench.records.conditions import Conditions, describe_field, describe_value, differing
from faithbench.records.schema import Record
from faithbench.records.store import StoredRecord

# Who submitted it, the explainer's name, and all its settings: records that agree are pooled.
Kind = tuple[str | None, str, str]


def labels_of(records: Sequence[tuple[StoredRecord, str | None]]) -> list[str]:
    """Return a label per record: the same for equal explainers, another for each other one.

    A label is the explainer's name with the settings that its file name tells: those that were
    not the default. Where that is not enough, it has all settings in which they differ. What
    was submitted has the submission's name.
    """
    kinds = [_kind(stored.record, submission) for stored, submission in records]
    settings = {
        kind: stored.record.explainer.settings
        for kind, (stored, _) in zip(kinds, records, strict=True)
    }
    told: dict[Kind, set[str]] = {}
    for kind, (stored, _) in zip(kinds, records, strict=True):
        told.setdefault(kind, set()).add(told_label(stored.record, stored.path.stem))
    short = {kind: min(own, key=lambda label: (len(label), label)) for kind, own in told.items()}
    own = _apart({kind: name for kind, name in short.items() if kind[0] is None}, settings)
    taken = set(own.values())
    submitted: dict[str, dict[Kind, str]] = {}
    for kind, name in short.items():
        if kind[0] is not None:
            submitted.setdefault(kind[0], {})[kind] = name
    for entry, names in submitted.items():
        known = entry if entry not in taken else f"{entry} (submitted)"
        apart = _apart(names, settings)
        own |= {k: known if len(apart) == 1 else f"{known}: {n}" for k, n in apart.items()}
    unique = _unique(own)
    return [unique[kind] for kind in kinds]


def told_label(record: Record, stem: str) -> str:
    """Return the name and those settings that the file name has, as `run` wrote it."""
    name = record.explainer.name
    rest = re.sub(r"-[0-9a-f]{8}$", "", stem).removeprefix(slug(name))
    pieces = {
        key: slug(f"{key}={setting_text(value)}")
        for key, value in record.explainer.settings.items()
    }
    places = {
        key: match.start()
        for key, piece in pieces.items()
        if (match := re.search(rf"-{re.escape(piece)}(?=-|$)", rest))
    }
    keys = sorted(places, key=lambda key: (places[key], key))
    return _with(name, record.explainer.settings, keys)


def _apart(
    short: Mapping[Kind, str], settings: Mapping[Kind, Mapping[str, object]]
) -> dict[Kind, str]:
    """Give those that share a label all settings in which they differ."""
    labels: dict[Kind, str] = {}
    for kind, label in short.items():
        same = [other for other, name in short.items() if name == label]
        keys = sorted({key for other in same for key in settings[other]})
        varied = [k for k in keys if len({str(settings[other].get(k)) for other in same}) > 1]
        own = settings[kind]
        labels[kind] = label if len(same) == 1 else _with(kind[1], own, varied)
    return labels


def _unique(labels: Mapping[Kind, str]) -> dict[Kind, str]:
    """Tell equal labels that are left apart by a digest: different things are never mixed."""
    every = list(labels.values())
    return {
        kind: label if every.count(label) == 1 else f"{label} ({_digest(kind)})"
        for kind, label in labels.items()
    }


def _digest(kind: Kind) -> str:
    return hashlib.sha256(repr(kind).encode()).hexdigest()[:6]


def _kind(record: Record, submission: str | None) -> Kind:
    explainer = record.explainer
    return submission, explainer.name, str(sorted(explainer.settings.items()))


def _with(name: str, settings: Mapping[str, object], keys: Sequence[str]) -> str:
    told = ",".join(f"{key}={setting_text(settings[key])}" for key in keys if key in settings)
    return f"{name}:{told}" if told else name


LONGEST = 80
"""So many characters an id has at most; it becomes a file's name."""

_PARTS: dict[str, Callable[[Conditions], str]] = {
    "source": lambda terms: terms.source,
    "task_version": lambda terms: f"v{terms.task_version}",
    "split": lambda terms: terms.split,
    "ids": lambda terms: f"{terms.n}-{terms.ids[:6]}",
    "data_sha256": lambda terms: f"data-{terms.data_sha256[:6]}",
    "weights_sha256": lambda terms: f"{slug(terms.model)}-{terms.weights_sha256[:6]}",
    "dtype": lambda terms: terms.dtype,
    "protocol": lambda terms: f"protocol-{terms.protocol}",
    "operator": lambda terms: terms.operator,
    "erasure_token": lambda terms: slug(terms.erasure_token),
    "long": lambda terms: terms.long,
}


def table_ids(every: Sequence[Conditions]) -> list[str]:
    """Return a file name for each table: the task's, and what its tables differ in."""
    names = [slug("-".join([t.task, *(_PARTS[f](t) for f in _told(t, every))])) for t in every]
    # Some file systems do not tell capitals apart.
    plain = [name.lower() for name in names]
    return [
        name
        if len(name) <= LONGEST and plain.count(name.lower()) == 1
        else f"{name[: LONGEST - 9]}-{hashlib.sha256(repr(astuple(t)).encode()).hexdigest()[:8]}"
        for name, t in zip(names, every, strict=True)
    ]


def table_titles(every: Sequence[Conditions]) -> list[str]:
    """Return for each table the task's title, and in words what its tables differ in."""
    known = set(task_names())
    return [
        "; ".join(
            [
                load_task(t.task).title if t.task in known else t.task,
                *(f"{describe_field(f)} {describe_value(t, f)}" for f in _told(t, every)),
            ]
        )
        for t in every
    ]


def _told(terms: Conditions, every: Sequence[Conditions]) -> list[str]:
    """Return fields that tell a table from all others of its task: the source first, and few.

    Whoever has other data has other examples too: what is told apart already needs no more.
    """
    alike = [t for t in every if t.task == terms.task]
    told = []
    for name in _PARTS:
        if name in differing(alike):
            told.append(name)
            alike = [t for t in alike if getattr(t, name) == getattr(terms, name)]
    return told
