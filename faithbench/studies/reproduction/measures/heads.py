"""Cells of attention heads: which are syntactic or positional, and where they lie."""

from __future__ import annotations

import numpy as np

from faithbench.core.errors import CannotServeError
from faithbench.explainers.passes.heads import find_heads, masks_at
from faithbench.studies.reproduction.measures.networks import Networks
from faithbench.studies.reproduction.recipe import Part
from faithbench.studies.reproduction.values import Missing, RecordRef, Value, of_seeds

XI = (0.1, 0.8)
"""The paper's thresholds of syntactic and of positional heads."""


def heads_value(networks: Networks, part: Part) -> Value:
    """Read the statistics of attention heads, with the thresholds of the paper."""
    assert part.model is not None and part.metric is not None
    found = networks.of(part.model)
    if isinstance(found, Missing):
        return found
    model = networks.load(found[0])
    try:
        facts = find_heads(model)
    except CannotServeError as error:
        return Missing(str(error))
    kind, _, which = part.metric.partition("_")
    ref = RecordRef(f"heads of {model.public_name}", facts.weights_sha256)
    if kind == "peak":
        return of_seeds([facts.relations[which].best_offset_share], 1.0, [ref])
    syntactic, positional = masks_at(facts, *XI)
    mask = np.array(syntactic if which == "syntactic" else positional) > 0
    if kind == "share":
        return of_seeds([float(mask.mean())], 1.0, [ref])
    if not mask.any():
        return Missing(f"the paper's thresholds select no {which} head here")
    blocks = np.nonzero(mask)[0] / max(1, mask.shape[0] - 1)
    return of_seeds([float(blocks.mean())], 1.0, [ref])
