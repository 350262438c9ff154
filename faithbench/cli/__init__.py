"""The terminal: parse options, call one function of another room, print the result.

`main` runs the command `faithbench`. Each module has the functions of one or more commands, whose
parameters are the options; they import what is heavy themselves, so that help comes at once.
"""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C is one line, even while the commands are still imported."""
    try:
        from faithbench.cli.app import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("Stopped; nothing was begun.\n")
        sys.exit(130)
