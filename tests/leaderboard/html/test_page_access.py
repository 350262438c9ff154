"""The page with a keyboard alone, as a screen reader is told of it, and its contrast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support import browser
from tests.support.contrast import prefer, weak_texts
from tests.support.reader import Reader

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "ready")

SECTIONS = ("ranking", "results", "curves", "cost", "tests", "examples", "guide")


def press(reader: Reader, *keys: str) -> None:
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(reader.driver).send_keys(*keys).perform()


def focused(reader: Reader) -> Any:
    return reader.driver.switch_to.active_element


def test_sections_tables_and_sorting_need_no_mouse(small: Reader) -> None:
    from selenium.webdriver.common.keys import Keys

    small.open("ranking")
    press(small, Keys.TAB)
    assert focused(small).text == "Skip to the content"
    press(small, Keys.ENTER)
    assert focused(small).get_attribute("id") == "main"
    small.open("ranking")
    press(small, *[Keys.TAB] * 4)
    assert focused(small).text == "Results"
    press(small, Keys.ENTER)
    assert small.one("#section-results").is_displayed()
    assert focused(small).get_attribute("aria-current") == "page"
    press(small, *[Keys.TAB] * 6)
    assert focused(small).get_attribute("id") == "table"
    before = focused(small).get_property("value")
    press(small, Keys.ARROW_DOWN)
    assert focused(small).get_property("value") == str(int(before) + 1)
    assert small.one("#results-facts dd").text == "The semeval task"
    head = small.all("#results-table .under th")[5].find_element("css selector", "button")
    small.driver.execute_script("arguments[0].focus()", head)
    metric = head.text
    press(small, Keys.ENTER)
    (sorted_by,) = small.all("#results-table th[aria-sort]")
    assert sorted_by.get_attribute("aria-sort") == "descending"
    assert sorted_by.text.startswith(metric) and focused(small).text.startswith(metric)
    press(small, Keys.SPACE)
    assert small.one("#results-table th[aria-sort]").get_attribute("aria-sort") == "ascending"
    values = small.column(1)
    assert values == sorted(values) and len(set(values)) > 1


def test_what_has_the_focus_is_outlined(small: Reader) -> None:
    from selenium.webdriver.common.keys import Keys

    small.open("results", "agnews")
    outline = (
        "return [getComputedStyle(arguments[0]).outlineStyle, arguments[0].matches('.chip *')]"
    )
    seen = set()
    for _ in range(40):
        press(small, Keys.TAB)
        one = focused(small)
        style, in_chip = small.driver.execute_script(outline, one)
        if in_chip:  # the outline is around the whole of it
            parent = one.find_element("xpath", "..")
            style, _ = small.driver.execute_script(outline, parent)
        assert style not in ("none", ""), one.get_attribute("outerHTML")
        seen.add(one.tag_name)
    assert {"a", "button", "select", "input", "div"} <= seen


@pytest.mark.parametrize("section", SECTIONS)
def test_a_screen_reader_is_told_names_and_roles(full: Reader, section: str) -> None:
    full.open(section, "agnews")
    (shown,) = [one for one in full.all("main section") if one.is_displayed()]
    assert shown.aria_role == "region" and shown.accessible_name == shown.text.split("\n")[0]
    for control in full.all("main select, main input, main button, main a, .scroll"):
        if control.is_displayed():
            assert control.accessible_name != "", control.get_attribute("outerHTML")
    for table in shown.find_elements("css selector", "table"):
        if table.is_displayed():
            assert table.accessible_name == table.find_element(
                "css selector", "caption"
            ).get_property("textContent")
        assert not table.find_elements("css selector", "th:not([scope])")
    unique = "const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);"
    assert full.driver.execute_script(f"{unique} return ids.length === new Set(ids).size")
    levels = full.driver.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3')]"
        ".filter((one) => one.checkVisibility()).map((one) => Number(one.tagName[1]))"
    )
    assert levels[:2] == [1, 2] and set(levels[2:]) <= {2, 3}


def test_what_changes_is_announced(small: Reader) -> None:
    small.open("results", "agnews")
    for name in ("count", "told", "waiting"):
        assert small.one(f"#{name}").get_attribute("role") == "status"
    small.one("#find").send_keys("lrp")
    assert small.one("#count").text.endswith(" of 6 explainers")
    assert small.one("#main").get_attribute("aria-busy") == "false"


@pytest.fixture
def preferring(full: Reader) -> Iterator[Reader]:
    full.open("ranking")
    full.driver.execute_script("localStorage.clear()")  # a choice made there has the last word
    yield full
    prefer(full.driver, "light")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_contrast(preferring: Reader, scheme: str) -> None:
    reader = preferring
    other = {"light": "Dark", "dark": "Light"}[scheme]
    weak_by_section = {}
    for section in SECTIONS:
        reader.open(section, "agnews" if section != "results" else "sst2")
        prefer(reader.driver, scheme)
        reader.wait(f"document.getElementById('theme').textContent === '{other}'")  # drawn anew
        if section == "results":
            reader.toggle_families(1, 2, 3)
        if section == "examples":
            reader.choose("#reference", "difference to random")
        paper = reader.driver.execute_script(
            "return getComputedStyle(document.body).backgroundColor"
        )
        assert paper == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[scheme]
        count, weak = weak_texts(reader.driver)
        assert count > 15
        weak_by_section[section] = weak
    assert weak_by_section == {section: [] for section in SECTIONS}
