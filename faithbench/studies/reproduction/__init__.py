"""Reproduce published tables and figures, theirs beside ours, claim by claim.

The line is `recipe` (a paper as a file, with its `claims`; `reading` checks its names), `cells`
(find or make what each cell needs, by `measures`), `values` (what was measured), `trials` (test
each statement), `verdicts` (say what claims come to), `result` (what is kept) and `page`.
"""
