"""Foreign code in a process of its own: confined, timed, and asked for scores."""
