"""Help in groups and examples, --debug after a command, and settings from files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from faithbench.cli.app import app
from faithbench.cli.help.command import Application, read_settings, save_settings
from faithbench.core.errors import FaithbenchError


def help_of(*words: str) -> str:
    return CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "80"}).output


@pytest.mark.parametrize(
    ("command", "groups"),
    [
        ("run", "What to run, Data, Model, Metrics, Output, Advanced"),
        ("train", "What to run, Data, Model, Training, Output"),
        ("cite", "Arguments, What to run"),
        ("leaderboard build", "Data, Output"),
    ],
)
def test_options_stand_in_groups(command: str, groups: str) -> None:
    heads = re.findall(r"^(\w.*):$", help_of(*command.split()), flags=re.M)
    assert heads == [*groups.split(", "), "Options", "Examples"]


def test_debug_may_follow_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAITHBENCH_DEBUG", "")
    result = CliRunner().invoke(app, ["list", "metrics", "--debug"])
    assert result.exit_code == 0 and os.environ["FAITHBENCH_DEBUG"] == "1"


@pytest.fixture
def small_app() -> tuple[Application, list[dict[str, object]]]:
    """A command that keeps what it was called with."""
    small, calls = Application(), []

    @small.command()
    def measure(
        explainer: Annotated[str, typer.Option()],
        limit: int = 3,
        no_human: Annotated[bool, typer.Option("--no-human")] = False,
        plugin: list[Path] | None = None,
        config: Annotated[Path | None, typer.Option(callback=read_settings, is_eager=True)] = None,
        save_config: Path | None = None,
    ) -> None:
        calls.append({"limit": limit, "explainer": explainer, "no_human": no_human})

    return small, calls


def test_a_file_gives_defaults_and_what_is_typed_wins(small_app, tmp_path: Path) -> None:
    small, calls = small_app
    file = tmp_path / "run.toml"
    file.write_text('limit = 7\nexplainer = ["lime", "random"]\nno-human = true\n')
    assert CliRunner().invoke(small, ["--config", str(file)]).exit_code == 0
    assert CliRunner().invoke(small, ["--config", str(file), "--limit", "9"]).exit_code == 0
    assert calls == [
        {"limit": 7, "explainer": "lime,random", "no_human": True},
        {"limit": 9, "explainer": "lime,random", "no_human": True},
    ]


def test_saved_settings_are_read_back(small_app, tmp_path: Path) -> None:
    small, calls = small_app
    file = tmp_path / "run.toml"
    words = ["--explainer", 'a:b="c"', "--limit", "5", "--save-config", str(file)]
    assert CliRunner().invoke(small, words).exit_code == 0
    assert CliRunner().invoke(small, ["--config", str(file)]).exit_code == 0
    assert calls[0] == calls[1] == {"limit": 5, "explainer": 'a:b="c"', "no_human": False}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("limt = 3\n", "no setting named 'limt'"),
        ("limit = \n", "cannot read --config"),
        ("limit = " + "9" * 5000, "cannot read --config"),
        ("[limit]\na = 1\n", "limit is a table"),
        ('config = "x.toml"\n', "no setting named 'config'"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(small_app, tmp_path: Path, text, said) -> None:
    small, calls = small_app
    file = tmp_path / "run.toml"
    file.write_text(text)
    result = CliRunner().invoke(small, ["--config", str(file)])
    assert isinstance(result.exception, FaithbenchError) and not calls
    assert said in str(result.exception) and "\n" not in str(result.exception)


def test_settings_that_cannot_be_written_are_said(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="cannot write --save-config"):
        save_settings({"limit": 3}, tmp_path / "none" / "run.toml")
