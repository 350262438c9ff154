"""A board in which every name and word is an attack on the page."""

from __future__ import annotations

import re
from typing import Final

from faithbench.leaderboard.board import (
    Board,
    Column,
    OperatorPair,
    Pair,
    RankedRow,
    Ranking,
    Table,
)
from tests.support.boards import small_board

HOSTILE: Final = (
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(2)>",
    "\"'><svg onload=alert(3)>",
    "<!--<script>",
    "{{7*7}} ${alert(4)} \u2028\u2029 \u202e",
    "javascript:alert(5)",
    "__proto__",
    "constructor",
)


def without_turning_marks(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Return texts as a page has them: marks that turn their direction become spaces."""
    return tuple(re.sub("[\u2028\u2029\u202e]", " ", text) for text in texts)


def hostile_board() -> Board:
    """Return a small board in which every name and word is an attack on the page."""
    board = small_board()
    entrants = dict(zip((e.label for e in board.tables[0].entrants), HOSTILE, strict=False))
    ids = dict(zip((table.id for table in board.tables), HOSTILE, strict=False))
    assert board.ranking is not None
    return board.model_copy(
        update={
            "tables": tuple(
                _hostile_table(table, HOSTILE[i], entrants) for i, table in enumerate(board.tables)
            ),
            "ranking": _hostile_ranking(board.ranking, entrants, ids),
            "operators": (
                OperatorPair(
                    first=HOSTILE[0], second=HOSTILE[1], operators=(HOSTILE[2], HOSTILE[3]),
                    shared=7, kendall=0.5, kendall_best=0.4, kendall_aopc=None,
                    leaders=(HOSTILE[:2], HOSTILE[3:5]),
                ),
            ),
            "pareto": tuple(
                p.model_copy(update={"label": entrants[p.label]}) for p in board.pareto
            ),
        }
    )  # fmt: skip


def _hostile_table(table: Table, name: str, new: dict[str, str]) -> Table:
    return table.model_copy(
        update={
            "id": name, "title": name, "model": name, "split": name, "erasure_token": name,
            "entrants": tuple(
                e.model_copy(update={"label": new[e.label], "name": name, "family": name})
                for e in table.entrants
            ),
            "columns": tuple(_hostile_column(c, i, new) for i, c in enumerate(table.columns)),
            "shown": tuple(
                s.model_copy(
                    update={
                        "id": name, "said": name, "truth": name,
                        "tokens": tuple(HOSTILE[i % 8] for i in range(len(s.tokens))),
                        "scores": {new[label]: row for label, row in s.scores.items()},
                    }
                )
                for s in table.shown
            ),
        }
    )  # fmt: skip


def _hostile_column(column: Column, index: int, new: dict[str, str]) -> Column:
    pairs = tuple(
        Pair(
            first=new[p.first], second=new[p.second], test=HOSTILE[1], n=p.n, p=p.p,
            adjusted=p.adjusted, effect=p.effect, reason=HOSTILE[0],
        )
        for p in column.pairs
    )  # fmt: skip
    attack = HOSTILE[index % 8]
    return column.model_copy(
        update={
            "metric": column.metric if index == 0 else f"{column.metric} {attack}",
            "title": f"{column.title} {attack}",
            "cells": {new[label]: cell for label, cell in column.cells.items()},
            "pairs": pairs,
        }
    )


def _hostile_ranking(ranking: Ranking, new: dict[str, str], ids: dict[str, str]) -> Ranking:
    def hostile_rows(rows: tuple[RankedRow, ...]) -> tuple[RankedRow, ...]:
        return tuple(
            row.model_copy(
                update={
                    "label": new[row.label],
                    "tables": tuple(ids[name] for name in row.tables),
                    "worse_on": tuple(ids[name] for name in row.worse_on),
                }
            )
            for row in rows
        )

    return ranking.model_copy(
        update={
            "tables": tuple(ids[name] for name in ranking.tables),
            "rows": hostile_rows(ranking.rows),
            "below": hostile_rows(ranking.below),
            "controls": hostile_rows(ranking.controls),
            "pairs": tuple(
                pair._replace(first=new[pair.first], second=new[pair.second], reason=HOSTILE[0])
                for pair in ranking.pairs
            ),
        }
    )
