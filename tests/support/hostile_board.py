"""A board in which every name and word is an attack on the page."""

from __future__ import annotations

import re
from typing import Final

from faithbench.leaderboard.board import Board, Column, Pair, Ranking, Table
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
    return board.model_copy(
        update={
            "tables": tuple(
                _hostile_table(table, HOSTILE[i], entrants) for i, table in enumerate(board.tables)
            ),
            "rankings": tuple(_hostile_ranking(r, entrants) for r in board.rankings),
            "pareto": tuple(
                p.model_copy(update={"label": entrants[p.label]}) for p in board.pareto
            ),
        }
    )


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


def _hostile_ranking(ranking: Ranking, new: dict[str, str]) -> Ranking:
    return ranking.model_copy(
        update={
            "over": HOSTILE[:3],
            "left_out": HOSTILE[3:5],
            "mean_ranks": {new[label]: rank for label, rank in ranking.mean_ranks.items()},
            "ci95": {new[label]: ends for label, ends in ranking.ci95.items()},
            "groups": tuple(tuple(new[label] for label in group) for group in ranking.groups),
            "reason": HOSTILE[0],
        }
    )
