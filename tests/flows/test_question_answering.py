"""Question answering: start and end are explained apart, against published code, and added."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.types import Batch, Example
from faithbench.explainers.attention import AttCat, Gae
from faithbench.explainers.lrp import Lrp
from faithbench.models.engine import Engine
from faithbench.models.model import Model, build_model, quieten
from faithbench.models.session import Session
from faithbench.run.attribute import explain
from faithbench.testing.conformance import batch_of
from faithbench.testing.tiny import ARCHITECTURES, tiny_model

GOLDEN = Path(__file__).parents[1] / "reference" / "golden"
INPUTS = ("s0_len3", "s1_len8", "s2_len12", "s3_len24", "s4_len64", "s5_pair17")


@cache
def reference(name: str, tokenizer: Any) -> Model:
    from transformers import AutoModelForQuestionAnswering

    quieten()
    network = AutoModelForQuestionAnswering.from_pretrained(GOLDEN / "models" / name)
    return build_model(name, network.double(), tokenizer, labels=())


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("architecture", ["bert_qa", "gpt2_qa_gelu"])
def test_attcat_of_published_code(architecture: str, name: str, tokenizer: Any) -> None:
    model = reference(architecture, tokenizer)
    with np.load(GOLDEN / "qa.npz") as file:
        stored = {k: file[f"{architecture}_{name}/{k}"] for k in _KEYS}
    ids, types = (torch.tensor(stored[k]).long()[None] for k in ("input_ids", "token_type_ids"))
    ones = torch.ones_like(ids)
    for head in ("start", "end"):
        logits = stored[f"f64/hf_{head}_logits"]
        target = torch.tensor([int(logits.argmax())])
        batch = Batch((), ids, types, ones, ones.bool(), target, (0,), output=f"{head}_logits")
        session = Session(model)
        found = AttCat()(session, batch)[0].numpy()
        expected = stored[f"f64/{head}/AttCAT"]
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())
        session.drop_passes()


_KEYS = (
    "input_ids",
    "token_type_ids",
    *(f"f64/hf_{h}_logits" for h in ("start", "end")),
    *(f"f64/{h}/AttCAT" for h in ("start", "end")),
)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_start_and_end_are_added(architecture: str) -> None:
    model = tiny_model(architecture, qa=True)
    batch = batch_of(model, [Example("a", "the film is not good", 0, "a plot")])
    session = Session(model)
    whole = explain(session, Gae(), batch)
    parts = [
        Gae()(session, replace(batch, output=head, targets=batch.targets[:, column]))
        for column, head in enumerate(("start_logits", "end_logits"))
    ]
    torch.testing.assert_close(whole, parts[0] + parts[1])
    assert not torch.allclose(parts[0], parts[1])
    # Relevance 1 starts at each of the two positions.
    assert explain(session, Lrp(precision="float64"), batch).sum().item() == pytest.approx(
        2, abs=1e-9
    )
    session.drop_passes()


def test_the_row_that_is_read_is_the_predicted_position() -> None:
    from faithbench.explainers.passes.capture import capture

    model = tiny_model("bert", qa=True)
    batch = batch_of(model, [Example("a", "the film is not good", 0, "a plot")])
    # [CLS] a plot [SEP] the film is not good [SEP]
    session = Session(model)
    assert [capture(session, part).position.item() for part in session.per_output(batch)] == [
        7,
        8,
    ]
    session.drop_passes()


def test_the_engine_answers_for_positions() -> None:
    """Padding takes no part: a short row answers the same beside a longer one."""
    model = tiny_model("bert", qa=True)
    short, long = ((np.arange(2, n), np.zeros(n - 2, dtype=np.int64)) for n in (7, 12))
    engine = Engine(model)
    both = engine.log_probabilities([short, long], "end_logits")
    alone = Engine(model).log_probabilities([short], "end_logits")
    assert both.shape == (2, model.max_tokens)
    np.testing.assert_allclose(both[0], alone[0], atol=1e-12)
    np.testing.assert_allclose(np.exp(both).sum(axis=1), 1)
    assert np.isneginf(both[0, 5:]).all()
    start = engine.log_probabilities([short], "start_logits")
    assert not np.allclose(start[0, :5], alone[0, :5])
