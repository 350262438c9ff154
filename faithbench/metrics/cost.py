"""Speed: what an explanation costs. The run measures it, for the record's cost and timing."""

from __future__ import annotations

from math import inf

from faithbench.metrics.registry import Measure, file_metric

for _name, _summary in {
    "seconds": "Median time per example: one at a time, warm, the explainer alone.",
    "peak_memory": "Highest memory above the loaded model while explaining one example.",
    "forwards": "Rows through the network, per example.",
    "backwards": "Rows back through the network, per example.",
    "forward_equivalents": "Forwards plus twice the backwards: cost in passes of the model.",
}.items():
    file_metric(Measure(_name, "speed", False, 0.0, inf, 1, _summary))
