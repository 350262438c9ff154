"""The page's viewer and charts in a real browser, on a phone, in the dark, with hostile text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from tests.support import browser
from tests.support.boards import full_board, question_board, small_board
from tests.support.hostile_board import HOSTILE
from tests.support.reader import Reader

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "ready")


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
    _check_shades(cards["lrp-mask"], [50 * (score - base) for score, base in pairs])
    assert "difference" in cards["lrp-mask"].find_element("css selector", ".words").get_attribute(
        "class"
    )
    assert not small.one("#after").is_enabled()


def test_viewer_of_a_question(chromium: Any, pages: dict[str, Path]) -> None:
    reader = Reader(chromium, pages["question"])
    reader.open("examples")
    assert reader.texts(".words") == ["Whole wheat.", "Whole wheat."]
    shown = question_board().tables[0].shown[0]
    assert reader.one(".said").text == (
        f"The model's answer is right (probability {shown.probability:.3f}): wheat. "
        "Its own words are never erased."
    ).replace("0.", ".", 1)
    assert reader.all(".marked") == [] and len(reader.all(".cards .card")) == 1


def test_viewer_tells_the_strongest_in_words(small: Reader) -> None:
    """Not every reader sees colours and tooltips."""
    shown = small_board().tables[1].shown[0]
    scores, base = shown.scores["lrp-mask"], shown.scores["random"]
    small.open("examples", "agnews")
    assert _strongest(small, "lrp-mask") == _told(shown.tokens, scores)
    small.choose("#reference", "difference to random")
    between = [score - other for score, other in zip(scores, base, strict=True)]
    assert _strongest(small, "lrp-mask") == _told(shown.tokens, between)
    assert _strongest(small, "random") == _told(shown.tokens, base)


def _strongest(reader: Reader, label: str) -> str:
    (card,) = (
        card
        for card in reader.all(".cards .card")
        if card.find_element("css selector", "bdi").text == label
    )
    text: str = card.find_element("css selector", ".strongest").text
    return text


def _told(tokens: Sequence[str], values: Sequence[float]) -> str:
    order = sorted(range(len(values)), key=lambda index: -abs(values[index]))[:3]
    numbers = [f"{values[index]:+.2f}".replace("0.", ".", 1) for index in order]
    pairs = zip((tokens[index] for index in order), numbers, strict=True)
    return "strongest: " + " · ".join(f"{word} {number}" for word, number in pairs)


def _check_shades(card: Any, hundredths: list[float]) -> None:
    for token, value in zip(card.find_elements("css selector", ".token"), hundredths, strict=True):
        words = token.get_attribute("class").split()
        if abs(value) < 4:
            assert not {"up", "down"} & set(words)
        elif abs(value) > 6:
            assert ("up" if value > 0 else "down") in words
            shade = int(next(word for word in words if word.startswith("s"))[1:])
            assert abs(shade - abs(value) / 10) < 0.61


@pytest.mark.parametrize(("section", "count"), [("curves", 7), ("cost", 6)])
def test_charts_are_drawn_and_told(small: Reader, section: str, count: int) -> None:
    small.open(section, "agnews")
    small.wait("document.querySelector('.chart svg') !== null")
    chart = small.one(".chart")
    assert chart.get_attribute("role") == "img" and (
        f" {count} explainers" in chart.get_attribute("aria-label")
    )
    small.one(f"#section-{section} .chart + details summary").click()
    assert len(small.all(f"#section-{section} .chart + details tbody tr")) >= 1


def test_curve_table_has_the_numbers(small: Reader) -> None:
    small.open("curves", "agnews")
    small.one("#curves-body details summary").click()
    rows = [row.split() for row in small.texts("#curves-body tbody tr")]
    curves = {row.label: row.curve for row in small_board().tables[1].entrants}
    assert len(rows) == 7
    for label, *values in rows:
        assert [float(value) for value in values] == pytest.approx(curves[label], abs=6e-4)
    assert sum(box.is_selected() for box in small.all("#curve-choice input")) == 5


def test_cost_front_of_a_table(small: Reader) -> None:
    small.open("cost", "agnews")
    small.choose("#cost-by", "AOPC on agnews")
    table = small_board().tables[1]
    aopc = {label: score.mean or 0.0 for label, score in table.columns[0].cells.items()}
    cost = {row.label: row.forward_equivalents for row in table.entrants}
    del aopc["random"]  # a control
    front = {a for a in aopc if not any(aopc[b] >= aopc[a] and cost[b] <= cost[a]
                                        for b in aopc if b != a)}  # fmt: skip
    small.one("#cost-body details summary").click()
    rows = [row.split() for row in small.texts("#cost-body tbody tr")]
    assert {row[0] for row in rows if row[-1] == "yes"} == front


@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("by", ["the rank over all tables", "AOPC on agnews"])
def test_every_label_of_the_cost_chart_is_visible(full: Reader, by: str, width: int) -> None:
    browser.resize(full.driver, width)
    full.open("cost", "agnews")
    full.choose("#cost-by", by)
    labels = {row.label for row in full_board().tables[1].entrants}
    script = """
        return [...document.querySelectorAll('.chart .mark-text.role-mark text')].map((text) => {
          const box = text.getBoundingClientRect();
          return [text.textContent, box.left, box.right, box.top, box.bottom];
        })"""
    full.wait(f"document.querySelectorAll('.mark-text.role-mark text').length === {len(labels)}")
    boxes = full.driver.execute_script(script)
    assert {name for name, *_ in boxes} == labels
    assert all(left >= 0 and right <= width for _, left, right, _, _ in boxes)
    for (one, *a), (two, *b) in combinations(boxes, 2):
        # Fonts have room above and below their letters.
        apart = a[1] <= b[0] or b[1] <= a[0] or a[3] <= b[2] + 3 or b[3] <= a[2] + 3
        assert apart, f"{one} hides {two}"


def test_dark_and_light(small: Reader) -> None:
    small.open("curves", "agnews")
    paper = "getComputedStyle(document.body).backgroundColor"
    small.wait(f"{paper} === 'rgb(255, 255, 255)'")
    small.one("#theme").click()
    small.wait(f"{paper} === 'rgb(18, 22, 28)'")
    assert small.one("#theme").text == "Light"
    small.wait("document.querySelector('.chart svg') !== null")
    small.open("ranking")  # another visit keeps the choice
    small.wait(f"{paper} === 'rgb(18, 22, 28)'")
    small.one("#theme").click()
    small.wait(f"{paper} === 'rgb(255, 255, 255)'")


@pytest.mark.parametrize(
    "section", ["ranking", "results", "curves", "cost", "tests", "examples", "guide"]
)
@pytest.mark.parametrize("width", [1400, 390])
def test_the_page_scrolls_down_only(full: Reader, section: str, width: int) -> None:
    browser.resize(full.driver, width, 844)
    full.open(section, "agnews")
    if section in ("curves", "cost"):
        full.wait("document.querySelector('.chart svg') !== null")
    if section == "results":
        full.toggle_families(1, 2, 3)  # all metrics there are
    full.driver.execute_script(
        "for (const one of document.querySelectorAll('details')) one.open = true"
    )
    assert full.driver.execute_script("return document.documentElement.scrollWidth") <= width
    # What is wider scrolls in a box of its own.
    wider = """
        return [...document.querySelectorAll('main *')].filter((one) =>
          one.getBoundingClientRect().right > innerWidth + 1 && !one.closest('.scroll, nav')).length
        """
    assert full.driver.execute_script(wider) == 0


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
        if section in ("curves", "cost"):
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
