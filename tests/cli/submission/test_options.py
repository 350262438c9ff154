"""Options of submissions stand in groups, as those of other commands."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from faithbench.cli.app import app

COMMANDS = ("new", "check", "run", "score", "regenerate", "held-out", "planted", "preview", "scope")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_its_group(command: str) -> None:
    help_text = CliRunner().invoke(app, ["submission", command, "--help"], env={"COLUMNS": "80"})
    _, _, ungrouped = help_text.output.partition("\nOptions:\n")
    options, _, examples = ungrouped.partition("\n\n")
    assert [line.split()[0] for line in options.splitlines()] == ["--help"]
    assert examples.startswith("Examples:\n")


def test_limits_stand_together() -> None:
    shown = CliRunner().invoke(app, ["submission", "run", "--help"], env={"COLUMNS": "80"}).output
    limits = shown.partition("\nLimits on submitted code:\n")[2].partition("\n\n")[0]
    named = [word for line in limits.splitlines() if (word := line.split()[0]).startswith("--")]
    assert named == ["--seconds", "--memory", "--strict", "--allow-unconfined"]
