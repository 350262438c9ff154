"""docs/protocol.md says of every metric what the code says, and the numbers that the code uses."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from faithbench.data import windows
from faithbench.data.kinds import question_answering
from faithbench.data.words import word_spans
from faithbench.leaderboard import rankings, standings
from faithbench.metrics import faithfulness, neighbours
from faithbench.metrics.registry import METRICS
from faithbench.records.schema import PROTOCOL
from faithbench.run import job
from faithbench.run.measures import aopc_bounds, precision
from faithbench.stats import pairwise, power, signed_rank, summaries
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())

# In an interpreter of its own, where no test has registered a metric.
LIST = """
import json
import faithbench.metrics
from faithbench.metrics.registry import METRICS
print(json.dumps({
    m.name: [m.family, m.higher_is_better, m.version, m.opt_in, str(m.low), str(m.high)]
    for m in METRICS.values()
}))
"""


@pytest.fixture(scope="module")
def registered() -> dict[str, list[object]]:
    done = subprocess.run([sys.executable, "-c", LIST], capture_output=True, text=True, check=True)
    metrics: dict[str, list[object]] = json.loads(done.stdout)
    return metrics


def described() -> dict[str, list[object]]:
    """Read the rows of the page's tables of metrics; the heading above says family and request."""
    rows: dict[str, list[object]] = {}
    heading = ""
    for line in PAGE.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ").lower()
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 5 or not re.fullmatch(r"`[\w:=-]+`", cells[0]):
            continue
        name, better, span, version, definition = cells
        assert definition, f"{name} has no definition"
        assert name not in rows, f"{name} stands twice"
        family, _, request = heading.partition(", ")
        low, high = ("-inf", "inf") if span == "any" else span.split("..")
        direction = {"up": True, "down": False, "-": None}[better]
        rows[name.strip("`")] = [
            family, direction, int(version), request.startswith("on request"), low, high
        ]  # fmt: skip
    return rows


def test_every_metric_is_described(registered: dict[str, list[object]]) -> None:
    missing = sorted(registered.keys() - described().keys())
    assert not missing, f"add to docs/protocol.md: {', '.join(missing)}"


def test_no_metric_is_described_that_is_gone(registered: dict[str, list[object]]) -> None:
    stale = sorted(described().keys() - registered.keys())
    assert not stale, f"take out of docs/protocol.md: {', '.join(stale)}"


def test_family_direction_version_and_request_are_those_of_the_code(
    registered: dict[str, list[object]],
) -> None:
    facts = {name: row[:4] for name, row in described().items()}
    assert facts == {name: row[:4] for name, row in registered.items()}


def test_ranges_are_those_of_the_code(registered: dict[str, list[object]]) -> None:
    for name, row in described().items():
        shown = [float(str(end)) for end in row[4:]]
        coded = [float(str(end)) for end in registered[name][4:]]
        assert all(
            a == b or math.isclose(a, b, abs_tol=0.05) for a, b in zip(shown, coded, strict=True)
        ), f"{name}: {shown} on the page, {coded} in the code"


@pytest.mark.parametrize(
    ("sentence", "number"),
    [
        ("describes version {},", lambda: PROTOCOL),
        ("at most {} tokens", lambda: question_answering.LONGEST),
        ("windows that share {} tokens", lambda: windows.OVERLAP),
        ("on the first {} examples", lambda: precision.SAMPLE),
        ("over k = {}", lambda: ", ".join(map(str, faithfulness.ERASER))),
        ("beam searches of width {}", lambda: aopc_bounds.WIDTH),
        ("more than {} erasable tokens", lambda: aopc_bounds.MOST_UNITS),
        ("{} spans of equal length", lambda: aopc_bounds.SPANS),
        ("among the {} best tokens", lambda: faithfulness.BEST),
        ("its {} nearest examples", lambda: neighbours.COUNT),
        ("on at most {} examples, spread", lambda: job.PROBED_EXAMPLES),
        ("on at most {} examples, chosen", lambda: job.TIMED_EXAMPLES),
        ("interval ({} resamples, fixed seed)", lambda: summaries.RESAMPLES),
        ("fewer than {} pairs", lambda: signed_rank.FEWEST),
        ("adjusted p is below {}", lambda: str(pairwise.ALPHA).lstrip("0")),
        ("the one erased by `{}`", lambda: rankings.USUAL_OPERATOR),
        ("not better than `random` by {}, after Holm", lambda: METRICS[standings.GATE].title),
        ("z(.{:.0f})", lambda: 10 * power.POWER),
    ],
)
def test_the_numbers_of_the_page_are_those_of_the_code(
    sentence: str, number: Callable[[], object]
) -> None:
    assert sentence.format(number()) in TEXT


def test_the_word_is_that_of_the_code() -> None:
    (pattern,) = re.findall(r"`(\\w\+\S+)`", PAGE)
    for text in ("don't stop", "a well-made 's film...", "it\u2019s 3.5% [SEP] _x_"):
        assert word_spans(text) == tuple(match.span() for match in re.finditer(pattern, text))


def test_the_deciles_are_those_of_aopc() -> None:
    assert "over k = 10, 20, ..., 90 " in TEXT
    assert tuple(range(10, 100, 10)) == faithfulness.DECILES
    assert "for k = 5, 10, ..., 100;" in TEXT
    assert tuple(range(5, 105, 5)) == faithfulness.TWENTIETHS


def test_the_log_odds_are_clipped_where_the_page_says() -> None:
    assert "clipped to [1e-6, 1 - 1e-6]" in TEXT
    assert faithfulness.log_odds(1.0) == pytest.approx(math.log((1 - 1e-6) / 1e-6))
    assert faithfulness.log_odds(0.0) == pytest.approx(math.log(1e-6 / (1 - 1e-6)))
