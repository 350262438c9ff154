"""A person who reads the leaderboard's page in a browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any


class Reader:
    """What a person does with the page."""

    def __init__(self, driver: Any, page: Path | str) -> None:
        self.driver = driver
        self.address = page.as_uri() if isinstance(page, Path) else page

    def open(self, section: str, table: str = "") -> None:
        self.go(f"{section}/{table}")

    def go(self, fragment: str) -> None:
        """Open the page anew at an address within it."""
        self.driver.get("about:blank")
        self.driver.get(f"{self.address}#{fragment}")
        self.wait("document.documentElement.dataset.ready === 'yes'")
        self.wait("document.getElementById('main').getAttribute('aria-busy') !== 'true'")

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

    def column(self, number: int, shelf: str = "ranked") -> list[float]:
        """Return the means of a metric, counted from 1, after the four columns of ranks."""
        cells = self.texts(f"#results-table tr.{shelf} td:nth-child({number + 5}) .mean")
        return [float(cell) for cell in cells]

    def explainers(self, table: str, shelf: str = "ranked") -> list[str]:
        """Return the explainers of a table that are ranked, below the line, or controls."""
        return self.texts(f"{table} tr.{shelf} bdi")

    def toggle_families(self, *places: int) -> None:
        """Show or hide families of metrics; a click draws the boxes anew."""
        for place in places:
            self.all("#metric-families input")[place].click()
