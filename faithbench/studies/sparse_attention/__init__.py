"""Is sparse attention more interpretable? The study of Meister et al. (2021), as one command.

The line is `plan` (which networks), `networks` (train what is missing), `measure` (one record per
network), `claims` (tests over records) and `page` (tables, verdicts and figures).
"""
