"""Measure the leaderboard's page: how long it takes to make, and until a reader can use it.

    PYTHONPATH=. python benchmarks/page.py

The board is made up, of the size of 504 records: 18 tables with 28 explainers, 25 metrics and 8
texts each. Needs chromium and chromium-driver.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from tables import write_section
from tabulate import tabulate

from faithbench.leaderboard.html.chart_library import make_library
from faithbench.leaderboard.html.page import render_page
from tests.support import browser
from tests.support.boards import TASKS, make_board

REPEATS = 5
TABLES = 18


def main() -> None:
    """Write how long the page takes on the reader's side and on ours."""
    if browser.missing():
        sys.exit(browser.missing())
    board = make_board(tasks=tuple(TASKS[i % len(TASKS)] for i in range(TABLES)))
    library, _ = timed(make_library)
    render_page(board)  # keeps the library
    rendered, text = timed(lambda: render_page(board))
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "index.html"
        page.write_text(text, encoding="utf-8")
        driver = browser.start(Path(folder) / "profile")
        try:
            reader = {name: [] for name in ("interactive", "chart", *SECTIONS)}
            for _ in range(REPEATS):
                for name, seconds in read(driver, page).items():
                    reader[name].append(seconds)
        finally:
            driver.quit()
    rows = [
        ["records, tables", f"{board.records}, {len(board.tables)}"],
        ["size", f"{len(text) / 1e6:.1f} MB"],
        ["CPU seconds to make the chart library, once", f"{library:.2f}"],
        ["CPU seconds to make the rest of the page", f"{rendered:.2f}"],
        [
            "seconds from opening until it answers, ranking shown",
            f"{median(reader['interactive']):.2f}",
        ],
        ["seconds from a click to the first chart", f"{median(reader['chart']):.2f}"],
        *([f"seconds from a click to {s}", f"{median(reader[s]):.2f}"] for s in SECTIONS),
    ]
    note = f"Medians of {REPEATS} visits by headless chromium, while other work ran on the cores."
    table = tabulate(rows, headers=["what", "value"], tablefmt="github", disable_numparse=True)
    write_section(
        "The leaderboard's page", "PYTHONPATH=. python benchmarks/page.py", f"{note}\n\n{table}"
    )


SECTIONS = ("results", "tests", "examples", "guide")


def timed(work: Any) -> tuple[float, Any]:
    """Return the CPU seconds of one call, and what it gave."""
    start = time.process_time()
    made = work()
    return time.process_time() - start, made


def read(driver: Any, page: Path) -> dict[str, float]:
    """Open the page and look at sections; seconds by the browser's own clock."""
    driver.get("about:blank")
    driver.get(page.as_uri())
    wait(driver, "document.documentElement.dataset.ready === 'yes'")
    mark = "performance.getEntriesByName('%s')[0].startTime"
    found = {"interactive": ask(driver, mark % "interactive") / 1000}
    driver.execute_script(
        "window.clicked = performance.now();"
        "document.querySelector('#sections a[href=\"#cost\"]').click();"
    )
    wait(driver, "document.querySelector('.chart svg') !== null")
    found["chart"] = ask(driver, f"{mark % 'first-chart'} - window.clicked") / 1000
    for section in SECTIONS:
        click = (
            "const start = performance.now();"
            f"document.querySelector('#sections a[href=\"#{section}\"]').click();"
            "document.body.offsetHeight;"  # forces the layout that the reader waits for
            "return (performance.now() - start) / 1000"
        )
        found[section] = float(driver.execute_script(click))
    return found


def ask(driver: Any, expression: str) -> float:
    """Return what the page's browser makes of an expression."""
    return float(driver.execute_script(f"return {expression}"))


def wait(driver: Any, condition: str) -> None:
    """Wait until something is true on the page."""
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60).until(lambda d: d.execute_script(f"return {condition}"))


if __name__ == "__main__":
    main()
