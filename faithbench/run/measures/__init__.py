"""Measurements that need the network but are not erasure metrics.

`aopc_bounds` are the best and worst AOPC of an input, `precision_shift` how far half precision
moves probabilities, `max_sensitivity` how far perturbed embeddings move scores,
`labels_without_rationale` whether labels are found with rationales erased, and `measure_alone`
the seconds and memory of an explainer on its own. Each is in the module of its noun
(`measures.aopc_bounds`, `measures.precision`, `measures.sensitivity`,
`measures.rationale_erasure`, `measures.speed`), which loads torch; this module loads nothing.
"""

__all__ = ["aopc_bounds", "precision", "rationale_erasure", "sensitivity", "speed"]
