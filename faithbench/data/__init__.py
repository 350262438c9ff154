"""From a task file to examples; words, sentences and rationales of a text."""
