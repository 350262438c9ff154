"""Hooks of mkdocs: generated reference pages, pages of the repository, links between both.

Pages of docs/ and of the repository are written for people who read them in the repository. On the
site, pages outside docs/ that others link to lie below `repository/`, where they are in the
repository; a link to anything else is left as its text.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
REFERENCE = "reference"
OUTSIDE = "repository"
KINDS = {
    "explainers": "Explainers",
    "metrics": "Metrics",
    "tasks": "Tasks",
    "objectives": "Objectives",
    "models": "Models",
}
SHOWN = (".md", ".png", ".svg", ".html", ".json")
"""Files that are taken over from the repository if a page links to them."""

_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_BEFORE_LIST = re.compile(r"^(?![-*|\s]|\d+\. )(.+)\n(?=(?:- |1\. ))", flags=re.M)
_LOADED = re.compile(
    r"<(?:script|img|iframe|source)[^>]+src=[\"']?(?:https?:)?//[^\s>]+"
    r"|<link[^>]+rel=[\"']?(?:stylesheet|preconnect)[^>]+href=[\"']?(?:https?:)?//[^>]+"
)
_FENCE = re.compile(r"^(```+)(\w+)?[^\n]*$", flags=re.M)


def site_path(repository_path: str) -> str | None:
    """Return where the site has a file of the repository, None where it has not."""
    if repository_path.startswith(f"docs/{REFERENCE}/"):
        return repository_path.removeprefix("docs/")
    if not (ROOT / repository_path).is_file():
        return None
    if repository_path.startswith("docs/"):
        return repository_path.removeprefix("docs/")
    if not repository_path.endswith(SHOWN):
        return None
    folder, name = posixpath.split(repository_path)
    # README.md is the index of its folder on the site, so that a page of that name has to move.
    return posixpath.join(OUTSIDE, folder, "page.html" if name == "index.html" else name)


def repository_path(site: str) -> str:
    """Return the file of the repository that a page of the site is."""
    if site.startswith(f"{OUTSIDE}/"):
        return site.removeprefix(f"{OUTSIDE}/")
    return f"docs/{site}"


def targets(text: str, page: str) -> Iterator[str]:
    """Yield the files of the repository that a page, at a path in it, links to."""
    for _, _, link in _LINK.findall(_FENCE.sub("", text)):
        if "://" not in link and not link.startswith(("#", "mailto:")):
            yield resolved(link, page)


def resolved(link: str, page: str) -> str:
    """Return the path in the repository that a relative link of a page means."""
    name = link.partition("#")[0]
    return posixpath.normpath(posixpath.join(posixpath.dirname(page), name))


def adapted(text: str, page: str) -> str:
    """Return a page's markdown for the site, with links that lead to where things are there."""

    def replace(match: re.Match[str]) -> str:
        image, label, link = match.groups()
        if "://" in link or link.startswith(("#", "mailto:")):
            return match[0]
        source = resolved(link, repository_path(page))
        target = site_path(source)
        if target is None:
            return label
        if label == link and link.endswith(".md"):
            label = title(source)  # names of files say little to who reads the site
        anchor = "".join(link.partition("#")[1:])
        away = posixpath.relpath(target, posixpath.dirname(page) or ".")
        return f"{image}[{label}]({away}{anchor})"

    blocks = re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.M | re.S)
    for number, block in enumerate(blocks):
        if block.startswith("```"):
            # Words after the language are for our tests.
            blocks[number] = _FENCE.sub(r"\1\2", block, count=1)
        else:
            # GitHub lets a list follow a line of text.
            blocks[number] = _LINK.sub(replace, _BEFORE_LIST.sub(r"\1\n\n", block))
    return "".join(blocks)


@cache
def title(repository_path: str) -> str:
    """Return the heading of a page of the repository; what builds made begins with a comment."""
    lines = (ROOT / repository_path).read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("# ")).removeprefix("# ")


@cache
def outside_files() -> tuple[str, ...]:
    """Return the files outside docs/ that its pages link to, and those that these link to."""
    waiting = [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        for target in targets((ROOT / page).read_text(encoding="utf-8"), page):
            if target not in seen and site_path(target) is not None:
                seen.add(target)
                if target.endswith(".md") and (ROOT / target).is_file():
                    waiting.append(target)
    return tuple(sorted(path for path in seen if not path.startswith("docs/")))


@cache
def reference() -> dict[str, str]:
    """Return the generated pages by their paths on the site."""
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the bundled models need no network
    from faithbench.cli.reference.site import reference_pages

    examples = os.environ.get("FAITHBENCH_DOCS_EXAMPLES", "1") != "0"
    return {f"{REFERENCE}/{path}": text for path, text in reference_pages(examples)}


def on_config(config: Any) -> Any:
    """Put the generated pages into the navigation, each kind below its index."""
    (section,) = (entry["Reference"] for entry in config.nav if "Reference" in entry)
    for kind, heading in KINDS.items():
        paths = [path for path in reference() if path.startswith(f"{REFERENCE}/{kind}/")]
        section.append({heading: paths})
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages, and what others link to outside docs/."""
    from mkdocs.structure.files import File

    for path, text in reference().items():
        files.append(File.generated(config, path, content=text))
    for outside in outside_files():
        where = site_path(outside)
        assert where is not None
        files.append(File.generated(config, where, abs_src_path=str(ROOT / outside)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Adapt the links of a page."""
    return adapted(markdown, page.file.src_uri)


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that would load anything from the network when it is viewed."""
    if loaded := _LOADED.search(output):
        from mkdocs.exceptions import PluginError

        raise PluginError(f"{page.file.src_uri} loads {loaded[0]} from the network")
    return output
