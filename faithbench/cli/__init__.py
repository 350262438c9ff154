"""The terminal: parse, call, print."""

from faithbench.cli.app import main as main
