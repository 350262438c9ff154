"""A headless browser for the page's tests, with a fresh profile and a record of what it asks."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--hide-scrollbars",
)  # fmt: skip

# What is read without asking anybody.
OWN = ("file:", "about:", "chrome:", "data:")


def missing() -> str:
    """Say what is not there for a test in a browser, or nothing."""
    if find_spec("selenium") is None:
        return "selenium is not installed: pip install 'faithbench[test]'"
    if shutil.which("chromium") is None or shutil.which("chromedriver") is None:
        return "no browser: apt-get install chromium chromium-driver"
    return ""


def start(profile: Path, width: int = 1360, height: int = 950) -> Any:
    """Start chromium; the caller ends it with quit()."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={width},{height}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.get("about:blank")  # away from the browser's own first page, which asks for pictures
    resize(driver, width, height)
    return driver


def resize(driver: Any, width: int, height: int = 950) -> None:
    """Give the page a size; windows themselves cannot be as narrow as a phone."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def forget(driver: Any) -> None:
    """Let go of what pages kept from earlier visits, such as the choice between light and dark."""
    kept = {"origin": "file:///", "storageTypes": "local_storage"}
    driver.execute_cdp_cmd("Storage.clearDataForOrigin", kept)


def requests(driver: Any) -> list[str]:
    """Return the addresses of others that were asked for since the last call."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    asked = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in asked if not url.startswith(OWN)]
