"""Multiple choice from a task file to records, against transformers' own forward pass."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.types import Example
from faithbench.explainers.selection import find_explainers
from faithbench.models.encoding import collate, encode
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.records.record import read
from faithbench.run.attribute import attribute
from faithbench.testing import tiny
from tests.support.builders import put
from tests.support.commands import Call, complaint

TASK = """\
name = "mini"
version = 1
title = "What comes next?"
kind = "multiple-choice"
labels = ["A", "B", "C"]
[folder]
name = "mini"
splits = { test = "test", train = "test" }
derive.test = { by = "text", shares = { test = 50, train = 50 } }
columns = { text = "context", choices = "endings.text", label = "gold" }
"""
EXAMPLES = [
    Example("c0", "the film is very good and dull", 1, choices=("good plot", "a great film", "w1")),
    Example("c1", "not a dull plot", 0, choices=("w3 w4 w5 w6", "bad")),
]
ARCHITECTURES = ("bert", "roberta", "distilbert", "electra", "albert")


def log_odds(model: Any, example: Example, embeddings: torch.Tensor, target: int) -> torch.Tensor:
    """Return a choice's log-odds by transformers alone, the text's embeddings as given."""
    size = embeddings.shape[0]
    inputs = model.tokenizer(
        [example.text] * len(example.choices), list(example.choices),
        padding=True, return_tensors="pt", return_token_type_ids=True,
    )  # fmt: skip
    table = model.network.get_input_embeddings()(inputs["input_ids"])
    placed = torch.cat(
        [table[:, :1], embeddings.expand(len(table), -1, -1), table[:, size + 1 :]], 1
    )
    del inputs["input_ids"]
    given = {name: tensor[None] for name, tensor in inputs.items()}
    logits = model.network(inputs_embeds=placed[None], **given).logits[0]
    others = torch.cat([logits[:target], logits[target + 1 :]])
    return logits[target] - others.logsumexp(dim=0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_probability_is_that_of_transformers(architecture: str) -> None:
    model = tiny.tiny_model(architecture, 3, choices=True)
    assert model.kind.name == "multiple-choice"
    with Session(model) as session:
        found = predictions(session.engine, [encode(model, example) for example in EXAMPLES])
    for example, prediction in zip(EXAMPLES, found, strict=True):
        inputs = model.tokenizer(
            [example.text] * len(example.choices), list(example.choices), padding=True,
            return_tensors="pt", return_token_type_ids=architecture != "distilbert",
        )  # fmt: skip
        with torch.no_grad():
            logits = model.network(**{name: t[None] for name, t in inputs.items()}).logits[0]
        assert prediction.target == int(logits.argmax())
        expected = float(logits.log_softmax(dim=-1).max())
        assert prediction.log_probability == pytest.approx(expected, abs=1e-9)


def test_gradients_are_those_of_the_log_odds() -> None:
    """The text counts in the rows of all choices, the choice's own and its rivals'."""
    model = tiny.tiny_model("bert", 3, choices=True)
    example, target = EXAMPLES[0], 1
    encoding = encode(model, example)
    words = torch.tensor(encoding.ids[encoding.erasable])
    leaf = model.network.get_input_embeddings()(words).detach().requires_grad_()
    (gradient,) = torch.autograd.grad(log_odds(model, example, leaf, target), leaf)
    with Session(model) as session:
        batch = collate(model, [encoding], [target], [0])
        found = {
            one.name: attribute(session, one, batch)[0]
            for one in find_explainers("gradient,input-x-gradient,integrated-gradients")
        }
    by_hand = (gradient * leaf).sum(dim=1).detach().numpy()
    np.testing.assert_allclose(found["input-x-gradient"].scores, by_hand, atol=1e-12)
    sizes = gradient.norm(dim=1).numpy()
    np.testing.assert_allclose(found["gradient"].scores, sizes, atol=1e-12)
    pad = model.network.get_input_embeddings()(torch.zeros_like(words))
    with torch.no_grad():
        change = log_odds(model, example, leaf, target) - log_odds(model, example, pad, target)
    assert found["integrated-gradients"].scores.sum() == pytest.approx(float(change), abs=1e-6)
    assert abs(found["integrated-gradients"].gap or 0) < 1e-6
    assert (found["gradient"].forwards, found["gradient"].backwards) == (3, 3)


def test_occlusion_masks_a_token_in_all_rows() -> None:
    model = tiny.tiny_model("bert", 3, choices=True)
    encoding = encode(model, EXAMPLES[1])
    with Session(model) as session:
        batch = collate(model, [encoding], [0], [0])
        (one,) = find_explainers("occlusion:output=log-probability")
        found = attribute(session, one, batch)[0]
    masked = Example("m", "not a [X] plot", 0, choices=EXAMPLES[1].choices)
    values = []
    for text in (EXAMPLES[1].text, masked.text.replace("[X]", "[MASK]")):
        inputs = model.tokenizer(
            [text] * 2, list(EXAMPLES[1].choices), padding=True, return_tensors="pt",
            return_token_type_ids=True, split_special_tokens=False,
        )  # fmt: skip
        with torch.no_grad():
            logits = model.network(**{name: t[None] for name, t in inputs.items()}).logits[0]
        values.append(float(logits.log_softmax(dim=-1)[0]))
    assert found.scores[2] == pytest.approx(values[0] - values[1], abs=1e-9)
    assert found.forwards == 2 * 5


def test_from_a_task_file_to_records(call: Call, tmp_path: Path) -> None:
    (tmp_path / "mini.toml").write_text(TASK)
    rows = [
        {
            "context": f"the film is {word} and w{number}",
            "text": f"t{number}",
            "endings": {"text": ["good plot", "a dull film", f"w{number}"][: 2 + number % 2]},
            "gold": number % 2,
        }
        for number, word in enumerate(["good", "bad", "great", "dull"] * 3)
    ]
    put(tmp_path, rows)
    model = tiny.tiny_model("bert", 3, torch.float32, choices=True)
    model.network.save_pretrained(tmp_path / "model")
    model.tokenizer.save_pretrained(tmp_path / "model")
    words = ("--task", "mini.toml", "--data", tmp_path, "--model", tmp_path / "model")
    names = "occlusion,lime:samples=20,gradient,attention,attn-lrp,lrp-mask:mask=ones,alti,random"
    said = call(
        "run", *words, "--device", "cpu", "--explainer", names, "--limit", "3", "--seeds", "1"
    )
    assert said.code == 0, said.err
    found = (tmp_path / "results").glob("mini*/**/*.json")
    records = [read(path) for path in found if not path.parent.name.startswith(".")]
    assert len(records) == 8
    for record in records:
        aopc = record.metrics["aopc"]
        assert aopc.n == 3 and aopc.mean is not None and math.isfinite(aopc.mean)
    refused = complaint(call("run", *words, "--explainer", "random", "--long", "window"))
    assert "of kind multiple-choice, whose predictions --long window cannot join" in refused
    refused = complaint(call("explain", *words[:2], *words[4:], "--text", "good"))
    assert "has no choices" in refused
    for command in ("train", "heads"):
        said = call(command, *words[:4])
        assert "task mini is of kind multiple-choice, " in complaint(said)
