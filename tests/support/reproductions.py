"""What is found of a paper, made up: claims, a table of three cells, and a reproduction."""

from __future__ import annotations

from typing import Any

from faithbench.studies.reproduction.result import (
    CellResult,
    ClaimResult,
    ItemResult,
    RankResult,
    RecordFacts,
    Reproduction,
    TrialResult,
)

DIGEST = "abcdef0123456789" * 4
TRIAL = TrialResult(
    what="A | x > B | x", side="for", difference=0.25, interval=(0.125, 0.5), theirs=0.3, p=0.0004,
    n=20,
)  # fmt: skip


def claim_of(verdict: str = "holds", **changes: Any) -> ClaimResult:
    usual: dict[str, Any] = {
        "says": "A beats B.",
        "where": "Sec. 5",
        "test": "signed-rank",
        "verdict": verdict,
        "count": "1 of 1 for it",
        "trials": (TRIAL,),
    }
    return ClaimResult(**usual | changes)


def table(**changes: Any) -> ItemResult:
    record = RecordFacts(path="records/a.json", sha256=DIGEST)
    usual: dict[str, Any] = {
        "id": "table-1",
        "title": "Two methods",
        "kind": "table",
        "cells": (
            CellResult(row="A", column="x", printed=0.5, ours=0.4567, interval=(0.4, 0.5), n=20,
                       seeds=3, records=(record,)),
            CellResult(row="B", column="x", ours=-0.0004, n=20, seeds=1, records=(record,)),
            CellResult(row="B", column="y", printed=1234.5, missing="only the hub has this model"),
        ),
        "claims": (claim_of(),),
        "ranks": (RankResult(line="x", tau=0.5, p=0.0002, n=4),),
        "departs": ("A tiny model is explained.",),
        "seconds": 90.0,
    }  # fmt: skip
    return ItemResult(**usual | changes)


def found(*items: ItemResult, **changes: Any) -> Reproduction:
    sources = {"bundled": {item.id: item for item in items}}
    usual: dict[str, Any] = {"paper": "mini", "recipe_sha256": "ab", "cpu": "Some CPU"}
    return Reproduction(**usual | {"sources": sources} | changes)
