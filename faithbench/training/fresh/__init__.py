"""FRESH: classifiers that are trained on the words an explainer chooses, and on nothing else.

`study.fresh` does all of it: `extraction` cuts texts down to rationales, `random_words` is the
control, and `records` writes what `faithbench compare` reads. All but `extraction`
import torch, and are imported where they are used.
"""

from __future__ import annotations

from faithbench.training.fresh.extraction import Extraction, rationale

__all__ = ["Extraction", "rationale"]
