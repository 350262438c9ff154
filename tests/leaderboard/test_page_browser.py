"""The page in a real browser: what a reader clicks, types and sees."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faithbench.leaderboard.board import Board
from faithbench.leaderboard.page import render_page
from tests.leaderboard import browser
from tests.leaderboard.boards import small_board
from tests.leaderboard.hostile import HOSTILE, hostile_board

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "ready")


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAITHBENCH_HOME", str(folder))
        boards = {
            "small": small_board(),
            "hostile": hostile_board(),
            "empty": empty(),
            "question": question(),
        }
        for name, board in boards.items():
            (folder / f"{name}.html").write_text(render_page(board), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in boards}


def empty() -> Board:
    nothing: dict[str, Any] = {"records": 0, "tables": (), "rankings": (), "pareto": ()}
    return small_board().model_copy(update=nothing)


def question() -> Board:
    """Return a board of one question, told in tokens that mark where words begin."""
    board = small_board()
    table = board.tables[0]
    shown = table.shown[0].model_copy(
        update={
            "tokens": ("\u0120Who", "le", "\u0120wheat", "."),
            "scores": {table.entrants[0].label: (1.0, 0.0, -0.5, 0.2)},
            "rationale": (),
            "said": "answer",
            "truth": "",
        }
    )
    asked = table.model_copy(update={"kind": "qa", "rationale": "none", "shown": (shown,)})
    return board.model_copy(update={"tables": (asked,)})


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    driver = browser.start(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


class Reader:
    """What a person does with the page."""

    def __init__(self, driver: Any, page: Path) -> None:
        self.driver, self.page = driver, page

    def open(self, section: str, table: str = "") -> None:
        self.driver.get("about:blank")
        self.driver.get(f"{self.page.as_uri()}#{section}/{table}")
        self.wait("document.documentElement.dataset.ready === 'yes'")

    def wait(self, condition: str) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, 30).until(lambda d: d.execute_script(f"return {condition}"))

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements("css selector", selector))

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        return [element.text for element in self.all(selector)]

    def choose(self, selector: str, text: str) -> None:
        from selenium.webdriver.support.ui import Select

        Select(self.one(selector)).select_by_visible_text(text)

    def column(self, number: int) -> list[float]:
        cells = self.texts(f"#results-table tbody td:nth-child({number + 1}) .mean")
        return [float(cell) for cell in cells]


@pytest.fixture
def small(chromium: Any, pages: dict[str, Path]) -> Iterator[Reader]:
    chromium.get_log("browser")
    browser.requests(chromium)
    browser.resize(chromium, 1360)
    yield Reader(chromium, pages["small"])
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    assert browser.requests(chromium) == []


def test_headings_sort_best_first_then_the_other_way(small: Reader) -> None:
    small.open("results", "agnews")
    assert small.column(1) == sorted(small.column(1), reverse=True)  # AOPC, up is better
    small.all("#results-table .sort")[2].click()  # LOdds, down is better
    assert small.column(2) == sorted(small.column(2))
    assert small.one("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    small.all("#results-table .sort")[2].click()
    assert small.column(2) == sorted(small.column(2), reverse=True)
    assert small.one("th[aria-sort]").get_attribute("aria-sort") == "descending"
    small.all("#results-table .sort")[0].click()
    names = small.texts("#results-table tbody bdi")
    assert names == sorted(names) and len(names) == 7


def test_sorting_by_keyboard_keeps_the_focus(small: Reader) -> None:
    from selenium.webdriver.common.keys import Keys

    small.open("results", "agnews")
    button = small.all("#results-table .sort")[3]
    button.send_keys(Keys.ENTER)
    focused = small.driver.switch_to.active_element
    assert focused.text.startswith("comprehensiveness")
    focused.send_keys(Keys.SPACE)
    assert small.column(3) == sorted(small.column(3))


def test_who_has_no_value_comes_last_either_way(small: Reader) -> None:
    small.open("results", "agnews")
    for _ in range(2):
        small.all("#results-table .sort")[7].click()  # attention has no delta_log_odds_neg
        assert small.texts("#results-table tbody bdi")[-1] == "attention"
        assert small.texts("#results-table tbody tr:last-child td")[6] == "\u2013"


def test_cells_show_mean_interval_letters_and_skipped(small: Reader) -> None:
    table = small_board().tables[1]
    column = next(c for c in table.columns if c.metric == "tau_loo")
    small.open("results", "agnews")
    small.all("#results-table .sort")[9].click()
    label, cell = next(iter(column.cells.items()))
    assert small.texts("#results-table tbody bdi")[0] == label
    found = small.one("#results-table tbody tr td:nth-child(10)")
    mean = f"{cell.mean:.3f}".removeprefix("0")
    assert found.text.split("\n") == [f"{mean} ±.035", f"{cell.letters} · 3 skipped"]
    assert "n = 197, 3 skipped; the best" in found.get_attribute("title")
    bold = [
        row.find_element("css selector", "bdi").text
        for row in small.all("#results-table tbody tr")
        if "top-tie" in row.find_element("css selector", "td:nth-child(10)").get_attribute("class")
    ]
    assert bold == [name for name, c in column.cells.items() if c.best or c.tie]


def test_filters_by_text_and_family(small: Reader) -> None:
    from selenium.webdriver.common.keys import Keys

    small.open("results", "agnews")
    small.one("#find").send_keys("ATT")
    names = small.texts("#results-table tbody bdi")
    assert sorted(names) == ["attcat", "attention", "attention-flow", "attention-x-gradient"]
    assert small.one("#count").text == "4 of 7 explainers"
    small.one("#find").send_keys(Keys.BACKSPACE * 3)
    small.choose("#family", "relevance")
    assert small.texts("#results-table tbody bdi") == ["lrp-mask"]


def test_metrics_are_chosen_by_family_and_by_name(small: Reader) -> None:
    small.open("results", "agnews")
    assert len(small.all("#results-table .under th")) == 11
    for place in (0, 1):
        small.all("#metric-families input")[place].click()
    heads = small.texts("#results-table .under th")
    assert heads[1:3] == ["iou_semantic ↑\n▾", "iou_lexical ↑"] and len(heads) == 6
    small.one("#section-results details summary").click()
    small.all("#metrics input")[0].click()
    assert small.texts("#results-table .under th")[1:] == [
        "iou_lexical ↑\n▾", "iou_labels ↑", "seed_agreement ↑", "max_sensitivity ↓"
    ]  # fmt: skip


def test_bundled_and_proxy_are_marked(small: Reader) -> None:
    small.open("results", "sst2")
    assert "not comparable with results on the real task" in small.one("#results-facts .note").text
    small.all("#metric-families input")[2].click()
    assert small.texts("#results-table .over .badge") == ["proxy"]
    small.choose("#table", "agnews · n = 200")
    assert small.all("#results-facts .note") == []
    assert small.all("#results-table .over .badge") == []


def test_p_values_of_a_table_and_metric(small: Reader) -> None:
    table = small_board().tables[1]
    column = next(c for c in table.columns if c.metric == "lodds")
    small.open("tests", "agnews")
    small.choose("#tested", "LOdds ↓")
    order = list(column.cells)
    assert small.texts("#matrix tbody th") == order
    for pair in column.pairs:
        i, j = order.index(pair.first), order.index(pair.second)
        cell = small.one(f"#matrix tbody tr:nth-child({i + 1}) td:nth-child({j + 2})")
        back = small.one(f"#matrix tbody tr:nth-child({j + 1}) td:nth-child({i + 2})")
        assert pair.adjusted is not None
        better = pair.adjusted < 0.05
        assert cell.get_attribute("class").split()[0] == ("won" if better else "same")
        assert back.get_attribute("class").split()[0] == ("lost" if better else "same")
        if pair.adjusted < 0.001:
            assert cell.text == back.text == "<.001"
        assert f"{pair.first} against {pair.second}: " in cell.get_attribute("title")


def test_viewer_shows_scores_rationale_and_differences(small: Reader) -> None:
    table = small_board().tables[1]
    small.open("examples", "agnews")
    small.one("#after").click()
    shown = table.shown[1]
    assert len(small.all(".cards .card")) == 7
    assert small.texts("#rationale .token") == list(shown.tokens)
    marked = [i for i, token in enumerate(small.all("#rationale .token"))
              if "marked" in token.get_attribute("class")]  # fmt: skip
    assert marked == [i for i, mark in enumerate(shown.rationale) if mark]
    cards = {
        card.find_element("css selector", "bdi").text: card for card in small.all(".cards .card")
    }
    assert set(cards) == set(shown.scores)
    _check_shades(cards["lrp-mask"], [100 * s for s in shown.scores["lrp-mask"]])
    small.choose("#reference", "difference to random")
    cards = {
        card.find_element("css selector", "bdi").text: card for card in small.all(".cards .card")
    }
    assert "reference" in cards["random"].get_attribute("class")
    pairs = zip(shown.scores["lrp-mask"], shown.scores["random"], strict=True)
    _check_shades(cards["lrp-mask"], [50 * (one - base) for one, base in pairs])
    assert "difference" in cards["lrp-mask"].find_element("css selector", ".words").get_attribute(
        "class"
    )
    assert not small.one("#after").is_enabled()


def test_viewer_of_a_question(chromium: Any, pages: dict[str, Path]) -> None:
    reader = Reader(chromium, pages["question"])
    reader.open("examples")
    assert reader.texts(".words") == ["Whole wheat.", "Whole wheat."]
    assert reader.one(".said").text.startswith("The model's answer is right (probability ")
    assert reader.all(".marked") == [] and len(reader.all(".cards .card")) == 1


def _check_shades(card: Any, hundredths: list[float]) -> None:
    for token, value in zip(card.find_elements("css selector", ".token"), hundredths, strict=True):
        words = token.get_attribute("class").split()
        if abs(value) < 4:
            assert not {"up", "down"} & set(words)
        elif abs(value) > 6:
            assert ("up" if value > 0 else "down") in words
            shade = int(next(word for word in words if word.startswith("s"))[1:])
            assert abs(shade - abs(value) / 10) < 0.61


@pytest.mark.parametrize("section", ["ranking", "curves", "cost"])
def test_charts_are_drawn_and_told(small: Reader, section: str) -> None:
    small.open(section, "agnews")
    small.wait("document.querySelector('.chart svg') !== null")
    chart = small.one(".chart")
    assert chart.get_attribute("role") == "img" and "7 explainers" in chart.get_attribute(
        "aria-label"
    )
    small.one(f"#section-{section} .chart + details summary").click()
    assert len(small.all(f"#section-{section} .chart + details tbody tr")) >= 1


def test_curve_table_has_the_numbers(small: Reader) -> None:
    small.open("curves", "agnews")
    small.one("#curves-body details summary").click()
    rows = [row.split() for row in small.texts("#curves-body tbody tr")]
    curves = {entrant.label: entrant.curve for entrant in small_board().tables[1].entrants}
    assert len(rows) == 7
    for label, *values in rows:
        assert [float(value) for value in values] == pytest.approx(curves[label], abs=6e-4)
    assert sum(box.is_selected() for box in small.all("#curve-choice input")) == 5


def test_cost_front_of_a_table(small: Reader) -> None:
    small.open("cost", "agnews")
    small.choose("#cost-by", "AOPC on agnews")
    table = small_board().tables[1]
    aopc = {label: cell.mean or 0.0 for label, cell in table.columns[0].cells.items()}
    cost = {entrant.label: entrant.forward_equivalents for entrant in table.entrants}
    front = {a for a in aopc if not any(aopc[b] >= aopc[a] and cost[b] <= cost[a]
                                        for b in aopc if b != a)}  # fmt: skip
    small.one("#cost-body details summary").click()
    rows = [row.split() for row in small.texts("#cost-body tbody tr")]
    assert {row[0] for row in rows if row[-1] == "yes"} == front


def test_ranking_shows_ranks_intervals_and_ties(small: Reader) -> None:
    ranking = small_board().rankings[1]
    small.open("ranking")
    small.choose("#ranked", "faithfulness")
    rows = small.texts("#ranking-body .beside > div:first-child tbody tr")
    label, rank = min(ranking.mean_ranks.items(), key=lambda item: item[1])
    low, high = ranking.ci95[label] or (0, 0)
    assert rows[0].startswith(label) and len(rows) == 7
    assert f"{rank:.2f} {low:.2f} to {high:.2f} a" in rows[0]
    assert "critical difference 6.20" in small.one("#ranking-body").text


def test_dark_and_light(small: Reader) -> None:
    small.open("curves", "agnews")
    paper = "getComputedStyle(document.body).backgroundColor"
    small.wait(f"{paper} === 'rgb(255, 255, 255)'")
    small.one("#theme").click()
    small.wait(f"{paper} === 'rgb(18, 22, 28)'")
    assert small.one("#theme").text == "Light"
    small.wait("document.querySelector('.chart svg') !== null")
    small.one("#theme").click()
    small.wait(f"{paper} === 'rgb(255, 255, 255)'")


@pytest.mark.parametrize(
    "section", ["ranking", "results", "curves", "cost", "tests", "examples", "guide"]
)
def test_a_phone_scrolls_down_only(small: Reader, section: str) -> None:
    browser.resize(small.driver, 375, 812)
    small.open(section, "agnews")
    if section in ("ranking", "curves", "cost"):
        small.wait("document.querySelector('.chart svg') !== null")
    assert small.driver.execute_script("return document.documentElement.scrollWidth") <= 375


def test_every_control_has_a_name(small: Reader) -> None:
    for section in ("ranking", "results", "curves", "cost", "tests", "examples"):
        small.open(section, "agnews")
        for control in small.all("select, input, button"):
            if control.is_displayed():
                assert control.accessible_name != "", control.get_attribute("outerHTML")
        headless = "[...document.querySelectorAll('table')].filter((t) => !t.querySelector('th'))"
        assert small.driver.execute_script(f"return {headless}.length") == 0


def test_hostile_text_is_shown_and_does_nothing(chromium: Any, pages: dict[str, Path]) -> None:
    reader = Reader(chromium, pages["hostile"])
    chromium.get_log("browser")
    browser.requests(chromium)
    for section in ("ranking", "results", "curves", "cost", "tests", "examples", "guide"):
        reader.open(section)
        if section in ("ranking", "curves", "cost"):
            reader.wait("document.querySelector('.chart svg') !== null")
        assert reader.all("img, iframe, object, svg[onload], main script") == []
        assert reader.driver.execute_script("return document.scripts.length") == 6
    reader.open("examples")
    assert reader.texts("#rationale .token")[:2] == list(HOSTILE[:2])
    reader.open("results")
    assert set(HOSTILE[:4]) <= set(reader.texts("#results-table tbody bdi"))
    # An alert would have made the driver refuse; a blocked script would be in the log.
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    assert browser.requests(chromium) == []


def test_a_board_without_records_says_so(chromium: Any, pages: dict[str, Path]) -> None:
    reader = Reader(chromium, pages["empty"])
    chromium.get_log("browser")
    reader.open("ranking")
    assert reader.one("#ranking-body").text == "There are no records yet."
    for link in reader.all("#sections a"):
        link.click()
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
