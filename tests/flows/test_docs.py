"""The pages of docs/ are all in the index, links lead somewhere, and the plan is the package's."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.paths import ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_NAMED = r"(?:docs|faithbench|benchmarks|tests|tasks|submissions|leaderboard|\.github)/[\w./-]+"


def prose(path: Path) -> str:
    """Return a page without its blocks of code."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"```.*?```", "", text, flags=re.S)


def links(path: Path) -> list[str]:
    """Return the targets of a page's links and pictures that are no web addresses."""
    targets = re.findall(r"\[[^\]]*\]\(([^)\s]+)\)", prose(path))
    return [target for target in targets if "://" not in target]


def anchors(path: Path) -> set[str]:
    """Return the anchors that GitHub gives a page's headings."""
    titles = re.findall(r"^#+ (.+)$", prose(path), flags=re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_to_files_and_headings(page: Path) -> None:
    for link in links(page):
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{page.name} links to {link}, which is not there"
        assert not anchor or anchor in anchors(target), f"{page.name}: no heading for {link}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_named_in_a_page_exist(page: Path) -> None:
    named = re.findall(rf"`({_NAMED})`", prose(page))
    for name in (name for name in named if "/my-" not in name):  # what a reader would write
        assert (ROOT / name).exists(), f"{page.name} names {name}, which is not there"


def test_every_page_is_in_the_index() -> None:
    listed = {(DOCS / link).resolve() for link in links(DOCS / "README.md")}
    pages = {*DOCS.glob("*.md"), *DOCS.glob("*.ipynb")} - {DOCS / "README.md"}
    missing = sorted(page.name for page in pages if page.resolve() not in listed)
    assert not missing, f"add a row to docs/README.md for {', '.join(missing)}"


def test_the_readme_leads_to_the_index() -> None:
    assert "docs/README.md" in links(ROOT / "README.md")


def table_under(page: Path, heading: str) -> list[list[str]]:
    """Return the rows of the first table under a heading, without its head."""
    section = page.read_text(encoding="utf-8").split(f"## {heading}\n", 1)[1]
    lines = [line for line in section.split("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def rooms() -> dict[str, set[str]]:
    """Return the rooms of docs/architecture.md, and which others each may touch."""
    above: list[str] = []
    found: dict[str, set[str]] = {}
    for name, _, text in table_under(DOCS / "architecture.md", "Rooms"):
        if text.startswith("all above"):
            found[name] = set(above) - set(re.findall(r"\w+", text)[3:])  # "all above but ..."
        else:
            found[name] = set(text.split(", ")) - {""}
        above.append(name.strip("`"))
    return {name.strip("`"): may for name, may in found.items()}


def test_the_plan_has_the_rooms_of_the_contract_in_its_order() -> None:
    layers = PROJECT["tool"]["importlinter"]["contracts"][0]["layers"]
    assert list(rooms()) == layers[::-1]


@pytest.mark.parametrize("room", list(rooms()))
def test_a_room_touches_only_what_the_plan_says(room: str) -> None:
    folder = ROOT / "faithbench" / room
    modules = [*folder.rglob("*.py"), *folder.parent.glob(f"{room}.py")]  # a room may be one file
    touched = {other for path in modules for other in imported_rooms(path)}
    unsaid = touched & rooms().keys() - rooms()[room] - {room}
    assert not unsaid, f"{room} imports {', '.join(sorted(unsaid))}: docs/architecture.md says no"


def imported_rooms(path: Path) -> Iterator[str]:
    """Yield the rooms that a module imports from, inside its functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("faithbench."):
            yield str(node.module).split(".")[1]


def test_every_dependency_has_its_reason() -> None:
    project = PROJECT["project"]
    extras = project["optional-dependencies"].values()
    stated = [*project["dependencies"], *(text for extra in extras for text in extra)]
    names = {re.split(r"[^\w-]", text, maxsplit=1)[0] for text in stated} - {"faithbench"}
    table = table_under(DOCS / "architecture.md", "Dependencies")
    told = {name for row in table for name in re.sub(r"\(.*?\)", "", row[0]).split(", ")}
    assert {name.strip() for name in told} == names
