"""Explainers and attributions of strangers: run apart, measured here, and checked."""
