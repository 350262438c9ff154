"""The pages of docs/ are all in the index, links lead somewhere, and the plan is the package's."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
import yaml

from faithbench.cli.app import app
from faithbench.testing import check_file
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


class _Loader(yaml.SafeLoader):
    """Reads mkdocs.yml, whose one Python object is none of our business here."""


_Loader.add_multi_constructor("tag:yaml.org,2002:python/", lambda *_: None)


def navigation(entries: object) -> Iterator[str]:
    """Yield the pages of a part of the site's navigation."""
    if isinstance(entries, str):
        yield entries
    elif isinstance(entries, dict):
        yield from navigation(list(entries.values()))
    elif isinstance(entries, list):
        for entry in entries:
            yield from navigation(entry)


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    site = yaml.load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"), Loader=_Loader)
    listed = list(navigation(site["nav"]))
    assert sorted(set(listed)) == sorted(listed)
    inside = {name for name in listed if not name.startswith("repository/")}
    assert inside == {page.name for page in DOCS.glob("*.md")}
    outside = [name.removeprefix("repository/") for name in listed if name not in inside]
    assert outside and all((ROOT / name).is_file() for name in outside)


@pytest.fixture(scope="module")
def hooks():
    spec = importlib.util.spec_from_file_location("docs_hooks", DOCS / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_links_lead_to_where_things_are_on_the_site(hooks) -> None:
    adapted = hooks.adapted
    assert adapted("[a](protocol.md#words)", "faq.md") == "[a](protocol.md#words)"
    assert adapted("[a](../README.md)", "faq.md") == "[a](repository/README.md)"
    assert adapted("[a](docs/faq.md#x)", "repository/README.md") == "[a](../faq.md#x)"
    assert adapted("![a](docs/viewer.png)", "repository/README.md") == "![a](../viewer.png)"
    assert adapted("[a](index.html)", "repository/leaderboard/README.md") == "[a](page.html)"
    assert (
        adapted("[b](../../methods.md)", "reference/explainers/index.md") == "[b](../../methods.md)"
    )
    # The name of a page's file is shown as its heading.
    assert adapted("[faq.md](faq.md)", "start.md") == "[Questions](faq.md)"
    # What the site does not have stays as its text.
    assert adapted("see [`x.py`](../faithbench/api.py).", "faq.md") == "see `x.py`."
    assert adapted("[w](https://example.org)", "faq.md") == "[w](https://example.org)"
    code = "```python keep\n[a](../README.md)\n```\n"
    assert adapted(code, "faq.md") == code.replace(" keep", "")
    assert adapted("Here:\n- one\n- two\n", "faq.md") == "Here:\n\n- one\n- two\n"


def test_the_site_takes_over_what_is_linked_to(hooks) -> None:
    outside = hooks.outside_files()
    assert {"README.md", "CONTRIBUTING.md", "leaderboard/README.md"} <= set(outside)
    assert "leaderboard/tasks/sst2-folder.md" in outside and "leaderboard/index.html" in outside
    assert not any(path.endswith(".py") for path in outside)


def test_a_page_that_loads_from_the_network_is_refused(hooks) -> None:
    from types import SimpleNamespace

    from mkdocs.exceptions import PluginError

    page = SimpleNamespace(file=SimpleNamespace(src_uri="faq.md"))
    fine = '<a href="https://example.org">there</a><script src="a.js"></script>'
    assert hooks.on_post_page(fine, page) == fine
    for bad in (
        '<script src="https://example.org/a.js"></script>',
        '<link rel="stylesheet" href="//example.org/a.css">',
        "<img alt=x src=https://example.org/a.png>",
    ):
        with pytest.raises(PluginError, match=r"faq\.md loads .* from the network"):
            hooks.on_post_page(bad, page)


@pytest.mark.parametrize("name", ["start.md", "faq.md"])
def test_commands_of_a_page_are_taken(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.S)
    blocks += re.findall(r"^ {4}(faithbench .+)$", text, flags=re.M)
    lines = [line for block in blocks for line in block.splitlines() if line[:5] == "faith"]
    assert len(lines) > 1
    for line in lines:
        words = shlex.split(line.partition(" > ")[0])[1:]
        command = typer.main.get_command(app)
        while hasattr(command, "commands"):
            command = command.commands[words.pop(0)]
        # Parsed as a terminal would, up to the point where the command would run.
        command.make_context(command.name, words, resilient_parsing=False)


def test_the_explainer_of_the_first_page_works(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (DOCS / "start.md").read_text(), flags=re.S)
    path = tmp_path / "mine_of_start.py"
    path.write_text(code)
    check_file(path, architectures=("bert",), longest=False)


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
