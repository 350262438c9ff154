"""The page's tables in a real browser: sorted, filtered, chosen, marked."""

from __future__ import annotations

import pytest

from faithbench.leaderboard.findings import findings
from tests.support import browser
from tests.support.boards import real_board, small_board
from tests.support.reader import Reader

pytestmark = pytest.mark.skipif(bool(browser.missing()), reason=browser.missing() or "ready")


def test_the_ranking_shows_ranks_intervals_and_who_is_tied(real: Reader) -> None:
    ranking = real_board().ranking
    assert ranking is not None
    real.open("ranking")
    rows = real.all("#ranking-table tr.ranked")
    assert real.explainers("#ranking-table") == [row.label for row in ranking.rows]
    for place, (shown, row) in enumerate(zip(rows, ranking.rows, strict=True), start=1):
        cells = [cell.text for cell in shown.find_elements("css selector", "th, td")]
        low, high = row.ci95 or (0, 0)
        assert cells[0] == f"{place}\n{row.label}" and cells[3] == "3"
        assert cells[2].split("\n") == [f"{row.rank:.2f}", f"{low:.1f} to {high:.1f}"]
        worse = f"worse on {len(row.worse_on)} of 3 tables"
        assert cells[4] == ("first" if place == 1 else "tied with the first" * row.tied or worse)
    assert real.texts("#findings li") == findings(real_board())
    assert real.explainers("#ranking-table", "below") == [row.label for row in ranking.below]
    assert real.one(".under-line .shelf").text.startswith("not better than random by AOPC")


def test_controls_have_no_place_and_no_tie(real: Reader) -> None:
    board = real_board()
    assert board.ranking is not None
    real.open("ranking")
    (control,) = real.all("#ranking-table tr.control")
    assert control.find_element("css selector", "bdi").text == "random"
    assert control.find_element("css selector", ".place").text == ""
    assert control.find_elements("css selector", ".mark") == []
    assert "would stand here" in control.text and "tied" not in control.text
    # It stands where its rank puts it.
    order = [
        row.get_attribute("class") for row in real.all("#ranking-table tbody:first-of-type tr")
    ]
    better = sum(row.rank < board.ranking.controls[0].rank for row in board.ranking.rows)
    assert order.index("control") == better
    for table in board.tables:
        real.open("results", table.id)
        real.toggle_families(1, 2)
        (control,) = real.all("#results-table tr.control")
        assert control.find_elements("css selector", ".top-tie, .place-cell") == []
        assert all(text == "" for text in real.texts("#results-table tr.control td")[:4])


def test_rows_stand_by_place_then_below_the_line_then_controls(real: Reader) -> None:
    table = real_board().tables[0]
    real.open("results", "agnews")
    shown = [row.get_attribute("class") for row in real.all("#results-table tbody tr")]
    assert shown == ["ranked"] * 5 + ["shelf", "below", "shelf", "control"]
    assert real.texts("#results-table tbody bdi") == [row.label for row in table.entrants]
    places = real.texts("#results-table .place-cell")
    assert [float(place) for place in places] == [row.place for row in table.entrants[:5]]
    real.all("#results-table .sort")[2].click()  # sorting lifts nobody over the line
    shown = [row.get_attribute("class") for row in real.all("#results-table tbody tr")]
    assert shown == ["ranked"] * 5 + ["shelf", "below", "shelf", "control"]


def test_results_open_on_sst2_and_lead_to_the_other_operator(real: Reader) -> None:
    real.open("results")
    assert real.one("#table").get_property("selectedOptions")[0].text == "sst2 · n = 200"
    line = real.one(".partner").text
    assert line.startswith("Erased by mask. The same examples erased by delete: sst2-delete. ")
    assert "Kendall's tau of the two orders is 1.00 over 5 explainers" in line
    real.one(".partner a").click()
    assert real.one("#table").get_property("selectedOptions")[0].text == "sst2-delete · n = 200"
    assert real.one(".partner").text.startswith("Erased by delete. ")
    real.choose("#table", "agnews · n = 200")
    assert real.all(".partner") == []


def test_cells_show_skill_on_request(small: Reader) -> None:
    table = small_board().tables[1]
    aopc = table.columns[0]
    small.open("results", "agnews")
    small.choose("#cell-value", "skill: 0 is random, 1 the best")
    skills = {row.label: aopc.cells[row.label].skill or 0.0 for row in table.entrants}
    assert small.column(1) == pytest.approx([*skills.values()][:6], abs=0.006)
    assert small.column(1, "control") == [0.0]
    assert small.all("#results-table .half") == []
    small.choose("#cell-value", "values")
    means = [aopc.cells[row.label].mean or 0.0 for row in table.entrants]
    assert small.column(1) == pytest.approx(means[:6], abs=6e-4)


def test_a_table_says_what_it_can_tell_apart(small: Reader) -> None:
    small.open("results", "agnews")
    cells = small.texts("#power td")
    # Ten metrics of faithfulness, after the columns of ranks.
    assert cells == ["", *[".07\n60% of pairs"] * 10]
    assert "what 200 examples can tell apart" in small.one("#results-body").text


def test_headings_sort_best_first_then_the_other_way(small: Reader) -> None:
    small.open("results", "agnews")
    assert small.one("th[aria-sort]").text.startswith("place")
    small.all("#results-table .sort")[2].click()  # AOPC, up is better
    assert small.column(1) == sorted(small.column(1), reverse=True)
    small.all("#results-table .sort")[3].click()  # LOdds, down is better
    assert small.column(2) == sorted(small.column(2))
    assert small.one("th[aria-sort]").get_attribute("aria-sort") == "ascending"
    small.all("#results-table .sort")[3].click()
    assert small.column(2) == sorted(small.column(2), reverse=True)
    assert small.one("th[aria-sort]").get_attribute("aria-sort") == "descending"
    small.all("#results-table .sort")[0].click()
    names = small.explainers("#results-table")
    assert names == sorted(names) and len(names) == 6
    assert small.one("th[aria-sort]").get_attribute("aria-sort") == "ascending"


def test_sorting_by_keyboard_keeps_the_focus(small: Reader) -> None:
    from selenium.webdriver.common.keys import Keys

    small.open("results", "agnews")
    button = small.all("#results-table .sort")[4]
    button.send_keys(Keys.ENTER)
    focused = small.driver.switch_to.active_element
    assert focused.text.startswith("comprehensiveness")
    focused.send_keys(Keys.SPACE)
    assert small.column(3) == sorted(small.column(3))


def test_explainers_without_a_value_come_last_either_way(small: Reader) -> None:
    small.open("results", "agnews")
    for _ in range(2):
        small.all("#results-table .sort")[8].click()  # attention has no delta_log_odds_neg
        assert small.explainers("#results-table")[-1] == "attention"
        assert small.texts("#results-table tr.ranked:last-child td")[10] == "\u2013"


def test_cells_show_mean_interval_letters_and_skipped(small: Reader) -> None:
    table = small_board().tables[1]
    column = next(c for c in table.columns if c.metric == "tau_loo")
    small.open("results", "agnews")
    small.all("#results-table .sort")[10].click()
    label, score = next(iter(column.cells.items()))
    assert small.texts("#results-table tbody bdi")[0] == label
    cell = small.one("#results-table tbody tr td:nth-child(14)")
    mean = f"{score.mean:.3f}".removeprefix("0")
    assert cell.text.split("\n") == [mean, f"±.035 {score.letters} 3 skipped"]
    assert "n = 197, 3 skipped; skill 1.00; the best" in cell.get_attribute("title")
    bold = [
        row.find_element("css selector", "bdi").text
        for row in small.all("#results-table tr:is(.ranked, .control)")
        if "top-tie" in row.find_element("css selector", "td:nth-child(14)").get_attribute("class")
    ]
    assert bold == [name for name, c in column.cells.items() if c.best or c.tie]


def test_filters_by_text_and_family(small: Reader) -> None:
    from selenium.webdriver.common.keys import Keys

    small.open("results", "agnews")
    small.one("#find").send_keys("ATT")
    names = small.explainers("#results-table")
    assert sorted(names) == ["attcat", "attention", "attention-flow", "attention-x-gradient"]
    assert small.one("#count").text == "4 of 6 explainers"
    small.one("#find").send_keys(Keys.BACKSPACE * 3)
    small.choose("#family", "relevance")
    assert small.explainers("#results-table") == ["lrp-mask"]
    assert small.explainers("#results-table", "control") == ["random"]  # stays for reference


def test_metrics_are_chosen_by_family_and_by_name(small: Reader) -> None:
    small.open("results", "agnews")
    assert len(small.all("#results-table .under th")) == 15
    small.toggle_families(0, 1)
    heads = small.texts("#results-table .under th")
    assert heads[:5] == ["explainer", "place\n▴", "compr.", "suff.", "sign"]
    assert heads[5:7] == ["iou_semantic ↑", "iou_lexical ↑"] and len(heads) == 10
    small.one("#section-results details summary").click()
    small.all("#metrics input")[0].click()
    assert small.texts("#results-table .under th")[5:] == [
        "iou_lexical ↑", "iou_labels ↑", "seed_agreement ↑", "max_sensitivity ↓"
    ]  # fmt: skip


def test_bundled_and_proxy_are_marked(small: Reader) -> None:
    small.open("results", "sst2")
    assert "not comparable with results on the real task" in small.one("#results-facts .note").text
    small.toggle_families(2)
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
        effects = [float(c.get_attribute("title").split("effect ")[1].split()[0])
                   for c in (cell, back)]  # fmt: skip
        assert effects == pytest.approx([pair.effect, -pair.effect], abs=0.006)
        assert pair.effect >= 0  # best first: the row is better, though lower
    assert "+ if the row is better" in small.one("#tests-body .scale").text
    cell.click()
    assert small.one("#test-told").text == cell.get_attribute("title")
