"""The page of a study: what stands on it comes from the records, and reads as markdown."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from faithbench.studies.sparse_attention.page import Study, page
from tests.studies.sparse_attention.made import made_adversary, made_study

STUDY = Study(
    records=tuple(made_study(seeds=2)),
    adversaries=(made_adversary(),),
    quick=False,
    command="faithbench study sparse-attention --task mini",
    cpu="a processor",
)


def section(text: str, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    assert found is not None, f"no section {title}"
    return found[0]


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def test_the_head_says_what_was_done_and_how_long_it_took() -> None:
    text = page(STUDY, ())
    # Eight networks and an adversary of 60 and 30 s each.
    assert "on 8 networks and 1 adversaries" in " ".join(text.split())
    assert "9 CPU minutes of training and 4 of measuring on one thread of a processor" in text
    assert "`faithbench study sparse-attention --task mini`" in text
    assert "quick study" not in text and "A quick study" in page(replace(STUDY, quick=True), ())


def test_every_claim_has_its_verdict_and_its_trials() -> None:
    text = page(STUDY, ())
    verdicts = section(text, "Verdicts")
    for claim in STUDY.claims:
        said = f"{claim.number} | {claim.sentence} | **{claim.verdict}** | {claim.count}"
        assert f"| {said} |" in verdicts
        told = f"**{claim.number}: {claim.sentence}** {claim.count}"
        assert told in section(text, "All trials")


def test_means_are_those_of_the_records() -> None:
    text = page(STUDY, ("figure-1",))
    agreement = section(text, "Figures 1 to 3")
    assert "![Figure 1" in agreement and "(figure-1.svg)" in agreement
    row = next(line for line in agreement.splitlines() if "| sparsemax |" in line)
    values = [float(value) for value in cells(row)[3:]]
    assert values == pytest.approx([0.4, 0.6, 0.6, 0.8, 0.5, 0.8, 0.2, 0.5, 0.3, 0.9], abs=0.01)
    first = next(line for line in section(text, "Table 1").splitlines() if "| softmax |" in line)
    assert cells(first)[3] == "", "the paper has no such task"
    assert cells(first)[4].startswith("0.90 ±")


def test_table_2_has_both_readings() -> None:
    table = section(page(STUDY, ()), "Table 2")
    gradient = next(line for line in table.splitlines() if "| gradient |" in line)
    assert cells(gradient)[4].startswith("-1.00 (")
    assert cells(gradient)[6].startswith("-1.00 (")
    assert "for the table" in table and "for the text" in table


def test_an_adversary_without_a_sibling_has_no_divergence_of_seeds() -> None:
    rows = section(page(STUDY, ()), "Attention that is made to diverge").splitlines()
    assert cells(rows[4])[-2:] == ["0.500", "0.250"]
    alone = replace(STUDY, adversaries=(made_adversary(weights_sha256=("a", "b", "a")),))
    rows = section(page(alone, ()), "Attention that is made to diverge").splitlines()
    assert cells(rows[4])[-2:] == ["0.500", "-"]
    assert "diverge" not in page(replace(STUDY, adversaries=()), ()).partition("## All")[0]


def test_tables_have_as_many_cells_in_every_row() -> None:
    for block in page(STUDY, ()).split("\n\n"):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(cells(row)) for row in rows}) <= 1, block
