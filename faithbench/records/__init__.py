"""What is on disk: records, rows, their names, and which of them may be compared."""
