"""Addresses within the page: they open a table and show an explainer, and can be copied."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.support import browser
from tests.support.boards import full_board, real_board
from tests.support.hostile_board import HOSTILE, without_turning_marks
from tests.support.reader import Reader

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "ready")


def marked(reader: Reader) -> list[str]:
    return [one.get_attribute("data-explainer") for one in reader.all(".linked")]


def in_view(reader: Reader) -> bool:
    script = """
        const box = document.querySelector('.linked').getBoundingClientRect();
        return box.top >= 0 && box.bottom <= innerHeight"""
    return bool(reader.driver.execute_script(script))


@pytest.mark.parametrize("section", ["results", "examples"])
def test_an_address_opens_a_table_and_shows_an_explainer(full: Reader, section: str) -> None:
    label = full_board().tables[4].entrants[-2].label
    full.go(f"{section}/imdb/{quote(label, safe='')}")
    assert full.one("#table").get_property("selectedOptions")[0].text == "imdb · n = 50"
    assert marked(full) == [label] and in_view(full)
    assert full.driver.switch_to.active_element.get_attribute("data-explainer") == label


def test_an_address_of_the_ranking_needs_no_table(real: Reader) -> None:
    ranking = real_board().ranking
    assert ranking is not None
    last = ranking.rows[-1].label
    real.go(f"ranking//{last}")
    assert marked(real) == [last] and in_view(real)
    real.go("ranking//nobody")
    assert marked(real) == []
    assert real.driver.execute_script("return location.hash") == "#ranking"


def test_a_link_of_a_page_that_is_open_clears_its_filters(small: Reader) -> None:
    small.open("results", "agnews")
    small.one("#find").send_keys("attention")
    small.driver.execute_script("location.hash = '#results/semeval/random'")
    small.wait("document.querySelector('.linked') !== null")
    assert marked(small) == ["random"]
    assert small.one("#find").get_property("value") == ""


def test_signs_copy_the_address_of_a_table_and_of_an_explainer(small: Reader) -> None:
    small.open("results", "agnews")
    small.driver.execute_script(
        "Object.defineProperty(navigator, 'clipboard',"
        " { value: { writeText: async (text) => { window.got = text; } } })"
    )
    small.one("#table-link a").click()
    small.wait("window.got !== undefined")
    assert small.driver.execute_script("return window.got") == f"{small.address}#results/agnews"
    assert small.one("#told").text == "Link copied"
    sign = small.one("tr[data-explainer='lrp-mask'] .link-sign")
    assert sign.accessible_name == "Copy a link to lrp-mask"
    sign.click()
    address = f"{small.address}#results/agnews/lrp-mask"
    small.wait(f"window.got === {address!r}")
    assert marked(small) == ["lrp-mask"] and sign.get_property("href") == address
    small.driver.execute_script("navigator.clipboard.writeText = async () => { throw Error(); }")
    sign.click()
    small.wait("document.getElementById('told').textContent.startsWith('The link is in')")


def test_hostile_names_in_addresses_are_names(chromium: Any, pages: dict[str, Any]) -> None:
    reader = Reader(chromium, pages["hostile"])
    chromium.get_log("browser")
    for label in without_turning_marks(HOSTILE[:7]):
        reader.go(f"results//{quote(label, safe='')}")
        assert marked(reader) == [label]
    for fragment in ("results/%", "results/%E0%A4%A/%", "__proto__/__proto__/__proto__", "//////"):
        reader.go(fragment)
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
