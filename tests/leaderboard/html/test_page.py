"""The page's data: every number of the board, in the order of the table's explainers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from faithbench.leaderboard.board import Pair, Score
from faithbench.leaderboard.findings import findings
from faithbench.leaderboard.html import page
from faithbench.leaderboard.html.page import board_data, table_data
from faithbench.metrics.kinds import ASPECTS
from faithbench.metrics.registry import METRICS
from tests.support.boards import empty_board, real_board, small_board
from tests.support.hostile_board import HOSTILE, hostile_board, without_turning_marks


def test_scores_are_in_the_order_of_the_explainers() -> None:
    table = small_board().tables[1]
    data = table_data(table)
    labels = [row["label"] for row in data["entrants"]]
    assert labels == [row.label for row in table.entrants]
    column = next(c for c in data["columns"] if c["metric"] == "tau_loo")
    source = next(c for c in table.columns if c.metric == "tau_loo")
    for label, short in zip(labels, column["cells"], strict=True):
        score = source.cells[label]
        assert score.mean is not None and abs(short[0] - score.mean) < 1e-5
        assert short[3:6] == [197, 3, score.letters]
        assert short[6] == (2 if score.best else 1 if score.tie else 0)
        assert score.skill is not None and abs(short[7] - score.skill) < 1e-5
    assert column["better"] == 1


def test_directions_and_versions_of_a_metric_are_kept() -> None:
    table = small_board().tables[0]
    newer = table.columns[1].model_copy(update={"metric": "lodds@2", "version": 2})
    table = table.model_copy(update={"columns": (newer, *table.columns)})
    data = table_data(table)
    by_name = {column["metric"]: column for column in data["columns"]}
    assert by_name["lodds@2"]["better"] == -1
    assert by_name["fi_entropy"]["better"] == 0
    assert by_name["auprc"]["proxy"] is True and by_name["aopc"]["proxy"] is False
    board = small_board()
    told = board_data(board.model_copy(update={"tables": (table, *board.tables[1:])}))["metrics"]
    assert len({metric["metric"] for metric in told}) == len(told) == len(table.columns)
    assert told[0] == {
        "metric": "lodds@2", "title": "LOdds", "family": "faithfulness", "better": -1,
        "version": 2, "summary": METRICS["lodds"].summary,
    }  # fmt: skip


def test_an_explainer_may_lack_a_score_or_its_value() -> None:
    table = small_board().tables[0]
    column = table.columns[0]
    empty = Score(
        mean=None, ci95=None, n=0, skipped=9, letters="", best=False, tie=False, skill=None
    )
    (first, second, *rest) = (row.label for row in table.entrants)
    scores = {second: empty, **{label: column.cells[label] for label in rest}}
    changed = column.model_copy(update={"cells": scores})
    short = table_data(table.model_copy(update={"columns": (changed,)}))["columns"][0]["cells"]
    assert short[0] is None and short[1] == [None, None, None, 0, 9, "", 0, None]
    assert first not in scores


def test_pairs_are_found_whichever_explainer_comes_first() -> None:
    table = small_board().tables[0]
    a, b, c = (row.label for row in table.entrants[:3])
    table = table.model_copy(update={"entrants": table.entrants[:3]})
    pairs = (
        Pair(first=b, second=a, test="W", n=9, p=0.0123456, adjusted=0.03, effect=0.5, reason=""),
        Pair(first=a, second=c, test="W", n=9, p=1e-9, adjusted=3e-9, effect=-0.25, reason=""),
        Pair(first=c, second=b, test="", n=5, p=None, adjusted=None, effect=0.0, reason="few"),
    )
    column = table.columns[0].model_copy(update={"pairs": pairs})
    tests = table_data(table.model_copy(update={"columns": (column,)}))["columns"][0]["tests"]
    assert tests == {
        "p": [0.012, 1e-9, None],
        "adjusted": [0.03, 3e-9, None],
        "effect": [-0.5, -0.25, 0.0],
        "test": "W",
        "n": 9,
        "reason": "",
        "other": {"2": ["", 5, "few"]},
    }
    speed = next(c for c in table.columns if c.metric == "seconds")
    assert table_data(table.model_copy(update={"columns": (speed,)}))["columns"][0]["tests"] is None


def test_scores_are_hundredths_and_rationales_places() -> None:
    table = small_board().tables[2]
    shown = table.shown[1].model_copy(
        update={
            "tokens": ("a", "b", "c"),
            "rationale": (True, False, True),
            "scores": {table.entrants[1].label: (0.126, -1.0, 0.0)},
        }
    )
    data = table_data(table.model_copy(update={"shown": (shown,)}))["shown"][0]
    assert data["scores"] == [None, [13, -100, 0], *[None] * 5]
    assert data["rationale"] == [0, 2] and data["right"] is True


def test_rows_of_a_table_have_their_standing_place_and_ranks() -> None:
    table = real_board().tables[0]
    data = table_data(table)
    assert [row["standing"] for row in data["entrants"]] == ["ranked"] * 5 + ["below", "control"]
    for row, short in zip(table.entrants, data["entrants"], strict=True):
        assert short["place"] == row.place
        assert short["aspects"] == [row.aspects.get(aspect) for aspect in ASPECTS]
    ranked = {c["aspect"]: c["metric"] for c in data["columns"] if c["aspect"] is not None}
    assert [ASPECTS[aspect] for aspect in sorted(ranked)] == list(ASPECTS)
    assert ranked[0] == "aopc" and ranked[2] == "delta_log_odds_neg"
    by_name = {column["metric"]: column for column in data["columns"]}
    assert by_name["aopc"]["power"] == [0.07, 0.6] and by_name["seconds"]["power"] is None


def test_the_ranking_tells_tables_by_their_places() -> None:
    board = real_board()
    data = board_data(board)
    ranking, source = data["ranking"], board.ranking
    assert source is not None
    assert [board.tables[i].id for i in ranking["tables"]] == ["agnews", "semeval", "sst2"]
    assert [row["label"] for row in ranking["rows"]] == [row.label for row in source.rows]
    assert [row["rank"] for row in ranking["rows"]] == sorted(
        row["rank"] for row in ranking["rows"]
    )
    assert len(ranking["rows"]) == 5 and len(ranking["below"]) == 1
    assert [row["label"] for row in ranking["controls"]] == ["random"]
    last, told = source.rows[-1], ranking["rows"][-1]
    assert [board.tables[i].id for i in told["worseOn"]] == list(last.worse_on)
    assert told["tables"] == 3 and told["skill"] == pytest.approx(last.skill, abs=1e-4)
    assert data["findings"] == findings(board) and len(data["findings"]) >= 5
    assert [line[3] for line in data["pareto"]] == [int(p.front) for p in board.pareto]
    assert json.loads(json.dumps(data, allow_nan=False))["records"] == 21


def test_operators_are_pairs_of_places() -> None:
    board = real_board()
    (pair,) = board_data(board)["operators"]
    assert [board.tables[i].id for i in pair["tables"]] == ["sst2", "sst2-delete"]
    assert pair["operators"] == ("mask", "delete") and pair["shared"] == 5
    assert pair["kendall"] == 1.0


def test_the_page_opens_on_sst2_or_the_first_real_table() -> None:
    board = real_board()
    opens = board_data(board)["opens"]
    assert board.tables[opens].id == "sst2"  # the last, and not the one erased by deletion
    small = small_board()  # its sst2 is bundled
    assert small.tables[board_data(small)["opens"]].id == "agnews"
    bundled = small.model_copy(update={"tables": small.tables[:1], "ranking": None})
    assert board_data(bundled)["opens"] == 0
    assert board_data(empty_board())["opens"] == 0 and board_data(empty_board())["ranking"] is None


LIBRARY = "window.vegaEmbed = null;"


@pytest.fixture(autouse=True)
def no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave the chart library out, which takes seconds."""
    monkeypatch.setattr(page, "chart_library", lambda: LIBRARY)


def blocks(text: str) -> dict[str, object]:
    block = r'<script type="application/json" id="([^"]+)">(.*?)</script>'
    return {name: json.loads(value) for name, value in re.findall(block, text, re.S)}


def test_the_same_board_gives_the_same_page() -> None:
    assert page.render_page(small_board()) == page.render_page(small_board())


def test_page_holds_its_data_in_a_block_per_table() -> None:
    data = blocks(page.render_page(small_board()))
    assert list(data) == ["board", "table-0", "table-1", "table-2"]
    assert [table["id"] for table in data["board"]["tables"]] == ["sst2", "agnews", "semeval"]
    assert data["table-2"]["facts"]["id"] == "semeval"


def test_a_page_with_tables_beside_it_names_their_digests() -> None:
    board = small_board()
    beside = {f"data/{table.id}.json": page.table_json(table) for table in board.tables}
    text = page.render_page(board, beside=beside)
    data = blocks(text)
    assert list(data) == ["board", "files"]
    digest = base64.b64encode(hashlib.sha256(beside["data/agnews.json"].encode()).digest())
    assert data["files"][1] == ["data/agnews.json", f"sha256-{digest.decode()}"]  # type: ignore[index]
    assert blocks(page.render_page(board))["table-1"] == json.loads(beside["data/agnews.json"])
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'; ")
    assert re.findall("[a-z]+-src [^;]*self[^;]*", policy) == ["connect-src 'self'"]
    assert "unsafe" not in policy and "http" not in policy


def test_page_is_made_without_torch() -> None:
    code = (
        "import sys; from faithbench.leaderboard.html import page; "
        "from tests.support.boards import small_board; page.chart_library = str; "
        "page.render_page(small_board()); print('torch' in sys.modules)"
    )
    checkout = Path(__file__).parents[3]
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=checkout, capture_output=True, text=True, check=True
    )
    assert result.stdout == "False\n"


def test_page_asks_nothing_of_the_network() -> None:
    text = page.render_page(small_board())
    assert re.findall(r"(?:src|href)=\"(?!#)|url\(|@import|https?://", text) == []
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy and "connect" not in policy


def test_policy_names_exactly_what_is_inside() -> None:
    text = page.render_page(small_board())
    scripts = re.findall(r'<script type="module">(.*?)</script>', text, re.S)
    styles = re.findall(r"<style>(.*?)</style>", text, re.S)
    assert len(scripts) == 2 and len(styles) == 1 and scripts[1] == LIBRARY
    digests = [
        base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        for part in (*styles, *scripts)
    ]
    assert re.findall(r"sha256-([^']+)'", text.split("</head>")[0]) == digests


def test_text_of_the_data_never_becomes_markup() -> None:
    text = page.render_page(hostile_board())
    assert "<img" not in text and "<svg" not in text and "alert(1)</script>" not in text
    assert text.count("</script>") == 6  # four blocks of data, two scripts
    data = blocks(text)
    labels = [label for label, _ in data["board"]["explainers"]]
    assert sorted(labels) == sorted(without_turning_marks(HOSTILE[:7]))
    assert tuple(data["table-0"]["shown"][0]["tokens"][:8]) == without_turning_marks(HOSTILE)
