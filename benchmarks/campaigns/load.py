"""Load the leaderboard with up to 2,000 made-up records: build time, bytes, and a reader's wait.

    PYTHONPATH=. python benchmarks/campaigns/load.py [--most 2000] [--no-write]

Records are those of benchmarks/leaderboard.py, 25 to a table. The target is a build whose CPU
seconds grow no faster than the records (a slope of at most 1 on logarithmic axes), and a page that
opens and shows a table. Needs chromium and chromium-driver.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from tabulate import tabulate

sys.path.insert(0, str(Path(__file__).parents[1]))  # the benchmarks import each other by name

from tables import write_section

from leaderboard import CHOSEN, EXAMPLES, build, make_records
from tests.support import browser
from tests.support.reader import Reader

EXPLAINERS = 25
MADE = 4
STEPS = (250, 500, 1000, 2000)
VISITS = 3
TARGET = 1.0


class Load(NamedTuple):
    """What so many records cost: CPU seconds, bytes of either page, and a reader's seconds."""

    records: int
    cpu: float
    inside: int
    beside: int
    data: int
    first_table_inside: float
    first_table_beside: float


class Quiet(SimpleHTTPRequestHandler):
    """A server of a folder that says nothing."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """Build boards of more and more records, visit their pages, and fit the slope."""
    if browser.missing():
        sys.exit(browser.missing())
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=STEPS[-1])
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    steps = [step for step in STEPS if step <= options.most]
    with tempfile.TemporaryDirectory() as scratch:
        every = Path(scratch) / "every"
        make_records(every, MADE, EXPLAINERS)
        copy_tables(every, steps[-1] // EXPLAINERS)
        driver = browser.start(Path(scratch) / "profile")
        try:
            loads = [load(every, step, Path(scratch) / str(step), driver) for step in steps]
        finally:
            driver.quit()
    slope = fit_slope([one.records for one in loads], [one.cpu for one in loads])
    body = section(loads, slope)
    if options.no_write:
        print(body)
    else:
        write_section("Load", "PYTHONPATH=. python benchmarks/campaigns/load.py", body)
    if slope > TARGET:
        raise SystemExit(f"CPU seconds grow with a slope of {slope:.2f}, more than {TARGET}")


def copy_tables(every: Path, count: int) -> None:
    """Copy the tables that were made under names of further tasks: making takes longest."""
    for number in range(MADE, count):
        name, new = f"task{number % MADE:02}", f"task{number:02}"
        shutil.copytree(every / f"{name}-folder", every / f"{new}-folder")
        for path in (every / f"{new}-folder").rglob("*.json"):
            path.write_text(path.read_text().replace(f'"{name}"', f'"{new}"'))


def load(every: Path, count: int, folder: Path, driver: Any) -> Load:
    """Build the board of the first so many records in both forms, and visit both pages."""
    records = folder / "records"
    for table in sorted(every.iterdir())[: count // EXPLAINERS]:
        shutil.copytree(table, records / table.name, copy_function=os.link)
    cpu = min(build(records, folder / form, "--tables", form)[1] for form in ("inside", "beside"))
    pages = {form: folder / form / "index.html" for form in ("inside", "beside")}
    made = Load(
        records=count,
        cpu=cpu,
        inside=pages["inside"].stat().st_size,
        beside=pages["beside"].stat().st_size,
        data=sum(path.stat().st_size for path in (folder / "beside" / "data").iterdir()),
        first_table_inside=first_table(driver, pages["inside"].as_uri()),
        first_table_beside=served(driver, folder / "beside"),
    )
    print(made, flush=True)
    shutil.rmtree(folder)
    return made


def served(driver: Any, folder: Path) -> float:
    """Return a reader's wait for the first table of a page that a server brings."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        return first_table(driver, f"http://127.0.0.1:{server.server_port}/index.html")
    finally:
        server.shutdown()
        server.server_close()


def first_table(driver: Any, address: str) -> float:
    """Return the seconds from opening an address until its table is drawn, the median visit."""
    reader, seconds = Reader(driver, address), []
    for _ in range(VISITS):
        reader.open("results")
        if not reader.one("#results-table").is_displayed():
            raise SystemExit(f"{address} shows no table")
        mark = "return performance.getEntriesByName('table')[0].startTime"
        seconds.append(float(driver.execute_script(mark)) / 1000)
    return median(seconds)


def fit_slope(records: list[int], seconds: list[float]) -> float:
    """Return by which power of the records the seconds grow: a line on logarithmic axes."""
    return float(np.polyfit(np.log(records), np.log(seconds), 1)[0])


def section(loads: list[Load], slope: float) -> str:
    """Write what was measured as a table."""
    rows = [
        [
            one.records,
            f"{one.cpu:.1f}",
            f"{one.inside / 1e6:.1f}",
            f"{one.beside / 1e6:.2f}",
            f"{one.data / (one.records // EXPLAINERS) / 1e3:.0f}",
            f"{one.first_table_inside:.2f}",
            f"{one.first_table_beside:.2f}",
        ]
        for one in loads
    ]
    headers = ["records", "build, CPU s", "one file, MB", "page with tables beside, MB",
               "a table, kB", "first table of one file, s",
               "first table of a served page, s"]  # fmt: skip
    return (
        f"Boards of made-up records ({MADE} tables, copied): {EXPLAINERS} explainers to a table, "
        f"{EXAMPLES} examples, {len(CHOSEN)} metrics. CPU seconds are of the whole command on all "
        "cores, the lesser of two builds; they grow with records to the power of "
        f"{slope:.2f} (target: at most {TARGET:.0f}). First table: from opening the address until "
        f"the table is drawn, median of {VISITS} visits by headless chromium, at a load of "
        f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores.\n\n"
        + tabulate(rows, headers, tablefmt="github", disable_numparse=True)
    )


if __name__ == "__main__":
    main()
