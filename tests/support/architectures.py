"""The models and inputs whose reference values are stored under tests/golden."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from faithbench.core.types import Batch, Encoding, Example
from faithbench.models.model import quieten

ARCHITECTURES = ("bert", "roberta", "distilbert", "electra", "albert", "gpt2")
INPUTS = (
    "s0_len3",
    "s1_len8",
    "s2_len12",
    "s3_len24",
    "s4_len64",
    "s5_pair17",
    "s6_len10_pad6",
    "s7_pair21_pad5",
)
CASES = tuple((name, classes) for classes in (2, 3) for name in INPUTS)
MODELS = Path(__file__).parents[1] / "reference" / "golden" / "models"


@cache
def reference_network(classes: int) -> PreTrainedModel:
    """Load the BERT that the reference values belong to, in float64."""
    quieten()
    network = AutoModelForSequenceClassification.from_pretrained(
        MODELS / f"bert_cls{classes}", attn_implementation="eager", dtype=torch.float32
    )
    return network.double().eval().requires_grad_(False)


def reference_batch(
    golden: dict[str, np.ndarray], name: str, classes: int, targets: Sequence[int] | None = None
) -> Batch:
    """Repeat one stored input, once for each target; all classes unless told."""
    ids, types, attention = (
        golden[f"{name}_nl{classes}/{key}"]
        for key in ("input_ids", "token_type_ids", "attention_mask")
    )
    targets = range(classes) if targets is None else targets
    real = attention.astype(bool)
    encoding = Encoding(
        example=Example(name, "", 0),
        ids=ids[real],
        types=types[real],
        erasable=np.ones(real.sum(), dtype=bool),
        words=np.zeros(real.sum(), dtype=np.int64),
        spans=(),
        word_spans=(),
        truncated=0,
    )
    rows = len(targets)
    tensors = (torch.tensor(np.tile(array, (rows, 1))) for array in (ids, types, attention, real))
    return Batch((encoding,) * rows, *tensors, torch.tensor(list(targets)), (0,) * rows)


def reference_values(
    golden: dict[str, np.ndarray], name: str, classes: int, key: str
) -> np.ndarray:
    """Stack a stored row over classes; the reference overwrote entry 0, so it is left out."""
    rows = [golden[f"{name}_nl{classes}/f64/c{c}/{key}"] for c in range(classes)]
    return np.stack(rows)[:, 1:]


def relative(found: torch.Tensor, expected: np.ndarray) -> float:
    """Return the largest difference, each row's as a share of that row's largest value."""
    found = found.detach().double().numpy()
    assert found.shape == expected.shape
    return float(np.max(np.abs(found - expected).max(-1) / np.abs(expected).max(-1)))
