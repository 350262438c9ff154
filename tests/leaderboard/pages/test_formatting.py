"""Numbers and names as pages write them."""

from __future__ import annotations

import pytest

from faithbench.leaderboard.board import Score
from faithbench.leaderboard.pages.formatting import (
    about,
    bold,
    cost,
    counted,
    heading,
    interval_text,
    markdown,
    mean_text,
    number,
    pairs_tested,
)
from tests.support.boards import small_board


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.5333, ".533"), (-1.6149, "-1.615"), (-0.25, "-.250"), (0, ".000"), (-0.0001, ".000"),
     (12.0, "12.000"), (None, "-")],
)  # fmt: skip
def test_numbers(value: float | None, text: str) -> None:
    assert number(value) == text


def test_costs() -> None:
    assert cost("seconds", 0.01234) == "0.012" and cost("bytes", 65_400_000) == "65 MB"
    assert cost("rows", 46.8333) == "46.83" and cost("rows", 123456.7) == "123457"
    assert cost("seconds", None) == "-"


def test_markdown_is_escaped() -> None:
    assert markdown("a|b") == "a\\|b" and markdown("`x`") == "\\`x\\`"
    assert markdown("<b>&") == "&lt;b&gt;&amp;" and markdown("[a](b)") == "\\[a\\]\\(b\\)"
    assert markdown("x_y*z") == "x\\_y\\*z" and markdown("$1$") == "&#36;1&#36;"
    assert markdown("http://a www.b c@d") == "http&#58;//a www&#46;b c&#64;d"
    assert markdown("lime:samples=50") == "lime:samples=50"


def test_a_heading_has_direction_and_proxy() -> None:
    aopc, lodds, *_ = small_board().tables[1].columns
    auprc = next(c for c in small_board().tables[0].columns if c.metric == "auprc")
    assert (heading(aopc), heading(lodds), heading(auprc)) == ("AOPC ↑", "LOdds ↓", "auprc ↑ proxy")
    assert heading(aopc.model_copy(update={"higher_is_better": None})) == "AOPC"


def test_scores_are_written_as_their_family_asks() -> None:
    columns = {column.metric: column for column in small_board().tables[1].columns}
    score = Score(mean=0.5, ci95=(0.25, 1.0), n=9, skipped=0, letters="", best=False, tie=True)
    assert mean_text(columns["aopc"], score) == ".500" and bold("x", score) == "**x**"
    assert interval_text(columns["aopc"], score) == "[.250, 1.000]"
    assert mean_text(columns["seconds"], score) == "0.5"
    assert interval_text(columns["seconds"], score) == "[0.25, 1]"
    without = score.model_copy(update={"mean": None, "ci95": None})
    assert mean_text(columns["aopc"], without) == "-" and bold("-", without) == "-"
    assert interval_text(columns["aopc"], without) == ""
    assert pairs_tested(columns["aopc"]) == 21 and pairs_tested(columns["seconds"]) == 0


def test_the_conditions_of_a_table_are_a_sentence() -> None:
    table = small_board().tables[0]
    assert about(table) == (
        "200 examples of sst2 version 1 (test split, bundled data dddddd); "
        "model bundled:sst2 (wwwwww, float32, accuracy .892); erased by mask ([MASK]); "
        "long texts: truncate; protocol 1; proxy rationales; "
        "without the rationales the model finds 31.0% fewer labels"
    )
    changes = {"kind": "qa", "truncated": 3, "rationale": "none", "tpr_drop": -0.1}
    changed = about(table.model_copy(update=changes))
    assert "exact match .892" in changed and "long texts: truncate (3 cut)" in changed
    assert changed.endswith("protocol 1; without the rationales the model finds 10.0% more labels")


def test_things_are_counted() -> None:
    assert [counted(n, "table") for n in (0, 1, 2)] == ["0 tables", "1 table", "2 tables"]
