"""`faithbench reproduce`: a paper's tables and figures, theirs beside ours, claim by claim."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.cli.help.command import DATA, MODEL, OUTPUT, WHAT
from faithbench.cli.options import DataFolder, Device, Jobs
from faithbench.core.errors import FaithbenchError, unknown

if TYPE_CHECKING:
    from faithbench.studies.reproduction.recipe import Item
    from faithbench.studies.reproduction.result import ItemResult, Reproduction

_MODELS = ("bundled", "hub")


def reproduce(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="PAPER[/ITEM]",
            help="A paper, one of its tables or figures (mask-lrp/table-1), a .toml file, or all.",
        ),
    ] = None,
    data: DataFolder = None,
    model: Annotated[
        str,
        typer.Option(
            metavar="WHICH",
            help="hub: the paper's own models and data; bundled: stand-ins.",
            rich_help_panel=MODEL,
        ),
    ] = "bundled",
    limit: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help="Explain at most N texts per model.", rich_help_panel=DATA
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="S", help="Seeds, instead of the recipe's.", rich_help_panel=WHAT
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A few texts and one seed: only to see it work.", rich_help_panel=WHAT
        ),
    ] = False,
    long: Annotated[
        bool,
        typer.Option(
            "--long", help="Make also the models that take hours on a CPU.", rich_help_panel=WHAT
        ),
    ] = False,
    jobs: Jobs = None,
    device: Device = "auto",
    results: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Models, students and records (default: results/reproductions).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    records: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER", help="Published records that may serve as well.", rich_help_panel=DATA
        ),
    ] = Path("leaderboard/records"),
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="Pages (default: reproductions).", rich_help_panel=OUTPUT
        ),
    ] = None,
) -> None:
    """Reproduce a paper's tables and figures.

    Without a paper, lists all recipes. Each cell shows the paper's number beside ours, and each
    claim of the paper is tested. What is there is not computed again; a stopped command continues.
    """
    console = Console()
    folder = out or Path("results/reproductions-quick/pages" if quick else "reproductions")
    if what is None:
        _list(console, folder)
        return
    if model not in _MODELS:
        raise unknown("kind of model", model, _MODELS)
    from faithbench.cli.display import progress_on

    with progress_on(console, "loading") as progress:
        from faithbench.studies.reproduction.catalogue import chosen_items, find_recipe, paper_names
        from faithbench.studies.reproduction.reproduce import reproduce
        from faithbench.studies.reproduction.request import ReproduceRequest

        paper, _, item = what.partition("/") if not what.endswith(".toml") else (what, "", "")
        papers = paper_names() if what == "all" else (paper,)
        recipes = [find_recipe(name) for name in papers]
        wanted = [chosen_items(recipe, [item] if item else []) for recipe in recipes]
        found = []
        for recipe, items in zip(recipes, wanted, strict=True):
            request = ReproduceRequest(
                recipe=recipe,
                items=items,
                results=results or Path(f"results/reproductions{'-quick' if quick else ''}"),
                out=folder,
                source="hub" if model == "hub" else "bundled",
                folder=data,
                limit=limit,
                seeds=seeds,
                quick=quick,
                long=long,
                jobs=jobs,
                device=device,
                also=(records,),
            )
            found.append((reproduce(request, progress), items))
    for reproduction, items in found:
        _show(console, reproduction, items, model)
        page = folder / reproduction.paper / "README.md"
        console.print(f"page: {page}", highlight=False, soft_wrap=True)
    if quick:
        console.print("a quick reproduction proves nothing; leave out --quick for one that does")


def _show(console: Console, found: Reproduction, items: tuple[str, ...], source: str) -> None:
    """Print the verdicts of the items that were asked for."""
    from faithbench.studies.reproduction.page import item_name

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column(found.paper, no_wrap=True)
    table.add_column("claim", overflow="fold", max_width=36)
    table.add_column("verdict", overflow="fold", max_width=10)
    table.add_column("comparisons", overflow="fold", max_width=16)
    styles = {"holds": "green", "does not hold": "red"}
    of_source = found.sources["hub" if source == "hub" else "bundled"]
    for name in items:
        for claim in of_source[name].claims:
            table.add_row(
                item_name(name),
                Text(claim.says),
                Text(claim.verdict, style=styles.get(claim.verdict, "")),
                claim.count,
            )
    if table.row_count:
        console.print(table, highlight=False)


def _list(console: Console, folder: Path) -> None:
    """List papers, tables and figures: what each needs, how long it takes, and its state."""
    from faithbench.studies.reproduction.catalogue import paper_names, recipe_folder
    from faithbench.studies.reproduction.reading import read_recipe
    from faithbench.studies.reproduction.result import read_reproduction

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("paper/item", no_wrap=True)
    table.add_column("cells", justify="right")
    table.add_column("needs", overflow="fold", max_width=24)
    table.add_column("minutes", justify="right")
    table.add_column("state", overflow="fold", max_width=18)
    for paper in paper_names():
        recipe = read_recipe(recipe_folder() / f"{paper}.toml")
        try:
            found = read_reproduction(folder / paper)
        except FaithbenchError:
            found = None
        done = {} if found is None else found.sources.get("bundled", {})
        for item in recipe.items:
            result = done.get(item.id)
            minutes = item.minutes if result is None else result.seconds / 60
            table.add_row(
                f"{paper}/{item.id}" if item is recipe.items[0] else f"  {item.id}",
                _size(item),
                _needs(item),
                f"{minutes:.0f}" if minutes >= 1 else "<1",
                "not run" if result is None else _state(result),
            )
        table.add_row("", "", "", "", "")
    console.print(table, highlight=False)
    console.print(
        "minutes are of one core: measured where it was run here, else a guess\n"
        "run one: faithbench reproduce mask-lrp/table-1 --data DATA",
        highlight=False,
    )


def _size(item: Item) -> str:
    from faithbench.studies.reproduction.recipe import cells_of

    return "texts" if item.maps is not None else str(len(cells_of(item)))


def _needs(item: Item) -> str:
    from faithbench.studies.reproduction.recipe import cells_of

    if item.maps is not None:
        return ", ".join(item.maps.models)
    parts = [cell.part for cell in cells_of(item).values()]
    models = dict.fromkeys(part.model or f"study of {part.task}" for part in parts)
    shown = list(models)[:3]
    return ", ".join(shown) + (f" and {len(models) - 3} more" if len(models) > 3 else "")


def _state(result: ItemResult) -> str:
    if result.kind == "maps":
        return f"{len(result.maps)} texts shown"
    there = sum(cell.ours is not None for cell in result.cells)
    return f"{there} of {len(result.cells)} cells"
