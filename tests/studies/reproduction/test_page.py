"""The pages of a reproduction: both numbers, digests and verdicts; and what data may not do."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from faithbench.studies.reproduction.page import (
    HTML,
    PAGE,
    item_name,
    verdict_counts,
    write_pages,
)
from faithbench.studies.reproduction.recipe import PaperRecipe
from faithbench.studies.reproduction.result import (
    CellResult,
    ItemResult,
    MapRow,
    MapText,
    RankResult,
    Reproduction,
)
from faithbench.studies.reproduction.trials import ALONE
from tests.support.reproductions import TRIAL, claim_of, found, table


def recipe(**changes: Any) -> PaperRecipe:
    usual: dict[str, Any] = {
        "paper": "mini",
        "title": "A mini paper",
        "citation": "Nobody (2024). https://example.org/mini",
        "stand_ins": {"BERT": "A tiny model."},
        "models": {"net": {"task": "sst2", "stands_for": "BERT", "bundled": "bundled:sst2"}},
        "items": [
            {
                "id": "table-1",
                "title": "Two methods",
                "rows": [{"name": "A"}, {"name": "B"}],
                "columns": [{"name": "x"}, {"name": "y"}],
                "printed": [[0.5, "-"], ["+", 1234.5]],
            },
            {
                "id": "figure-2-3",
                "title": "Texts",
                "kind": "maps",
                "maps": {"models": ["net"], "explainers": ["attention"]},
            },
        ],
    }
    return PaperRecipe.model_validate(usual | changes)


def maps(*words: str) -> ItemResult:
    row = MapRow(label="attention", weights=(1.0, -0.4, 0.02, 0.2)[: len(words)])
    text = MapText(
        id="e1", words=words, marked=(True, False, False, False)[: len(words)],
        predicted="positive", rows=(row,),
    )  # fmt: skip
    return ItemResult(id="figure-2-3", title="Texts", kind="maps", maps=(text,))


def pages(folder: Path, reproduction: Reproduction, **changes: Any) -> tuple[str, str]:
    write_pages(recipe(**changes), reproduction, folder)
    return (folder / PAGE).read_text(), (folder / HTML).read_text()


def test_a_cell_shows_the_papers_number_and_ours(tmp_path: Path) -> None:
    text, html = pages(tmp_path, found(table()))
    lines = text.splitlines()
    place = lines.index("| paper / ours | x | y |")
    # The paper has no number where ours is alone; a cell that neither has is blank.
    assert lines[place + 2 : place + 4] == [
        "| A | .500 / **.457** |  |",
        "| B | **-4.0e-04** | 1234.5 / ? |",
    ]
    assert '<td style="text-align:right">.500 / <strong>.457</strong></td>' in html


def test_every_cell_has_its_interval_n_and_digest(tmp_path: Path) -> None:
    text, html = pages(tmp_path, found(table()))
    assert "| A | x | .500 | .457 | [.400, .500] | 20 | 3 | abcdef01 |" in text
    assert "| B | x |  | -4.0e-04 |  | 20 | 1 | abcdef01 |" in text
    assert "| B | y | 1234.5 |  | only the hub has this model |  |  |  |" in text
    assert html.count("abcdef01") == 2 and "<details>" in html


def test_claims_have_their_verdict_and_their_comparisons(tmp_path: Path) -> None:
    text, html = pages(tmp_path, found(table()))
    assert "Of 1 claims of the paper, 1 hold here, 0 do not, and 0 cannot be told." in text
    assert "| Table 1 | A beats B. | **holds** | 1 of 1 for it |" in text
    assert "**Holds**: A beats B. (Sec. 5; signed-rank; 1 of 1 for it)" in text.replace("\\", "")
    trial = "- A | x > B | x: for, difference +.250 [.125, .500], theirs +.300, p < .001, n 20"
    assert trial in text.replace("\\", "").replace("&gt;", ">")
    assert "Kendall's tau with the paper: x .50 (4 methods, p < .001)." in text
    assert "- A tiny model is explained." in text
    assert "1.5 CPU minutes of work stand behind this." in text
    assert "<strong>holds</strong>" in html


def test_what_cannot_be_told_says_why_and_shows_what_is_not_for_it(tmp_path: Path) -> None:
    open_ones = tuple(
        TRIAL.model_copy(update={"what": f"t{n}", "side": "undecided", "why": "too few to tell"})
        for n in range(10)
    )
    claim = claim_of(
        "cannot be told", why="too few to tell", note="A note.", trials=(TRIAL, *open_ones)
    )
    text, _ = pages(tmp_path, found(table(claims=(claim,))))
    assert "Cannot be told because: too few to tell. A note." in text
    assert "- t0: undecided, " in text and "- t7: " in text and "- t8: " not in text
    assert "- and 2 more" in text and text.count("too few to tell") == 1 + 8
    assert "A | x" not in text.replace("\\", "").split("A note.")[1].split("\n\n")[1]


def test_what_holds_by_the_numbers_alone_says_so(tmp_path: Path) -> None:
    trial = TRIAL.model_copy(update={"p": None, "interval": None, "n": 1, "why": ALONE})
    text, _ = pages(tmp_path, found(table(claims=(claim_of("holds", trials=(trial,)),))))
    said = "for, difference +.250, theirs +.300, n 1, by the numbers alone, without a test"
    assert said in text.replace("\\", "")


def test_a_quick_reproduction_says_that_it_means_nothing(tmp_path: Path) -> None:
    quick, _ = pages(tmp_path, found(table(), quick=True))
    whole, _ = pages(tmp_path, found(table()))
    assert "**A quick reproduction: " in quick and "**A quick reproduction: " not in whole
    assert "`faithbench reproduce mini --quick --data DATA`, 2 CPU minutes on Some CPU." in quick
    assert "`faithbench reproduce mini --data DATA`, " in whole


def test_both_sources_have_headings_and_verdicts_of_their_own(tmp_path: Path) -> None:
    hub = table(claims=(claim_of("does not hold"),))
    sources = {"bundled": {"table-1": table()}, "hub": {"table-1": hub}}
    text, _ = pages(tmp_path, found(sources=sources))
    ours, theirs = text.split("# With the paper's own models")
    assert "# With stand-ins" in ours and "1 hold here, 0 do not" in ours
    assert "0 hold here, 1 do not" in theirs
    alone, _ = pages(tmp_path, found(table()))
    assert "# With" not in alone


def test_items_that_the_recipe_no_longer_has_are_not_shown(tmp_path: Path) -> None:
    text, _ = pages(tmp_path, found(table(), table(id="table-9", title="Gone")))
    assert "Gone" not in text


def test_words_are_set_off_by_their_weight(tmp_path: Path) -> None:
    text, html = pages(tmp_path, found(maps("good", "bad", "film", "a_b")))
    assert "## Figures 2-3: Texts" in text
    assert "e1, positive; marked by people: good" in text
    assert "- attention: **good** ~~bad~~ film a\\_b" in text
    # Full green, two fifths of the way to red, nothing, and a fifth of the way to green.
    colours = re.findall(r'background:(#\w{6});color:#000" title="([^"]+)">(\w+)<', html)
    assert colours == [
        ("#46b45a", "+1.00", "good"), ("#f3bdb9", "-0.40", "bad"), ("#daf0de", "+0.20", "a_b"),
    ]  # fmt: skip
    assert "</span> film <span" in html


def test_maps_without_a_model_say_so(tmp_path: Path) -> None:
    empty = ItemResult(id="figure-2-3", title="Texts", kind="maps")
    assert "No model of these maps is here." in pages(tmp_path, found(empty))[0]


def test_a_figure_is_shown_where_it_was_drawn(tmp_path: Path) -> None:
    figure = table(claims=())
    assert "![" not in pages(tmp_path, found(figure))[0]
    (tmp_path / "table-1-bundled.svg").write_text("<svg/>")
    text, html = pages(tmp_path, found(figure))
    assert "![Two methods](table-1-bundled.svg)" in text
    assert '<img src="table-1-bundled.svg" alt="Two methods"' in html
    assert "## Verdicts" not in text, "there is no claim"


EVIL = "<script>alert(1)</script>|`x`](javascript:alert(2)) *b* <img src=x onerror=y>"


def test_names_stay_text(tmp_path: Path) -> None:
    """Rows, columns, reasons, words and titles come from files of others."""
    items = [item.model_dump() for item in recipe().items]
    items[0] |= {"title": EVIL, "rows": [{"name": EVIL}], "printed": [[0.5, "-"]]}
    cells = (
        CellResult(row=EVIL, column="x", printed=0.5, ours=1.0),
        CellResult(row="B", column=EVIL, missing=EVIL),
    )
    claim = claim_of(
        "cannot be told", says=EVIL, where=EVIL, why=EVIL, note=EVIL,
        trials=(TRIAL.model_copy(update={"what": EVIL, "side": "missing", "why": EVIL}),),
    )  # fmt: skip
    ranks = (RankResult(line=EVIL, tau=None, p=None, n=3),)
    evil = table(title=EVIL, cells=cells, claims=(claim,), ranks=ranks, departs=(EVIL,))
    shown = maps(EVIL, "\u202eb\nc", "c", "d")
    text_of = shown.maps[0]
    row = text_of.rows[0].model_copy(update={"label": EVIL})
    shown = shown.model_copy(
        update={"maps": (text_of.model_copy(update={"predicted": EVIL, "rows": (row,)}),)}
    )
    text, html = pages(
        tmp_path, found(evil, shown, cpu=EVIL), items=items, title=EVIL, citation=EVIL,
        stand_ins={EVIL: EVIL},
    )  # fmt: skip
    for page in (text, html):
        assert "<script" not in page and "<img" not in page and "\u202e" not in page
    assert "javascript:" not in "".join(re.findall(r'(?:href|src)="([^"]*)"', html))
    assert "<a " not in html
    body = html.split("<body>")[1]
    assert body.count("<table>") == body.count("</table>") == 3


def test_an_id_stays_text(tmp_path: Path) -> None:
    shown = maps("good")
    text_of = shown.maps[0].model_copy(update={"id": "e1` <script>alert(1)</script> `"})
    shown = shown.model_copy(update={"maps": (text_of,)})
    assert "<script" not in pages(tmp_path, found(shown))[1]


def test_the_html_page_needs_nothing_else(tmp_path: Path) -> None:
    _, html = pages(tmp_path, found(table(), maps("good", "bad")))
    assert html.startswith("<!doctype html>\n") and html.endswith("</html>\n")
    assert "<script" not in html and "http" not in html.replace("https", "http").split("<body>")[0]
    assert not re.findall(r'(?:href|src)="', html)


def test_equal_reproductions_give_equal_pages(tmp_path: Path) -> None:
    assert pages(tmp_path, found(table())) == pages(tmp_path, found(table()))


@pytest.mark.parametrize(
    ("name", "shown"),
    [("table-1", "Table 1"), ("figure-12", "Figure 12"), ("figure-7-9", "Figures 7-9")],
)
def test_items_are_named_as_in_the_paper(name: str, shown: str) -> None:
    assert item_name(name) == shown


def test_verdicts_are_counted() -> None:
    claims = [claim_of(v) for v in ("holds", "cannot be told", "holds", "does not hold")]
    assert verdict_counts(claims) == {"holds": 2, "does not hold": 1, "cannot be told": 1}


def test_questions_of_our_own_are_counted_apart(tmp_path: Path) -> None:
    claims = (claim_of("holds"), claim_of("does not hold", says="B beats C.", own=True))
    assert verdict_counts(claims) == {"holds": 1, "does not hold": 0, "cannot be told": 0}
    text, _ = pages(tmp_path, found(table(claims=claims)))
    assert "Of 1 claims of the paper, 1 hold here, 0 do not, and 0 cannot be told." in text
    assert "| Table 1 | *our question:* B beats C. | **does not hold** |" in text
