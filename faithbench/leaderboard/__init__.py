"""From records to a ranking: tables, overall ranks, and the pages that show them."""

from __future__ import annotations
