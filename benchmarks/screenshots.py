"""Take the pictures that the documents show of the leaderboard's page.

    PYTHONPATH=. python benchmarks/screenshots.py leaderboard/index.html [table]

They go to docs/leaderboard.png and docs/viewer.png. Needs chromium and chromium-driver.
"""

from __future__ import annotations

import sys
import tempfile
from io import BytesIO
from pathlib import Path
from urllib.parse import quote

from tests.support import browser

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Take both pictures of the page and table that the command line names."""
    if browser.missing():
        sys.exit(browser.missing())
    page = Path(sys.argv[1]).resolve()
    table = quote(sys.argv[2]) if len(sys.argv) > 2 else ""
    with tempfile.TemporaryDirectory() as profile:
        driver = browser.start(Path(profile), 1280, 800)
        try:
            for section, name in (("ranking", "leaderboard"), ("examples", "viewer")):
                driver.get("about:blank")
                driver.get(f"{page.as_uri()}#{section}/{table}")
                write_png(driver.get_screenshot_as_png(), ROOT / "docs" / f"{name}.png")
        finally:
            driver.quit()


def write_png(picture: bytes, path: Path) -> None:
    """Write a picture with 256 colours, which is a third of the size and looks the same."""
    from PIL import Image

    Image.open(BytesIO(picture)).convert("RGB").quantize(256).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1000:.0f} KB")


if __name__ == "__main__":
    main()
