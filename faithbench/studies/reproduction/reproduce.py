"""The whole line: read the recipe, make what is missing, test the claims, write the pages."""

from __future__ import annotations

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import check_writable
from faithbench.core.machine import cpu_name
from faithbench.core.types import Progress, quiet
from faithbench.studies.reproduction.cells import CellReader
from faithbench.studies.reproduction.charts import write_chart
from faithbench.studies.reproduction.index import write_index
from faithbench.studies.reproduction.maps import map_texts
from faithbench.studies.reproduction.page import write_pages
from faithbench.studies.reproduction.recipe import Item, cells_of
from faithbench.studies.reproduction.request import Clock, ReproduceRequest
from faithbench.studies.reproduction.result import (
    ItemResult,
    Reproduction,
    cell_result,
    claim_result,
    rank_results,
    read_reproduction,
    write_reproduction,
)
from faithbench.studies.reproduction.verdicts import judge


def reproduce(request: ReproduceRequest, progress: Progress = quiet) -> Reproduction:
    """Reproduce the items of a request, one after the other, and write the paper's pages.

    Each item is written as it ends: a killed call continues at the one it was at. Items that were
    reproduced before, and are not asked for now, stay as they are.
    """
    recipe = request.recipe
    folder = request.out / recipe.paper
    check_writable(request.results, "--results")
    check_writable(folder, "--out")
    clock = Clock(request.results / f"times-{recipe.paper}.json")
    reader = CellReader(request, clock, progress)
    before = read_reproduction(folder)
    found = before or Reproduction(paper=recipe.paper, recipe_sha256=recipe.digest)
    if before is not None and before.quick != request.quick:
        raise FaithbenchError(
            f"{folder} holds {'a quick' if before.quick else 'a whole'} reproduction; choose "
            "another --out"
        )
    for number, name in enumerate(request.items):
        progress(f"{recipe.paper}/{name} ({number + 1} of {len(request.items)})", 0, 0)
        item = recipe.by_id[name]
        result = _item_result(reader, item, clock)
        of_source = dict(found.sources.get(request.source, {})) | {name: result}
        ordered = {key: of_source[key] for key in recipe.by_id if key in of_source}
        found = Reproduction(
            paper=recipe.paper,
            recipe_sha256=recipe.digest,
            quick=request.quick,
            cpu=cpu_name(),
            sources=found.sources | {request.source: ordered},
        )
        write_chart(item, result, f"{name}-{request.source}", folder)
        write_reproduction(found, folder)
        write_pages(recipe, found, folder)
        write_index(request.out)
    return found


def _item_result(reader: CellReader, item: Item, clock: Clock) -> ItemResult:
    facts = {"id": item.id, "title": item.title, "kind": item.kind, "departs": item.departs}
    facts |= {"options": reader.request.options}
    if item.maps is not None:
        maps = map_texts(reader.networks, item.maps)
        return ItemResult.model_validate(facts | {"maps": maps, "seconds": clock.spent()})
    specs = cells_of(item)
    values = reader.values(item)
    cells = tuple(cell_result(spec, values[name]) for name, spec in specs.items())
    claims = tuple(claim_result(judge(claim, specs, values)) for claim in item.claims)
    return ItemResult.model_validate(
        facts
        | {
            "cells": cells,
            "claims": claims,
            "ranks": rank_results(item, cells),
            "seconds": clock.spent(),
        }
    )
