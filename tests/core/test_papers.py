"""Papers: what an entry says in a line, entries of plugins, and files of BibTeX."""

from __future__ import annotations

import re

import pytest
import yaml

from faithbench.core.errors import FaithbenchError
from faithbench.core.papers import bibliography, paper_of, papers_of, suite, to_bibtex
from tests.support.paths import ROOT

OWN = "@article{doe2026,\n  author = {Doe, Jane},\n  title = {Mine},\n  year = {2026},\n}"


def test_a_key_stands_for_an_entry_of_ours() -> None:
    paper = paper_of("ferrando2022measuring")
    assert paper.bibtex.startswith("@inproceedings{ferrando2022measuring,\n  author = {Ferrando, ")
    assert paper.reference == (
        "Ferrando, Gállego and Costa-jussà (2022). Measuring the Mixing of Contextual Information "
        "in the Transformer. EMNLP. https://arxiv.org/abs/2203.04212"
    )
    assert paper_of("meister2021sparse").reference.startswith(
        "Meister et al. (2021). Is Sparse Attention more Interpretable? ACL-IJCNLP. https://"
    )
    assert paper_of("bach2015pixel").link == "https://doi.org/10.1371/journal.pone.0130140"
    assert paper_of("lang1995newsweeder").reference.endswith("Netnews. ICML.")


def test_an_entry_of_ones_own_stands_for_itself() -> None:
    paper = paper_of(OWN)
    assert paper.key == "doe2026" and paper.reference == "Doe (2026). Mine."
    with pytest.raises(FaithbenchError, match=r"'@article\{' begins no BibTeX entry; write @art"):
        paper_of("@article{")
    with pytest.raises(FaithbenchError, match="no paper named 'abnar'"):
        paper_of("abnar")


def test_papers_of_what_names_some_and_of_what_names_none() -> None:
    class Cited:
        papers = ("qiang2022attcat", OWN)

    assert [paper.key for paper in papers_of(Cited())] == ["qiang2022attcat", "doe2026"]
    assert [paper.key for paper in papers_of(Cited)] == ["qiang2022attcat", "doe2026"]
    assert papers_of(object()) == ()


def test_a_file_has_each_paper_once_sorted_by_key() -> None:
    text = to_bibtex([suite(), paper_of(OWN), paper_of("abnar2020quantifying"), paper_of(OWN)])
    assert re.findall(r"^@\w+\{(\w+),$", text, flags=re.M) == [
        "abnar2020quantifying", "doe2026", "faithbench",
    ]  # fmt: skip
    assert text.endswith("}\n") and "version = {" in text
    with pytest.raises(FaithbenchError, match="two different papers have the key 'doe2026'"):
        to_bibtex([paper_of(OWN), paper_of(OWN.replace("Mine", "Yours"))])


@pytest.mark.parametrize("key", bibliography())
def test_every_entry_of_ours_is_well_formed(key: str) -> None:
    paper = bibliography()[key]
    first, *fields, last = paper.bibtex.splitlines()
    assert re.fullmatch(rf"@(article|inproceedings|incollection|misc)\{{{key},", first)
    assert last == "}" and all(re.fullmatch(r"  [a-z]+ = \{.+\},", line) for line in fields)
    assert paper.bibtex.count("{") == paper.bibtex.count("}")
    assert paper.field("author") and paper.field("title")
    assert paper.field("year") in key and re.fullmatch(r"[a-z]+\d{4}[a-z]+", key)
    assert not re.search(r"[\\{}]", paper.reference)


def test_the_suite_is_cited_as_its_citation_file_says() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert suite().field("title") == cited["title"]
    assert suite().field("author") == cited["authors"][0]["name"]


def test_ours_are_sorted() -> None:
    assert list(bibliography()) == sorted(bibliography())
