"""Studies: questions about models or explainers that one command answers, from data to a page."""
