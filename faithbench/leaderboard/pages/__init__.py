"""The board as markdown and LaTeX."""
