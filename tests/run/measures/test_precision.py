"""Half precision is compared with float32, on full and on half-masked inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from faithbench.core.types import Example
from faithbench.data.dataset import Dataset
from faithbench.models.encoding import encode
from faithbench.models.model import Model
from faithbench.run.measures.precision import precision_shift
from tests.support.builders import in_precision, make_task

TEXTS = ["good film", "the plot is dull and bad", "a very great film , and not dull", "dull"]


def data() -> Dataset:
    examples = tuple(Example(f"e{i}", text, 0) for i, text in enumerate(TEXTS))
    return Dataset(make_task(), "folder", "test", examples, "d" * 64, "none", False)


def test_the_same_precision_moves_nothing(tiny_model: Any) -> None:
    model = in_precision(tiny_model(), torch.float32)
    found = precision_shift(model, model, data())
    assert (found.inputs, found.largest_shift, found.mean_shift) == (8, 0.0, 0.0)
    assert found.changed_predictions == 0


def test_bfloat16_by_hand(tiny_model: Any) -> None:
    """Eight bits of mantissa move probabilities by about 1e-3, never by 1e-1."""
    exact, half = (in_precision(tiny_model(), d) for d in (torch.float32, torch.bfloat16))
    found = precision_shift(exact, half, data())
    moved, changed = [], 0
    for example in data().examples:
        encoding = encode(exact, example)
        masked = encoding.ids.copy()
        masked[1:-1:2] = exact.tokenizer.mask_token_id
        target = int(probabilities(exact, encoding.ids).argmax())
        for ids in (encoding.ids, masked):
            one, other = probabilities(exact, ids), probabilities(half, ids)
            moved.append(abs(one[target] - other[target]))
            changed += (one.argmax() == target) != (other.argmax() == target)
    assert found.inputs == 8
    # Some processors add up bfloat16 in another order in a batch than alone.
    assert abs(found.largest_shift - max(moved)) < 2e-4
    assert abs(found.mean_shift - float(np.mean(moved))) < 2e-4
    assert found.changed_predictions == changed
    assert 1e-5 < found.largest_shift < 0.1


def probabilities(model: Model, ids: Any) -> Any:
    with torch.no_grad():
        logits = model.network(torch.tensor(ids)[None]).logits[0]
    return torch.softmax(logits.double(), dim=-1).numpy()
