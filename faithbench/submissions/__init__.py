"""Explainers and attributions of strangers: run apart, measured here, and checked."""

from __future__ import annotations
