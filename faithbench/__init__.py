"""faithbench: how faithful, stable, plausible and fast an explanation of an NLP model is."""
