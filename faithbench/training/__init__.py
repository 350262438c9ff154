"""Training of the small models that the suite ships and of the objectives it compares."""

from __future__ import annotations
