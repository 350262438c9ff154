"""The old address of `plugins_of_file`: tests of submitted folders import it from here."""

from faithbench.explainers.registry import plugins_of_file

__all__ = ["plugins_of_file"]
