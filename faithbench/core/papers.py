"""Papers to cite, as BibTeX: those behind what comes with faithbench, and those of plugins.

An explainer, metric, objective or task names its `papers`. Each is the key of an entry of
`papers.bib`, next to this file, or an entry of its own, written out, as a plugin does:

    papers = ("sundararajan2017axiomatic", "@article{doe2026, title = {...}, year = {2026}}")
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, runtime_checkable

from faithbench.core.errors import FaithbenchError, unknown

_ENTRY = re.compile(r"@(\w+)\s*\{\s*([^\s,{}]+)\s*,")
_FIELD = re.compile(r"^\s*(\w+)\s*=\s*[{\"](.*)[}\"],?\s*$", flags=re.M)
_ACCENTS = {"'": "\u0301", '"': "\u0308", "`": "\u0300", "^": "\u0302", "~": "\u0303"}
_LETTERS = {"l": "\u0142", "o": "\u00f8", "ss": "\u00df"}


@runtime_checkable
class Citable(Protocol):
    """Has `papers`: those to cite, as keys of ours or as entries of BibTeX."""

    papers: tuple[str, ...]


@dataclass(frozen=True)
class Paper:
    """An entry of a bibliography: the key that it is cited by, and its BibTeX."""

    key: str
    bibtex: str

    def field(self, name: str) -> str:
        """Return a field as plain text, "" where there is none."""
        fields = {key.lower(): value for key, value in _FIELD.findall(self.bibtex)}
        return _plain(fields.get(name, ""))

    @property
    def link(self) -> str:
        """Where to read it: its page, else its DOI, else arXiv; "" where none is known."""
        if url := self.field("url"):
            return url
        if doi := self.field("doi"):
            return f"https://doi.org/{doi}"
        return f"https://arxiv.org/abs/{number}" if (number := self.field("eprint")) else ""

    @property
    def reference(self) -> str:
        """The paper in a line: authors, year, title, venue, link; what is not known is left out."""
        year = self.field("year")
        head = f"{self._authors()} ({year})" if year else self._authors()
        where = ("venue", "journal", "booktitle", "howpublished")
        venue = next(filter(None, map(self.field, where)), "")
        if venue == "arXiv preprint":
            venue = ""  # the link says so
        parts = [part for part in (head, self.field("title"), venue) if part.strip()]
        ended = (part if part[-1] in ".?!" else f"{part}." for part in parts)
        return " ".join([*ended, self.link]).strip() or self.key

    def _authors(self) -> str:
        names = [name.partition(",")[0] for name in self.field("author").split(" and ")]
        if len(names) > 3:
            return f"{names[0]} et al."
        *first, last = names
        return f"{', '.join(first)} and {last}" if first else last


def _plain(text: str) -> str:
    """Turn LaTeX's accents and quotes into the characters they stand for, and drop braces."""
    text = re.sub(
        r"\{\\(['\"`^~])(\w)\}",
        lambda m: unicodedata.normalize("NFC", m[2] + _ACCENTS[m[1]]),
        text,
    )
    text = re.sub(r"\{\\(l|o|ss)\}", lambda m: _LETTERS[m[1]], text)
    text = text.replace("``", '"').replace("''", '"').replace("--", "-")
    return re.sub(r"[{}]", "", text)


@cache
def bibliography() -> dict[str, Paper]:
    """Return the papers behind what comes with faithbench, by their keys."""
    text = Path(__file__).with_name("papers.bib").read_text(encoding="utf-8")
    entries = [paper_of(entry) for entry in re.split(r"\n(?=@)", text.strip())]
    return {paper.key: paper for paper in entries}


def paper_of(text: str) -> Paper:
    """Return the paper that a key of `papers.bib` or a BibTeX entry stands for."""
    if text.lstrip().startswith("@"):
        match = _ENTRY.match(text.strip())
        if match is None:
            line = text.strip().splitlines()[0]
            raise FaithbenchError(f"{line!r} begins no BibTeX entry; write @article{{key, ...}}")
        return Paper(match[2], text.strip())
    known = bibliography()
    if text not in known:
        raise unknown("paper", text, known)
    return known[text]


def papers_of(value: object) -> tuple[Paper, ...]:
    """Return the papers that something names; most plugins name none."""
    return tuple(map(paper_of, value.papers)) if isinstance(value, Citable) else ()


def suite() -> Paper:
    """Return faithbench itself, at the version that is installed."""
    entry = (
        "@software{faithbench,\n"
        "  author = {{The faithbench developers}},\n"
        "  title = {faithbench: a benchmark and leaderboard for explanations of {NLP} models},\n"
        f"  version = {{{version('faithbench')}}},\n"
        "}"
    )
    return Paper("faithbench", entry)


def to_bibtex(papers: Iterable[Paper]) -> str:
    """Return a file of BibTeX: each paper once, sorted by key."""
    by_key: dict[str, Paper] = {}
    for paper in papers:
        if by_key.setdefault(paper.key, paper).bibtex != paper.bibtex:
            raise FaithbenchError(
                f"two different papers have the key {paper.key!r}; rename the one of the plugin"
            )
    return "\n\n".join(by_key[key].bibtex for key in sorted(by_key)) + "\n"
