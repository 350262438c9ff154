"""Ids and titles of tables: short where a task has one table, telling where it has several."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import astuple

from faithbench.files import slug
from faithbench.tasks import load_task, task_names
from faithbench.terms import Terms, differing, say_field, say_value

LONGEST = 80
"""So many characters an id has at most; it becomes a file's name."""

_PARTS: dict[str, Callable[[Terms], str]] = {
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


def table_ids(every: Sequence[Terms]) -> list[str]:
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


def table_titles(every: Sequence[Terms]) -> list[str]:
    """Return for each table the task's title, and in words what its tables differ in."""
    known = set(task_names())
    return [
        "; ".join(
            [
                load_task(t.task).title if t.task in known else t.task,
                *(f"{say_field(f)} {say_value(t, f)}" for f in _told(t, every)),
            ]
        )
        for t in every
    ]


def _told(terms: Terms, every: Sequence[Terms]) -> list[str]:
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
