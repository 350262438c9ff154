"""The page of one's own records: self-contained, without a ranking or a folder's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard.html.report import board_of_files, write_report
from tests.support import browser
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]


def test_a_report_has_the_records_it_was_given_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path / "home"))
    paths = [
        store(tmp_path / "secret-folder", stem, {"aopc": UP})
        for stem in ("lime-11111111", "random-22222222", "gradient-33333333")
    ]
    board = board_of_files([*paths[:2], paths[0]])
    assert [row.label for row in board.tables[0].entrants] == ["lime", "random"]
    assert board.records == 2 and board.ranking is None and board.pareto == ()
    out = tmp_path / "pages" / "report.html"
    write_report(board, out, "faithbench run: <sst2>")
    text = out.read_text()
    assert "<h1>faithbench run: &lt;sst2&gt;</h1>" in text
    assert "secret-folder" not in text and 'src="http' not in text
    assert "Content-Security-Policy" in text


@pytest.mark.skipif(bool(browser.missing()), reason=browser.missing())
def test_a_report_opens_with_the_results(tmp_path: Path) -> None:
    paths = [store(tmp_path, stem, {"aopc": UP}) for stem in ("lime-11111111", "random-22222222")]
    out = tmp_path / "report.html"
    write_report(board_of_files(paths), out, "faithbench run: sst2")
    driver = browser.start(tmp_path / "profile")
    try:
        for address in ("", "#ranking"):  # an address from the leaderboard has no place here
            driver.get(out.as_uri() + address)
            links = driver.find_elements("css selector", "#sections a")
            assert [a.text for a in links][:2] == ["Results", "Curves"]
            shown = driver.find_elements("css selector", "main section:not([hidden])")
            assert [section.get_attribute("id") for section in shown] == ["section-results"]
            assert "lime" in shown[0].text
    finally:
        driver.quit()


def test_a_file_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    board = board_of_files([store(tmp_path, "lime-11111111", {"aopc": UP})])
    with pytest.raises(FaithbenchError, match="choose another file with --html"):
        write_report(board, tmp_path / "file" / "report.html", "x")
