"""Every command has two examples, and each is a line that the command takes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from faithbench.cli.app import app
from faithbench.cli.help.examples import EXAMPLES

ROOT = typer.main.get_command(app)


def commands(group: Any = ROOT, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


COMMANDS = dict(commands())


def lines_of(path: str) -> list[str]:
    """The examples of a command, one line each; a backslash continues a line."""
    return "\n".join(EXAMPLES[path]).replace("\\\n", "").splitlines()


def test_every_command_has_examples_and_no_other() -> None:
    assert sorted(EXAMPLES) == sorted(COMMANDS)


@pytest.mark.parametrize("path", sorted(EXAMPLES))
def test_examples_are_taken_by_the_command(path: str) -> None:
    lines = lines_of(path)
    assert len(lines) == 2 and max(map(len, EXAMPLES[path])) <= 78
    for line in lines:
        words = shlex.split(line.split(" | ")[-1] if line.startswith("git") else line)
        words = words[: words.index("|")] if "|" in words else words
        while "=" in words[0]:  # a variable of the environment
            words = words[1:]
        depth = len(path.split())
        assert words[: depth + 1] == ["faithbench", *path.split()]
        # Parsed as a terminal would, up to the point where the command would run.
        COMMANDS[path].make_context(path, words[depth + 1 :], resilient_parsing=False)
