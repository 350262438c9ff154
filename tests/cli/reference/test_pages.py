"""Reference pages in markdown."""

from __future__ import annotations

from faithbench.cli.reference.card import Card, settings_of
from faithbench.cli.reference.pages import card_page, index_page, page_name, prose, table, task_page
from faithbench.cli.reference.tasks import source_facts, task_facts, task_papers
from faithbench.core.papers import paper_of
from faithbench.data.tasks import load_task


def test_prose_keeps_code_and_escapes_the_rest() -> None:
    assert prose("`a|b` is |x| * 2_y <b>") == (r"`a|b` is \|x\| \* 2\_y &lt;b&gt;")


def test_names_of_pages_are_file_names() -> None:
    assert page_name("iou_labels:words=content") == "iou-labels-words=content.md"
    assert page_name("bundled:sst2") == "bundled-sst2.md"


def test_a_card_becomes_a_page() -> None:
    card = Card(
        "mine", "What it is.", ("More of it.",), settings_of({"x": 0.5}),
        (("family", "own"), ("papers", "Doe (2026).")), (paper_of("ribeiro2016should"),),
        ("faithbench run",),
    )  # fmt: skip
    page = card_page(card, "<figure>map</figure>", "faithbench show explainer mine")
    lines = page.splitlines()
    assert lines[:5] == ["# mine", "", "What it is.", "", "More of it."]
    assert "| `x` | number | `0.5` |" in lines and "| **family** | own |" in lines
    assert "**papers**" not in page  # they have a section of their own
    assert "<figure>map</figure>" in lines and "    faithbench run" in lines
    assert "```bibtex\n@inproceedings{ribeiro2016should,\n" in page
    assert " KDD. <https://doi.org/10.1145/2939672.2939778>" in page
    assert lines[-1] == "`faithbench show explainer mine` prints this in a terminal."
    bare = card_page(Card("mine", "What it is."), "", "x")
    assert "## Settings" not in bare and "## Example" not in bare and "## Papers" not in bare


def test_a_task_becomes_a_page() -> None:
    task = load_task("sst2")
    sources = [("hub", source_facts(task, "hub"))]
    page = task_page(task, task_facts(task), sources, task_papers(task), "EXAMPLE")
    assert "## Source: hub\n\n|  |  |\n| --- | --- |\n| **dataset** | stanfordnlp/sst2 |" in page
    assert "@inproceedings{socher2013recursive," in page and "EXAMPLE" in page


def test_an_index_has_a_table_per_group() -> None:
    page = index_page("All", "Text.", [("a:b=c", "one", "x|y"), ("d", "two", "z")])
    assert page == (
        "# All\n\nText.\n\n## One\n\n| name | what it is |\n| --- | --- |\n"
        "| [`a:b=c`](a-b=c.md) | x\\|y |\n\n## Two\n\n| name | what it is |\n| --- | --- |\n"
        "| [`d`](d.md) | z |\n"
    )
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
