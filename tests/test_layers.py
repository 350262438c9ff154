"""The house as a whole: tests mirror the package, and rooms stay small."""

from __future__ import annotations

import re
from pathlib import Path

from tests.support.paths import ROOT

PACKAGE, TESTS = ROOT / "faithbench", ROOT / "tests"
NO_TEST = {
    "plugins.py": "an alias, tested with the submissions that import it",
    "cli/__main__.py": "a call of main, run by tests/cli/test_app.py in a process of its own",
    "api.py": "tests/test_api.py, as it stands above the rooms",
    "explainers/selection.py": "tests/explainers/test_registry.py: names, settings, labels",
    "explainers/passes/gradient_paths.py": "tests/explainers/test_gradient.py",
    "explainers/passes/rule_mode.py": "the rules on it: test_lrp, test_attn_lrp, test_deep_lift",
    "run/loop.py": "tests/flows/test_run.py and test_resume.py",
    "run/request.py": "tests/flows/test_bad_input.py and test_kinds.py",
}


def modules() -> list[str]:
    """Every module of the package that holds something, by its path below it."""
    paths = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]
    return sorted(path for path in paths if not path.endswith("__init__.py"))


def test_every_module_has_a_test_file_of_its_name() -> None:
    missing = [
        module
        for module in modules()
        if module not in NO_TEST
        and not (TESTS / Path(module).parent / f"test_{Path(module).name}").is_file()
    ]
    assert missing == []


def test_every_test_file_belongs_to_a_module() -> None:
    """`test_<module>.py`, or `test_<module>_<aspect>.py`; what spans rooms is in flows/."""
    stray = []
    for path in TESTS.rglob("test_*.py"):
        folder = path.relative_to(TESTS).parent.as_posix()
        if folder == "flows" or path.parent == TESTS or path.stem == f"test_{path.parent.name}":
            continue
        room = PACKAGE / folder
        names = [m.stem for m in room.glob("*.py")] + [m.name for m in room.glob("*/")]
        own = path.stem.removeprefix("test_")
        if not any(own == name or own.startswith(f"{name}_") for name in names):
            stray.append(f"{folder}/{path.name}")
    assert stray == []


def test_slow_tests_are_tests() -> None:
    """A test that was renamed or moved would be run by `make check` unnoticed."""
    for line in (TESTS / "slow.txt").read_text().split():
        file, _, name = line.partition("::")
        names = re.findall(r"def (test_\w+)", (ROOT / file).read_text())
        assert name in names, f"{line} is not there: run `make slow`"


def test_rooms_are_small_enough_to_know() -> None:
    top = [path for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    assert len(top) <= 18, sorted(path.name for path in top)
    for folder in {path.parent for path in PACKAGE.rglob("*.py")}:
        files = list(folder.glob("*.py"))
        assert len(files) <= 18, f"{folder.relative_to(ROOT)} has {len(files)} files"
