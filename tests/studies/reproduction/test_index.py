"""The page of all papers: claims are counted, and what nothing tested is marked."""

from __future__ import annotations

from pathlib import Path

from faithbench.studies.reproduction.index import summary_table, write_index
from faithbench.studies.reproduction.page import PAGE
from faithbench.studies.reproduction.result import TrialResult, write_reproduction
from faithbench.studies.reproduction.trials import ALONE
from tests.support.reproductions import TRIAL, claim_of, found, table


def test_the_index_counts_the_claims_of_all_papers(tmp_path: Path) -> None:
    one, two = claim_of("holds"), claim_of("cannot be told")
    write_reproduction(found(table(claims=(one, one, two))), tmp_path / "mini")
    write_reproduction(found(table(claims=(two,)), paper="other"), tmp_path / "other")
    (tmp_path / "empty").mkdir()
    write_index(tmp_path)
    lines = (tmp_path / PAGE).read_text().splitlines()
    place = lines.index("| paper | claims | holds | does not hold | cannot be told |")
    assert lines[place + 2 : place + 5] == [
        "| mini | 3 | 2 | 0 | 1 |",
        "| other | 1 | 0 | 0 | 1 |",
        "| **all** | 4 | 2 | 0 | 2 |",
    ]
    assert "## [mini](mini/README.md)" in lines and "no number of them" not in "".join(lines)
    assert "| Table 1 | A beats B. | **cannot be told** |" in lines


def test_claims_that_single_numbers_decided_are_marked(tmp_path: Path) -> None:
    alone = TrialResult(what="A | x > B | x", side="for", difference=0.25, why=ALONE, n=1)
    missing = TrialResult(what="A | y > B | y", side="missing", why="takes hours")
    trials = [(alone, missing), (alone, TRIAL), (TRIAL,)]
    claims = [claim_of("holds", trials=tried) for tried in trials]
    claims += [claim_of("does not hold", trials=(alone,))]
    claims += [claim_of("cannot be told", trials=(missing,))]
    write_reproduction(found(table(claims=tuple(claims))), tmp_path / "mini")
    write_index(tmp_path)
    page = (tmp_path / PAGE).read_text()
    assert (
        "1 of those that hold, and 1 of those that do not, were decided by single numbers, without "
        'a test: "no test" below.'
    ) in page
    assert page.count("**holds**, no test |") == page.count("**does not hold**, no test |") == 1
    assert page.count("no test") == 3


def test_a_summary_of_nothing_is_all_zero() -> None:
    assert summary_table([]).splitlines()[-1] == "| **all** | 0 | 0 | 0 | 0 |"


def test_a_neighbour_that_cannot_be_read_is_left_out(tmp_path: Path) -> None:
    """It is told by the command that asks for it."""
    (tmp_path / "mini").mkdir()
    (tmp_path / "mini" / "reproduction.json").write_text("{")
    write_index(tmp_path)
    assert "mini" not in (tmp_path / "README.md").read_text()


def test_a_page_of_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# My project\n")
    write_index(tmp_path)
    assert (tmp_path / "README.md").read_text() == "# My project\n"
