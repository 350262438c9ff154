"""`faithbench show`, called as from a terminal."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from faithbench.cli.app import app

ASKED = (
    "explainer lime", "metric aopc", "task agnews", "model bundled:sst2", "objective saloss",
)  # fmt: skip


@pytest.mark.parametrize("asked", ASKED)
def test_every_kind_is_shown_in_80_columns(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, ["show", *asked.split()], catch_exceptions=False)
    assert done.exit_code == 0 and max(map(len, done.output.splitlines())) <= 80
    assert done.output.startswith(f"{asked.split()[1]}: ")
