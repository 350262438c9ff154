"""What explainers are called on a board: short, and one label for one thing everywhere."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence

from faithbench.files import slug
from faithbench.records import Record
from faithbench.stored import Stored

# Who submitted it, the explainer's name, and all its settings: records that agree are pooled.
Kind = tuple[str | None, str, str]


def labels_of(records: Sequence[tuple[Stored, str | None]]) -> list[str]:
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
        key: slug(f"{key}={_text(value)}") for key, value in record.explainer.settings.items()
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
    told = ",".join(f"{key}={_text(settings[key])}" for key in keys if key in settings)
    return f"{name}:{told}" if told else name


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
