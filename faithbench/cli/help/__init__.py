"""How all commands read: groups of options, examples, settings from files."""
