"""Occlusion and leave-one-out: by hand, against captum, and one row at a time."""

from __future__ import annotations

import copy
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.perturbation import LeaveOneOut, Occlusion, windows
from faithbench.models.encoding import collate
from faithbench.models.engine import Engine
from faithbench.models.meter import Cost
from faithbench.models.model import Model, build_model
from faithbench.models.session import Session
from tests.support.architectures import (
    ARCHITECTURES,
    INPUTS,
    MODELS,
    reference_batch,
    reference_network,
    relative,
)

TEXTS = [
    "good film",
    "the plot is not very dull , and the film is great .",
    "a badly plot .",
    "bad",
]
WEIGHTS = {"good": 0.2, "bad": -0.1, "great": 0.05, "not": -0.15}


class Additive(torch.nn.Module):
    """A bag of words whose probability of class 1 is 0.5 plus the weights of its words."""

    def __init__(self, weights: dict[int, float], vocabulary: int) -> None:
        super().__init__()
        table = torch.zeros(vocabulary, dtype=torch.float64)
        for token, weight in weights.items():
            table[token] = weight
        self.table = torch.nn.Parameter(table)
        self.config = SimpleNamespace(pad_token_id=0, model_type="bag")
        self.device, self.dtype = table.device, table.dtype

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> SimpleNamespace:
        share = 0.5 + (self.table[input_ids] * attention_mask).sum(dim=1)
        return SimpleNamespace(logits=torch.stack([1 - share, share], dim=1).log())


def additive_model(tokenizer: Any, weights: dict[str, float] = WEIGHTS) -> Model:
    known = {tokenizer.convert_tokens_to_ids(word): weight for word, weight in weights.items()}
    return build_model("bag", Additive(known, len(tokenizer)), tokenizer, labels=("no", "yes"))


def logit_model(classes: int = 2) -> Model:
    """The reference BERT with one more class of constant logit 40, which makes each other
    class's log-probability its own logit - 40, to rounding."""
    from transformers import BertTokenizerFast

    network = copy.deepcopy(reference_network(classes))
    old, new = network.classifier, torch.nn.Linear(32, classes + 1, dtype=torch.float64)
    with torch.no_grad():
        new.weight.copy_(torch.cat([old.weight, torch.zeros(1, 32)]))
        new.bias.copy_(torch.cat([old.bias, torch.tensor([40.0])]))
    network.classifier = new
    tokenizer = BertTokenizerFast.from_pretrained(MODELS.parent)
    assert tokenizer.mask_token_id == 103
    return build_model("reference", network, tokenizer, labels=tuple("abcd"[: classes + 1]))


def one(model: Model, batch: Batch, row: int) -> Batch:
    """Return the batch of one example, and make the engine forget."""
    session = Session(model)
    session.clear()
    seed, target = batch.seeds[row], int(batch.targets[row])
    return collate(model, [batch.encodings[row]], [target], [seed])


def probability(model: Model, ids: list[int], types: list[int], target: int) -> float:
    """Ask the network itself, one unpadded row at a time."""
    inputs = {"input_ids": torch.tensor([ids])}
    if getattr(model.network.config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = torch.tensor([types])
    with torch.no_grad():
        return float(model.network(**inputs).logits.softmax(dim=-1)[0, target])


def by_hand(model: Model, batch: Batch, row: int, *, delete: bool) -> np.ndarray:
    encoding, target = batch.encodings[row], int(batch.targets[row])
    ids, types = encoding.ids.tolist(), encoding.types.tolist()
    full = probability(model, ids, types, target)
    scores = np.zeros(batch.ids.shape[1])
    for i in np.flatnonzero(encoding.erasable):
        middle = [] if delete else [model.tokenizer.mask_token_id]
        segment = [] if delete else [types[i]]
        scores[i] = full - probability(
            model, ids[:i] + middle + ids[i + 1 :], types[:i] + segment + types[i + 1 :], target
        )
    return scores


@pytest.mark.parametrize("explainer", [Occlusion(), LeaveOneOut()])
def test_the_weights_of_a_bag_of_words(explainer: Any, tokenizer: Any, batch_of: Any) -> None:
    model = additive_model(tokenizer)
    batch = batch_of(model, ["good film bad", "great"], targets=[1, 0])
    expected = [[0, 0.2, 0, -0.1, 0], [0, -0.05, 0, 0, 0]]
    np.testing.assert_allclose(explainer(Session(model), batch), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", [Occlusion, LeaveOneOut])
def test_a_window_is_shared_by_its_tokens(kind: Any, tokenizer: Any, batch_of: Any) -> None:
    model = additive_model(tokenizer)
    batch = batch_of(model, ["good film bad", "great"], targets=[1, 1])
    # good film falls by 0.2, film bad by -0.1; film is in both.
    expected = [[0, 0.2, 0.05, -0.1, 0], [0, 0.05, 0, 0, 0]]
    np.testing.assert_allclose(kind(window=2)(Session(model), batch), expected, rtol=0, atol=1e-12)
    whole = kind(window=9)(Session(model), batch)
    np.testing.assert_allclose(whole[0, 1:4], [0.1, 0.1, 0.1], rtol=0, atol=1e-12)


def test_windows() -> None:
    assert windows(3, 1).tolist() == np.eye(3, dtype=bool).tolist()
    assert windows(4, 3).astype(int).tolist() == [[1, 1, 1, 0], [0, 1, 1, 1]]
    assert windows(2, 5).astype(int).tolist() == [[1, 1]]


@pytest.mark.parametrize("kind", [Occlusion, LeaveOneOut])
def test_log_probability(kind: Any, tokenizer: Any, batch_of: Any) -> None:
    model = additive_model(tokenizer)
    found = kind(output="log-probability")(
        Session(model), batch_of(model, ["good film bad"], targets=[1])
    )
    expected = np.log(0.6) - np.log([0.4, 0.6, 0.7])  # without good, film, bad
    np.testing.assert_allclose(found[0, 1:4], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", INPUTS)
def test_captum_values(name: str, golden: Any) -> None:
    """captum's stored logit drops, [CLS] and [SEP] replaced too, padding left out."""
    with np.load(MODELS.parent / "captum.npz") as file:
        stored = {key: file[f"{name}_nl2/{key}_ids_base103"] for key in ("occlusion", "ablation")}
        target = int(file[f"{name}_nl2/target"])
    batch = reference_batch(golden, name, 2, targets=[target])
    found = Occlusion(output="log-probability")(Session(logit_model()), batch)
    for expected in stored.values():
        assert relative(found, expected[None]) < 1e-5


@pytest.mark.parametrize("window", [1, 3])
def test_captum_windows(window: int, golden: Any) -> None:
    """The live library, which answers in float32: probabilities and overlapping windows."""
    from captum.attr import Occlusion as Captum

    model = logit_model()
    batch = reference_batch(golden, "s3_len24", 2, targets=[1])

    def forward(ids: torch.Tensor) -> torch.Tensor:
        return model.network(ids).logits.softmax(dim=-1)

    expected = Captum(forward).attribute(batch.ids, (window,), target=1, baselines=103)
    found = Occlusion(window=window)(Session(model), batch)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize(("explainer", "delete"), [(Occlusion(), False), (LeaveOneOut(), True)])
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_one_row_at_a_time(
    architecture: str, explainer: Any, delete: bool, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model(architecture, 3)
    batch = batch_of(model, TEXTS, [0, 1, 2, 1])
    session = Session(model)
    session.clear()
    together = explainer(session, batch)
    assert together.shape == batch.ids.shape
    for row, encoding in enumerate(batch.encodings):
        expected = by_hand(model, batch, row, delete=delete)
        np.testing.assert_allclose(together[row], expected, rtol=0, atol=1e-9)
        alone = explainer(session, one(model, batch, row))[0]
        tokens = len(encoding.ids)
        np.testing.assert_allclose(together[row, :tokens], alone, rtol=0, atol=1e-9)


@pytest.mark.parametrize(("explainer", "delete"), [(Occlusion(), False), (LeaveOneOut(), True)])
@pytest.mark.parametrize("evidence", ["text", "text_b", "both"])
def test_only_evidence_is_erased(
    explainer: Any, delete: bool, evidence: str, tiny_model: Any, batch_of: Any
) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, ["good film || the plot is dull"], [1], evidence)
    found = explainer(Session(model), batch)
    erasable = {"text": [1, 2], "text_b": [4, 5, 6, 7], "both": [1, 2, 4, 5, 6, 7]}[evidence]
    assert found[0].nonzero()[:, 0].tolist() == erasable
    expected = by_hand(model, batch, 0, delete=delete)
    np.testing.assert_allclose(found[0], expected, rtol=0, atol=1e-9)


def test_rows_are_asked_in_one_call_and_counted(
    tiny_model: Any, batch_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, ["good film", "the good good plot"])
    session = Session(model)
    session.clear()
    calls, ask = [], Engine.log_probabilities

    def spy(self: Engine, rows: Any, output: str = "logits") -> Any:
        calls.append(len(rows))
        return ask(self, rows, output)

    monkeypatch.setattr(Engine, "log_probabilities", spy)
    before = session.meter.total
    Occlusion()(session, batch)
    # Each text in full, then 2 and 4 rows.
    assert calls == [8]
    assert session.meter.since(before) == Cost(forwards=8, backwards=0, passes=1)
    before, distinct = session.meter.total, session.engine.distinct
    LeaveOneOut()(session, batch)
    assert calls == [8, 8]
    # Either `good` leaves the same text; both full texts are remembered.
    assert session.meter.since(before).forwards == 7
    assert session.engine.distinct - distinct == 5


def test_repeated_tokens(tiny_model: Any, batch_of: Any) -> None:
    """Deleting either of two equal neighbours leaves the same text; masking does not."""
    model = tiny_model("bert")
    batch = batch_of(model, ["very very good"])
    deleted, masked = LeaveOneOut()(Session(model), batch)[0], Occlusion()(Session(model), batch)[0]
    assert deleted[1] == deleted[2]
    assert masked[1] != masked[2]


def test_a_text_that_deletion_would_leave_empty(tiny_model: Any, batch_of: Any) -> None:
    """Without special tokens the only token is masked instead."""
    model = tiny_model("gpt2")
    (encoding,) = batch_of(model, ["good"]).encodings
    parts = {key: getattr(encoding, key)[1:2] for key in ("ids", "types", "erasable")}
    batch = collate(model, [replace(encoding, **parts)], [0], [0])
    found = LeaveOneOut()(Session(model), batch)
    assert found.shape == (1, 1) and found[0, 0] != 0
    assert torch.equal(found, Occlusion()(Session(model), batch))


@pytest.mark.parametrize("kind", [Occlusion, LeaveOneOut])
def test_an_answer_keeps_its_token(kind: Any, tiny_model: Any, batch_of: Any) -> None:
    """Of a question answerer the target is a position, which moves as tokens before it go."""
    from transformers import BertForQuestionAnswering

    torch.manual_seed(0)
    network = BertForQuestionAnswering(tiny_model("bert").network.config).double()
    model = build_model("answerer", network, tiny_model("bert").tokenizer, labels=())
    batch = batch_of(model, ["the plot is dull || good film"], evidence="text")
    (encoding,) = batch.encodings
    erasable = encoding.erasable.copy()
    erasable[6] = False  # [CLS] good film [SEP] the plot is dull [SEP]
    batch = replace(
        batch,
        encodings=(replace(encoding, erasable=erasable),),
        targets=torch.tensor([6]),
        output="start_logits",
    )

    def start(ids: torch.Tensor, types: torch.Tensor, position: int) -> float:
        with torch.no_grad():
            logits = network(input_ids=ids, token_type_ids=types).start_logits
        return float(logits.softmax(dim=-1)[0, position])

    full = start(batch.ids, batch.types, 6)
    expected = np.zeros(9)
    for i in (4, 5, 7):
        if kind is Occlusion:
            ids = batch.ids.clone()
            ids[0, i] = model.tokenizer.mask_token_id
            expected[i] = full - start(ids, batch.types, 6)
        else:
            rest = [j for j in range(9) if j != i]
            position = rest.index(6)
            expected[i] = full - start(batch.ids[:, rest], batch.types[:, rest], position)
    np.testing.assert_allclose(kind()(Session(model), batch)[0], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        (Occlusion, {"window": 0}, "occlusion: window is at least 1 token, found 0"),
        (LeaveOneOut, {"window": -1}, "leave-one-out: window is at least 1 token, found -1"),
        (Occlusion, {"output": "logprobability"}, "did you mean 'log-probability'?"),
        (LeaveOneOut, {"output": "loss"}, "no output of leave-one-out named 'loss'"),
    ],
)
def test_settings_that_make_no_sense(kind: Any, settings: Any, message: str) -> None:
    with pytest.raises(FaithbenchError) as error:
        kind(**settings)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
