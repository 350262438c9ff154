"""Reproduce published tables and figures, theirs beside ours, claim by claim.

The line is `recipe` (a paper as a file), `work` (make what its cells need), `values` (read cells
from records), `verdicts` (test the claims), `result` (what is kept) and `pages`.
"""
