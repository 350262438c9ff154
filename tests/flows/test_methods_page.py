"""docs/methods.md names every explainer, with its family and its settings."""

from __future__ import annotations

import re

import pytest

from faithbench.explainers.registry import EXPLAINERS
from faithbench.explainers.selection import find_explainers
from tests.support.paths import ROOT

PAGE = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")


def described() -> dict[str, tuple[str, str]]:
    """Return each explainer's family, which is the heading above it, and its settings."""
    rows: dict[str, tuple[str, str]] = {}
    family = ""
    for line in PAGE.splitlines():
        if line.startswith("## "):
            family = line.removeprefix("## ").lower()
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 3 and re.fullmatch(r"`[\w-]+`", cells[0]):
            rows[cells[0].strip("`")] = (family, cells[1])
    return rows


def test_the_page_names_all_explainers_and_no_others() -> None:
    families = {name: listed.family for name, listed in EXPLAINERS.items() if ":" not in name}
    assert {name: family for name, (family, _) in described().items()} == families


@pytest.mark.parametrize("name", described())
def test_settings_and_draws_are_those_of_the_code(name: str) -> None:
    (chosen,) = find_explainers(name)
    # As a user types them: booleans in lower case.
    typed = {
        key: str(value).lower() if isinstance(value, bool) else value
        for key, value in chosen.settings.items()
    }
    wanted = [f"`{key}={value}`" for key, value in typed.items()]
    if getattr(chosen.explainer, "stochastic", False):
        wanted.append("draws")
    assert described()[name][1] == ", ".join(wanted)
