"""Records of a study with numbers that are made up: what the paper claims is true of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from faithbench.records.provenance import environment
from faithbench.records.schema import SourceFacts
from faithbench.studies.sparse_attention.adversary import Adversary
from faithbench.studies.sparse_attention.record import (
    StudyNetwork,
    StudyRecord,
    StudySettings,
    StudyTask,
    StudyTiming,
)

STRENGTHS = {"softmax": None, "sparsegen:-1": -1.0, "sparsemax": 0.0, "sparsegen:0.9": 0.9}

# Mean at lambda 0, and the slope in lambda.
MEASURES: dict[str, tuple[float, float]] = {
    "entropy_attention": (0.4, -0.1),
    "ceiling": (0.6, -0.3),
    "tau_gradient_x": (0.4, -0.2),
    "tau_gradient_h": (0.8, 0.1),
    "tau_loo_x": (0.3, -0.2),
    "tau_loo_h": (0.9, 0.05),
    "share_gradient_x": (0.6, 0.3),
    "share_loo_x": (0.5, 0.3),
    "auc_gradient_x": (0.8, 0.1),
    "top_gradient_x": (0.5, 0.1),
    "inside_gradient_x": (0.2, 0.0),
    "inside_gradient_h": (0.5, 0.0),
    "entropy_gradient_x": (0.9, -0.05),
    "entropy_loo_x": (0.8, -0.05),
    "entropy_on_h": (0.9, 0.0),
    "own_share": (0.2, 0.0),
    "own_rank": (3.0, 0.0),
    "own_first": (0.4, 0.0),
}


def made_record(
    projection: str, strength: float | None, *, seed: int = 0, texts: int = 12, **means: float
) -> StudyRecord:
    """Return a record whose texts differ by less than networks do."""
    draw = np.random.default_rng(seed)
    values: dict[str, tuple[float | None, ...]] = {
        "length": tuple([9.0] * texts),
        "support": tuple([0.5] * texts),
    }
    for name, (level, slope) in MEASURES.items():
        middle = means.get(name, level) + slope * (strength or 0.0)
        values[name] = tuple((middle + draw.uniform(-0.02, 0.02, texts)).tolist())
    return StudyRecord(
        task=StudyTask(name="mini", version=1, source="folder", data_sha256="cd" * 32, n=texts),
        network=StudyNetwork(
            name=f"mini-bilstm-{projection.replace(':', '-')}-seed{seed}",
            arch="bilstm",
            projection=projection,
            strength=strength,
            seed=seed,
            vectors="random",
            weights_sha256="ab" * 32,
            test={"accuracy": 0.75},
        ),
        settings=StudySettings(max_tokens=12, positions=3),
        texts=tuple(f"t{number}" for number in range(texts)),
        values=values,
        timing=StudyTiming(training=60.0, measuring=30.0),
        environment=environment("cpu", 1),
        source=SourceFacts(commit="0" * 40, dirty=False),
    )


def made_study(*, seeds: int = 1, texts: int = 12, **means: float) -> list[StudyRecord]:
    """Return the records of four projections."""
    return [
        made_record(projection, strength, seed=seed, texts=texts, **means)
        for projection, strength in STRENGTHS.items()
        for seed in range(seeds)
    ]


def made_adversary(**changes: Any) -> Adversary:
    """Return an adversary that changes nothing, but for what is given."""
    right = changes.get("base", [True] * 40)
    facts: dict[str, Any] = {
        "task": "mini",
        "network": "mini-bilstm-softmax-seed0",
        "projection": "softmax",
        "seed": 0,
        "weight": 0.1,
        "weights_sha256": ("a", "b", "c"),
        "divergence": [0.5] * len(right),
        "another_seed": [0.25] * len(right),
        "timing": StudyTiming(training=60.0, measuring=30.0),
    }
    facts |= dict.fromkeys(("base", "far", "near", "trained"), right)
    return Adversary(
        **{k: tuple(v) if isinstance(v, list) else v for k, v in (facts | changes).items()}
    )
