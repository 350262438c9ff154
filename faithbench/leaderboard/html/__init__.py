"""The board as one closed HTML file."""
