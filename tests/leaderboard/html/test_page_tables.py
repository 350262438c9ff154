"""The page's tables in a real browser: sorted, filtered, chosen, marked."""

from __future__ import annotations

import pytest

from tests.support import browser
from tests.support.boards import small_board
from tests.support.reader import Reader

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "ready")


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


def test_explainers_without_a_value_come_last_either_way(small: Reader) -> None:
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
    label, score = next(iter(column.cells.items()))
    assert small.texts("#results-table tbody bdi")[0] == label
    cell = small.one("#results-table tbody tr td:nth-child(10)")
    mean = f"{score.mean:.3f}".removeprefix("0")
    assert cell.text.split("\n") == [f"{mean} ±.035", f"{score.letters} · 3 skipped"]
    assert "n = 197, 3 skipped; the best" in cell.get_attribute("title")
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
    for index in (0, 1):
        small.all("#metric-families input")[index].click()
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
