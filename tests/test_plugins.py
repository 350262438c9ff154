"""Explainers from outside: loose files, installed packages, name clashes, broken imports."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from faithbench import plugins
from faithbench.errors import FaithbenchError
from faithbench.plugins import installed_plugins, plugins_of_file
from faithbench.selection import find_explainers

LOOSE = """
from dataclasses import dataclass
import numpy as np
from faithbench import explainer, per_example

@explainer("drop-one")
@per_example
@dataclass(frozen=True)
class DropOne:
    \"\"\"Score a token by how far the probability falls without it.\"\"\"

    scale: float = 1.0

    def __call__(self, probs, example):
        n = len(example.tokens)
        keep = np.vstack([np.ones(n, dtype=bool), ~np.eye(n, dtype=bool)])
        answers = probs(keep)
        return self.scale * (answers[0] - answers[1:])
"""


def test_a_loose_file_is_an_explainer(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(LOOSE)
    (chosen,) = find_explainers("drop-one:scale=2", [path])
    assert chosen.label == "drop-one:scale=2.0"
    assert chosen.package == "file mine.py"


def test_the_readme_plugin_is_short() -> None:
    assert len(LOOSE.strip().splitlines()) < 25


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1", "names no explainer"),
        ("import no_such_module_at_all", "does not import: ModuleNotFoundError"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(content)
    with pytest.raises(FaithbenchError, match=message) as caught:
        find_explainers("x", [path])
    assert "\n" not in str(caught.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"none\.py does not exist"):
        plugins_of_file(tmp_path / "none.py")


def test_a_plugin_that_fails_to_import_hurts_nobody_else(monkeypatch) -> None:
    install(monkeypatch, EntryPoint("broken", "no_such_module_at_all:X", "faithbench"))
    assert [p.name for p in installed_plugins()] == ["broken"]
    assert find_explainers("random")[0].name == "random"
    with pytest.raises(FaithbenchError, match=r"plugin 'broken' .* does not import"):
        find_explainers("broken")


def test_two_plugins_of_one_name_are_both_named(monkeypatch, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(LOOSE.replace("drop-one", "random"))
    with pytest.raises(FaithbenchError, match=r"faithbench itself and file mine\.py"):
        find_explainers("random", [path])


def test_something_else_is_not_an_explainer(monkeypatch) -> None:
    install(monkeypatch, EntryPoint("odd", "math:sqrt", "faithbench"))
    with pytest.raises(FaithbenchError, match=r"'odd' .* is not an explainer"):
        find_explainers("odd")


def install(monkeypatch, *points: EntryPoint) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: list(points))
