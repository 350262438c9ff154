"""Campaigns: the software is disturbed by the thousand, by scripts that anyone can run."""
