"""Intervals, paired tests, groups of ties and ranks: numbers in, numbers out."""
