"""How every command reads: options in groups, examples at the end, --debug anywhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperCommand

from faithbench.cli.help.examples import EXAMPLES
from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import read_toml, reason, replace_file

ARGUMENTS: Final = "Arguments"
WHAT: Final = "What to run"
DATA: Final = "Data"
MODEL: Final = "Model"
TRAINING: Final = "Training"
METRICS: Final = "Metrics"
OUTPUT: Final = "Output"
LIMITS: Final = "Limits on submitted code"
ADVANCED: Final = "Advanced"
_ORDER = (ARGUMENTS, WHAT, DATA, MODEL, TRAINING, METRICS, LIMITS, OUTPUT, ADVANCED, "Options")
_NEVER_SAVED = ("config", "save_config", "help")


class HelpfulCommand(TyperCommand):
    """A command whose help fits 80 columns and ends with examples.

    Typer's own groups are drawn as panels by rich, which leave 23 of 80 columns for the text.
    """

    # The types are those of Typer's own copy of click, which it does not export.
    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options, group by group."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            line = param.get_help_record(ctx)
            if line is None:
                continue
            term, text = line
            name = getattr(param, "rich_help_panel", None) or "Options"
            if param.param_type_name == "argument":
                # Typer adds the type as Python has it, as in `RECORD <list[str]>`.
                name, term = ARGUMENTS, term.partition(" <")[0]
            groups.setdefault(name, []).append((term, text))
        names = sorted(groups, key=_ORDER.index)
        # Equal widths, so that the groups of a command stand under each other.
        widest = max(len(term) for lines in groups.values() for term, _ in lines)
        for name in names:
            with formatter.section(name):
                padded = [(term.ljust(min(widest, 28)), text) for term, text in groups[name]]
                formatter.write_dl(padded)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the command's examples as they are typed."""
        lines = EXAMPLES.get(path_of(ctx.command_path), ())
        if lines:
            with formatter.section("Examples"):
                for line in lines:
                    formatter.write(f"{'':>{formatter.current_indent}}{line}\n")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Take --debug wherever it stands; it is the program's option, not the command's."""
        ends = args.index("--") if "--" in args else len(args)
        if "--debug" in args[:ends]:
            os.environ["FAITHBENCH_DEBUG"] = "1"
            args = [arg for arg in args[:ends] if arg != "--debug"] + args[ends:]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Save the settings first, if that is asked for, so that a stopped run has them too."""
        if path := ctx.params.get("save_config"):
            save_settings(ctx.params, path)
        return super().invoke(ctx)


class Application(typer.Typer):
    """A group of commands, all of them helpful ones."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[Any], Any]:
        """Register a command."""
        return super().command(name, **{"cls": HelpfulCommand, **settings})


def path_of(command_path: str) -> str:
    """Return the words of a command without the name of the script."""
    return " ".join(command_path.split()[1:])


def read_settings(ctx: typer.Context, path: Path | None) -> Path | None:
    """Take the settings in a file as the command's defaults: what is typed has the last word."""
    if path is None:
        return None
    try:
        settings = read_toml(path)
    except (OSError, ValueError) as error:
        raise FaithbenchError(
            f"cannot read --config {path}: {reason(error)}; give a file that --save-config wrote"
        ) from error
    names = [p.name for p in ctx.command.params if p.name and p.name not in _NEVER_SAVED]
    keys = {key: key.replace("-", "_") for key in settings}
    for key, name in keys.items():
        if name not in names:
            raise FaithbenchError(f"--config {path}: {unknown('setting', key, names)}")
        if isinstance(settings[key], dict):
            raise FaithbenchError(f"--config {path}: {key} is a table; settings are plain values")
    joined = {keys[key]: _joined(keys[key], value) for key, value in settings.items()}
    ctx.default_map = {**(ctx.default_map or {}), **joined}
    return path


def _joined(name: str, value: Any) -> Any:
    """Return a list of names as the command line has it, separated by commas."""
    return ",".join(map(str, value)) if isinstance(value, list) and name != "plugin" else value


def save_settings(params: Mapping[str, Any], path: Path) -> None:
    """Write the settings of a command as a file that --config reads."""
    text = "".join(_toml_lines(params))
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise FaithbenchError(
            f"cannot write --save-config {path}: {reason(error)}; choose another file"
        ) from error


def _toml_lines(params: Mapping[str, Any]) -> Iterator[str]:
    for name, value in params.items():
        if value is None or name in _NEVER_SAVED:
            continue
        plain = _plain(value)
        if plain != []:
            # Strings, numbers, truth values and lists of them are written alike in JSON.
            yield f"{name.replace('_', '-')} = {json.dumps(plain)}\n"


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return value.as_posix()
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_plain(each) for each in value]
    return value
