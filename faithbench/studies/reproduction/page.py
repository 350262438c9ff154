"""The pages of a reproduction: markdown, and the same as one HTML file that needs no network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from faithbench.core.files import replace_file
from faithbench.core.text import plain
from faithbench.leaderboard.pages.formatting import grid, markdown, number
from faithbench.studies.reproduction.recipe import CELL, Item, PaperRecipe
from faithbench.studies.reproduction.result import (
    CellResult,
    ClaimResult,
    ItemResult,
    MapRow,
    MapText,
    Reproduction,
    TrialResult,
)

PAGE = "README.md"
"""Of the folder of a paper, so that it is what one sees there."""
HTML = "index.html"
VERDICTS = ("holds", "does not hold", "cannot be told")
_SHOWN_TRIALS = 8
_STRONG = 0.35
"""Weight from which a word is set off in markdown, which has no colours."""
_SOURCES = {"bundled": "stand-ins", "hub": "the paper's own models"}


def write_pages(recipe: PaperRecipe, found: Reproduction, folder: Path) -> None:
    """Write both pages; figures lie beside them."""
    replace_file(folder / PAGE, _page(recipe, found, folder, html=False).encode())
    replace_file(folder / HTML, _html(recipe, _page(recipe, found, folder, html=True)).encode())


def verdict_counts(claims: Sequence[ClaimResult]) -> dict[str, int]:
    """Return how many claims of the paper hold, do not hold, and cannot be told."""
    return {
        name: sum(claim.verdict == name and not claim.own for claim in claims) for name in VERDICTS
    }


def item_name(item_id: str) -> str:
    """Return the name of an item as the paper has it: Table 1, Figures 7-9."""
    kind, *numbers = item_id.split("-")
    return f"{kind.capitalize()}{'s' * (len(numbers) > 1)} {'-'.join(numbers)}"


def _page(recipe: PaperRecipe, found: Reproduction, folder: Path, *, html: bool) -> str:
    blocks = [*_head(recipe, found)]
    for source, of_source in found.sources.items():
        # As the recipe has them: a file keeps its keys by the alphabet.
        items = {name: of_source[name] for name in recipe.by_id if name in of_source}
        if len(found.sources) > 1:
            blocks.append(f"# With {_SOURCES[source]}")
        blocks += _verdicts(items)
        for name, result in items.items():
            blocks += _item(recipe.by_id[name], result, folder, f"{name}-{source}", html=html)
    return "\n\n".join(blocks) + "\n"


def _head(recipe: PaperRecipe, found: Reproduction) -> Iterator[str]:
    yield f"# {markdown(recipe.title)}: theirs beside ours"
    yield f"{markdown(recipe.citation)}"
    if found.quick:
        yield (
            "**A quick reproduction: a few texts, one seed, short trainings. It shows that all "
            "works, and no number of it means anything.**"
        )
    seconds = sum(item.seconds for items in found.sources.values() for item in items.values())
    quick = " --quick" if found.quick else ""
    items = [item for of_source in found.sources.values() for item in of_source.values()]
    options = " or".join(dict.fromkeys(item.options for item in items if item.options))
    spent = f"{seconds / 60:.0f} CPU minutes" if seconds >= 30 else "from records that were there,"
    yield (
        f"Made by `faithbench reproduce {recipe.paper}{quick}{options} --data DATA`, {spent} "
        f"on {markdown(found.cpu)}. The paper's numbers are those it printed; ours are "
        "means over examples, with the bootstrap's 95% interval."
    )
    if recipe.stand_ins:
        yield "## What stands for what"
        yield "\n".join(
            f"- {markdown(theirs)}: {markdown(ours)}" for theirs, ours in recipe.stand_ins.items()
        )


def _verdicts(items: dict[str, ItemResult]) -> Iterator[str]:
    claims = [claim for item in items.values() for claim in item.claims]
    if not claims:
        return
    counts = verdict_counts(claims)
    yield "## Verdicts"
    yield (
        f"Of {sum(counts.values())} claims of the paper, {counts['holds']} hold here, "
        f"{counts['does not hold']} do not, and {counts['cannot be told']} cannot be told."
    )
    rows = [
        (item_name(item.id), said(claim), f"**{claim.verdict}**", claim.count)
        for item in items.values()
        for claim in item.claims
    ]
    yield grid(rows, ("", "claim", "verdict", "comparisons"), names=4)
    yield (
        "A comparison is for a claim if the difference is significant in its direction, after Holm "
        "over the claim's comparisons. It is against it if it is significant the other way, or if "
        "the 95% interval of our difference holds 0 and, widened for the number of the claim's "
        "comparisons, not the paper's difference, which would have been seen. All others are "
        "undecided."
    )


def said(claim: ClaimResult) -> str:
    """Return a claim as tables have it: the paper's, or a question of our own."""
    return f"*our question:* {markdown(claim.says)}" if claim.own else markdown(claim.says)


def _item(item: Item, result: ItemResult, folder: Path, chart: str, *, html: bool) -> Iterator[str]:
    yield f"## {item_name(item.id)}: {markdown(item.title)}"
    if (folder / f"{chart}.svg").is_file():
        yield f"![{markdown(item.title)}]({chart}.svg)"
    if result.cells:
        yield _cells_grid(item, result)
        yield from _ranks(result)
        yield _details(result.cells)
    for text in result.maps:
        yield _map(text, html=html)
    if item.maps is not None and not result.maps:
        yield "No model of these maps is here."
    if result.departs:
        yield "Where we depart:\n\n" + "\n".join(f"- {markdown(one)}" for one in result.departs)
    yield from _claims(result.claims)
    if result.seconds:
        yield f"{result.seconds / 60:.1f} CPU minutes of work stand behind this."


def _cells_grid(item: Item, result: ItemResult) -> str:
    """Lay the item out as the paper does; each cell has their number and ours."""
    cells = {f"{cell.row}{CELL}{cell.column}": cell for cell in result.cells}
    columns = [column.name for column in item.columns]
    rows = []
    for row in item.rows:
        texts = [_cell(cells.get(f"{row.name}{CELL}{column}")) for column in columns]
        rows.append((markdown(row.name), *texts))
    both = any(cell.printed is not None for cell in result.cells)
    corner = "paper / ours" if both else "ours"
    return grid(rows, (corner, *map(markdown, columns)))


def _cell(cell: CellResult | None) -> str:
    if cell is None:
        return ""
    ours = "?" if cell.ours is None else f"**{_short(cell.ours)}**"
    return ours if cell.printed is None else f"{_short(cell.printed)} / {ours}"


def _short(value: float) -> str:
    """Write a number with about three digits that tell something."""
    size = abs(value)
    digits = 1 if size >= 100 else 2 if size >= 10 else 3
    text = number(value, digits)
    return text if size >= 0.001 or value == 0 else f"{value:.1e}"


def _interval(ends: tuple[float, float] | None) -> str:
    return "" if ends is None else f"[{_short(ends[0])}, {_short(ends[1])}]"


def _ranks(result: ItemResult) -> Iterator[str]:
    if result.ranks:
        texts = [
            f"{markdown(rank.line)} {'-' if rank.tau is None else number(rank.tau, 2)} "
            f"({rank.n} methods{'' if rank.p is None else f', p {_p(rank.p)}'})"
            for rank in result.ranks
        ]
        yield f"Order of the methods, Kendall's tau with the paper: {'; '.join(texts)}."


def _p(p: float) -> str:
    return "< .001" if p < 0.001 else number(p, 3)


def _details(cells: Sequence[CellResult]) -> str:
    """Return every cell with its interval, numbers of texts and seeds, and records, folded."""
    rows = []
    for cell in cells:
        digests = ", ".join(dict.fromkeys(record.sha256[:8] for record in cell.records[:3]))
        more = " ..." if len(cell.records) > 3 else ""
        rows.append(
            (
                markdown(cell.row),
                markdown(cell.column),
                "" if cell.printed is None else _short(cell.printed),
                "" if cell.ours is None else _short(cell.ours),
                _interval(cell.interval) or markdown(cell.missing),
                str(cell.n or ""),
                str(cell.seeds or ""),
                f"{digests}{more}",
            )
        )
    head = ("row", "column", "paper", "ours", "95% interval", "n", "seeds", "records")
    table = grid(rows, head, names=2)
    return (
        "<details><summary>every cell with its interval, n and records</summary>\n\n"
        f"{table}\n\n</details>"
    )


def _claims(claims: Sequence[ClaimResult]) -> Iterator[str]:
    for claim in claims:
        lines = [
            f"**{claim.verdict.capitalize()}**: {said(claim)} "
            f"({markdown(claim.where)}; {claim.test}; {claim.count})"
        ]
        if claim.why:
            lines.append(f"Cannot be told because: {markdown(claim.why)}.")
        if claim.note:
            lines.append(markdown(claim.note))
        yield " ".join(lines)
        shown = [trial for trial in claim.trials if trial.side != "for"] or list(claim.trials)
        texts = [f"- {_trial(trial)}" for trial in shown[:_SHOWN_TRIALS]]
        if len(shown) > _SHOWN_TRIALS:
            texts.append(f"- and {len(shown) - _SHOWN_TRIALS} more")
        yield "\n".join(texts)


def _trial(trial: TrialResult) -> str:
    parts = [f"{markdown(trial.what)}: {trial.side}"]
    if trial.difference is not None:
        difference = f"{'+' if trial.difference > 0 else ''}{_short(trial.difference)}"
        parts.append(f"difference {difference} {_interval(trial.interval)}".rstrip())
    if trial.theirs is not None:
        parts.append(f"theirs {'+' if trial.theirs > 0 else ''}{_short(trial.theirs)}")
    if trial.p is not None:
        parts.append(f"p {_p(trial.p)}")
    if trial.n:
        parts.append(f"n {trial.n}")
    if trial.why:
        parts.append(markdown(trial.why))
    return ", ".join(parts)


def _map(text: MapText, *, html: bool) -> str:
    """Show a text under each explainer or model: colours in HTML, bold and struck in markdown."""
    head = f"{markdown(text.id)}, {markdown(text.predicted)}"
    marked = [word for word, is_marked in zip(text.words, text.marked, strict=False) if is_marked]
    if marked:
        head += f"; marked by people: {markdown(' '.join(marked))}"
    lines = [f"- {markdown(row.label)}: {_map_row(text, row, html=html)}" for row in text.rows]
    return f"{head}\n\n" + "\n".join(lines)


def _map_row(text: MapText, row: MapRow, *, html: bool) -> str:
    words = []
    for word, weight in zip(text.words, row.weights, strict=True):
        safe = markdown(word)
        if html:
            safe = escape(plain(word))
            colour = _colour(weight)
            words.append(
                f'<span style="background:{colour};color:#000" title="{weight:+.2f}">{safe}</span>'
                if colour
                else safe
            )
        elif weight >= _STRONG:
            words.append(f"**{safe}**")
        else:
            words.append(f"~~{safe}~~" if weight <= -_STRONG else safe)
    return " ".join(words)


def _colour(weight: float) -> str:
    """Blend white into green (more) or red (less), as the paper's maps do."""
    if abs(weight) < 0.05:
        return ""
    full = (70, 180, 90) if weight > 0 else (225, 90, 80)
    share = min(1.0, abs(weight))
    return "#" + "".join(f"{round(255 - share * (255 - part)):02x}" for part in full)


_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 1100px; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; margin: 1rem 0; }
th, td { border: 1px solid #8886; padding: .25rem .6rem; }
th { background: #8882; text-align: left; }
img { max-width: 100%; height: auto; background: #fff; }
details { margin: 1rem 0; } summary { cursor: pointer; }
code { background: #8882; padding: 0 .2rem; }
h2 { margin-top: 2.5rem; border-bottom: 1px solid #8886; }
"""


def _html(recipe: PaperRecipe, page: str) -> str:
    """Turn the page into HTML; all that comes from data was escaped when it was written."""
    from markdown_it import MarkdownIt

    body = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(page)
    title = escape(f"{recipe.title}: theirs beside ours")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}</body>\n</html>\n"
    )
