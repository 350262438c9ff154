"""Explainers, one file per family; `catalog` lists them without loading torch."""
