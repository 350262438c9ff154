"""The command line as the tests call it, and what it said."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from faithbench.cli import app as cli

RUN = ("run", "--explainer", "random", "--limit", "2")


class Said(NamedTuple):
    code: int
    out: str
    err: str


Call = Callable[..., Said]


def complaint(said: Said) -> str:
    """Return the one line of an error, having checked that it is one and nothing else."""
    assert said.code == 1
    # What was about to be loaded may have been said before.
    assert all(line.startswith("loading the model ") for line in said.out.splitlines())
    assert said.err.count("\n") == 1 and said.err.startswith("Error: ")
    assert "Traceback" not in said.err and "\x1b" not in said.err
    return said.err.removeprefix("Error: ").rstrip("\n")


def fresh(home: Path) -> dict[str, str]:
    """Return an environment of this checkout and nothing that a person has set."""
    checkout = str(Path(cli.__file__).parents[2])
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": checkout}


LIGHT = """
import sys
sys.argv[0] = "faithbench"
from faithbench.cli.app import main
try:
    main()
except SystemExit as stop:
    code = stop.code
else:
    code = 0
heavy = {"torch", "transformers", "datasets", "scipy", "scipy.stats", "sklearn", "captum", "peft"}
print("\\nheavy:", sorted(heavy & set(sys.modules)), "code:", code)
"""
