"""Errors, frozen types, closed schemas, whole files: what every room may use."""
