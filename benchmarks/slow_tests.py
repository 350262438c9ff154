"""List the slow tests in tests/slow.txt, from what pytest printed with --durations=0.

make slow
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

SLOW = 0.5
"""Seconds of all cases of a test together, setup included, from which on it is slow."""
LIST = Path(__file__).parents[1] / "tests" / "slow.txt"


def slow_tests(log: str) -> list[str]:
    """Return the tests, without their parameters, whose cases take SLOW seconds or more."""
    seconds: dict[str, float] = defaultdict(float)
    for time, name in re.findall(
        r"^([\d.]+)s (?:call|setup|teardown) +(\S+?)(?:\[.*)?$", log, re.M
    ):
        seconds[name] += float(time)
    return sorted(name for name, total in seconds.items() if total >= SLOW)


def main() -> None:
    """Write the list."""
    names = slow_tests(Path(sys.argv[1]).read_text())
    LIST.write_text("".join(f"{name}\n" for name in names))
    print(f"{len(names)} slow tests in {LIST.name}")


if __name__ == "__main__":
    main()
