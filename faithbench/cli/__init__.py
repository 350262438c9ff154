"""The terminal: parse options, call one function of another room, print the result.

`main` runs the command `faithbench`. Each module has the functions of one or more commands, whose
parameters are the options; they import what is heavy themselves, so that help comes at once.
"""

from faithbench.cli.app import main

__all__ = ["main"]
