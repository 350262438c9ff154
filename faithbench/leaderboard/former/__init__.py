"""The board in place, which a build replaces: files that are ours, and vanished records."""
