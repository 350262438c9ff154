"""The straight line from a request to records."""
