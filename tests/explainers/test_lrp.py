"""Masked relevance: against published code, as a product written out, and per example."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Batch
from faithbench.explainers.lrp import AttnLrp, Lrp, LrpMask, LrpPartial, LrpRollout
from faithbench.explainers.passes.capture import run_capture
from faithbench.explainers.passes.heads import (
    HeadStatistics,
    PositionFacts,
    Thresholds,
    cached_heads,
    heads_sha256,
    write_heads,
)
from faithbench.explainers.passes.lrp import run_relevance
from faithbench.explainers.passes.lrp_rules import HeadRule
from faithbench.explainers.protocol import is_stochastic
from faithbench.explainers.selection import find_explainers
from faithbench.models.model import Model, build_model
from faithbench.models.session import Session
from faithbench.testing.conformance import check_explainer
from tests.support.architectures import (
    ARCHITECTURES,
    CASES,
    reference_batch,
    reference_network,
    reference_values,
    relative,
)

WORDS = [
    "good",
    "bad",
    "film",
    "the",
    "a",
    "plot",
    "is",
    "not",
    "very",
    "great",
    "dull",
    "and",
    "filmly",
    ",",
    ".",
]


def texts(count: int) -> list[str]:
    """Return sentences of 2 to `count` + 1 words."""
    draw = random.Random(3)
    return [" ".join(draw.choices(WORDS, k=2 + i)) for i in range(count)]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep head statistics in a folder of this test's own."""
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path))
    return tmp_path


def store_mask(model: Model, mask: list[list[int]], calibrated: Thresholds = (0.1, 0.5)) -> None:
    """Store made-up statistics by which `mask=positional` selects this very mask."""
    facts = HeadStatistics(
        task="mini",
        model=model.name,
        weights_sha256=model.weights_sha256,
        parser="none",
        split="train",
        sentences=1,
        data_sha256="",
        relations={},
        positions=PositionFacts(
            rows=1,
            best_offset=tuple((1,) * len(row) for row in mask),
            share=tuple(tuple(float(head) for head in row) for row in mask),
        ),
        thresholds={"paper": (0.1, 0.8), "calibrated": calibrated},
    )
    write_heads(facts, cached_heads(model))


def written_out(
    model: Model, batch: Batch, groups: list[list[list[int]]] | None, kept: tuple[int, ...]
) -> np.ndarray:
    """Return the read row of the product of I + mean over heads of max(0, G * R), as defined.

    Only the blocks in `kept` take part, and no row is normalised (Song et al., Eq. 10-11).
    """
    network = model.eager(torch.float64)
    seen = run_capture(network, batch)
    rule = None if groups is None else HeadRule(torch.tensor(groups))
    found = run_relevance(network, batch, rule)
    size = batch.ids.shape[1]
    rows = []
    for example in range(len(batch.ids)):
        reached = np.zeros(size)
        reached[int(seen.position[example])] = 1.0
        for block in sorted(kept, reverse=True):
            gradients = seen.attention_gradients[block][example].numpy()
            relevances = found.attentions[block][example].numpy()
            step = np.eye(size)
            for gradient, relevance in zip(gradients, relevances, strict=True):
                step += np.maximum(0, gradient * relevance) / len(gradients)
            reached = reached @ step
        rows.append(reached)
    return np.stack(rows)


# Against the published code


@pytest.mark.parametrize("kind", ["ones", "random", "sparse"])
@pytest.mark.parametrize(("name", "classes"), CASES)
def test_released_setting_is_the_published_code(
    name: str,
    classes: int,
    kind: str,
    golden: Any,
    golden_masks: Any,
    tokenizer: Any,
    home: Path,
) -> None:
    model = build_model(
        "reference",
        reference_network(classes),
        tokenizer,
        labels=tuple("abc"[:classes]),
        weights_sha256=f"golden-{classes}",
    )
    store_mask(model, golden_masks[kind])
    batch = reference_batch(golden, name, classes)
    found = LrpMask(mask="positional", released=True)(Session(model), batch)
    expected = reference_values(golden, name, classes, f"ML/MGAE_{kind}")
    assert relative(found[:, 1:], expected) < 1e-3
    if kind == "ones":
        ones = LrpMask(mask="ones", released=True)(Session(model), batch)
        torch.testing.assert_close(ones, found, rtol=0, atol=0)


@pytest.mark.parametrize(("name", "classes"), CASES)
def test_unmasked_relevance_is_the_published_code(
    name: str, classes: int, golden: Any, tokenizer: Any
) -> None:
    model = build_model(
        "reference", reference_network(classes), tokenizer, labels=tuple("abc"[:classes])
    )
    batch = reference_batch(golden, name, classes)
    for explainer, key in (
        (Lrp(), "full_lrp"),
        (LrpPartial(), "partial_lrp"),
        (LrpRollout(), "transformer_attribution_l0"),
    ):
        expected = reference_values(golden, name, classes, f"TE/{key}")
        assert relative(explainer(Session(model), batch)[:, 1:], expected) < 1e-3, key
    torch.testing.assert_close(
        Lrp(precision="float64")(Session(model), batch).sum(1),
        torch.ones(classes, dtype=torch.float64),
        rtol=0,
        atol=1e-9,
    )


# The default, as the paper defines it


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_all_heads_are_the_plain_product(architecture: str, tiny_model: Any, batch_of: Any) -> None:
    """One group of all heads hands on what it was given: the mask changes nothing."""
    model = tiny_model(architecture)
    batch = batch_of(model, texts(5), [0, 1, 0, 1, 1])
    found = LrpMask(mask="ones", precision="float64")(Session(model), batch)
    assert found.shape == batch.ids.shape
    np.testing.assert_allclose(
        found.numpy(), written_out(model, batch, None, (0, 1)), rtol=1e-9, atol=1e-12
    )
    # The identity gives the read token 1 and the others nothing.
    assert (found >= 0).all()
    assert (found[torch.arange(5), run_capture(model.eager(), batch).position] >= 1).all()
    assert not found[batch.attention == 0].any()
    assert ((found > 0).sum(1) > 2).all()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("empty", [0, 1])
def test_a_block_without_heads_is_the_identity(
    architecture: str, empty: int, tiny_model: Any, batch_of: Any, home: Path
) -> None:
    model = tiny_model(architecture)
    mask = [[1, 0, 1, 1], [1, 0, 1, 1]]
    mask[empty] = [0, 0, 0, 0]
    store_mask(model, mask)
    batch = batch_of(model, texts(4), [0, 1, 0, 1])
    found = LrpMask(precision="float64")(Session(model), batch)
    np.testing.assert_allclose(
        found.numpy(), written_out(model, batch, [mask], (1 - empty,)), rtol=1e-9, atol=1e-12
    )
    ones = LrpMask(mask="ones", precision="float64")(Session(model), batch)
    assert (found - ones).abs().max() > 1e-6


# Random heads


def with_seeds(batch: Batch, seeds: Sequence[int]) -> Batch:
    return replace(batch, seeds=tuple(seeds))


def test_only_random_heads_are_drawn() -> None:
    assert is_stochastic(LrpMask(mask="random"))
    for mask in ("both", "syntactic", "positional", "ones"):
        assert not is_stochastic(LrpMask(mask=mask))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_random_heads_are_as_many_and_drawn_by_the_examples_seed(
    architecture: str, tiny_model: Any, batch_of: Any, home: Path
) -> None:
    """Two of eight heads leave whole blocks empty for some examples of the batch, not for all."""
    model = tiny_model(architecture)
    store_mask(model, [[1, 0, 0, 0], [0, 1, 0, 0]])
    targets, seeds = [i % 2 for i in range(12)], range(12)
    batch = with_seeds(batch_of(model, texts(12), targets), seeds)
    drawn = LrpMask(mask="random").weights(model, batch)
    assert {sum(map(sum, mask)) for (mask,) in drawn} == {2}
    open_blocks = {tuple(any(row) for row in mask) for (mask,) in drawn}
    assert open_blocks == {(True, True), (True, False), (False, True)}
    together = LrpMask(mask="random", precision="float64")(Session(model), batch)
    for row, (text, target, (mask,)) in enumerate(zip(texts(12), targets, drawn, strict=True)):
        single = with_seeds(batch_of(model, [text], [target]), [seeds[row]])
        kept = tuple(block for block in (0, 1) if any(mask[block]))
        expected = written_out(model, single, [mask], kept)[0]
        # As a mask of all examples, as its own in a batch of one, and among others.
        alone = LrpMask(mask="random", precision="float64")(Session(model), single)[0]
        np.testing.assert_allclose(alone.numpy(), expected, rtol=1e-9, atol=1e-12)
        one = together[row, : len(alone)]
        np.testing.assert_allclose(one.numpy(), expected, rtol=1e-7, atol=1e-9)


def test_random_heads_as_released(tiny_model: Any, batch_of: Any, home: Path) -> None:
    model = tiny_model("bert")
    store_mask(model, [[1, 0, 0, 0], [0, 1, 0, 0]])
    explainer = LrpMask(mask="random", released=True, precision="float64")
    batch = with_seeds(batch_of(model, texts(6)), range(6))
    together = explainer(Session(model), batch)
    for row, text in enumerate(texts(6)):
        alone = explainer(Session(model), with_seeds(batch_of(model, [text]), [row]))[0]
        torch.testing.assert_close(together[row, : len(alone)], alone, rtol=1e-7, atol=1e-9)


# No mask


def test_calibrated_can_be_no_mask(tiny_model: Any, batch_of: Any, home: Path) -> None:
    model = tiny_model("bert")
    store_mask(model, [[1, 0, 0, 0], [0, 1, 1, 0]], calibrated=None)
    batch = batch_of(model, texts(3))
    found = LrpMask()(Session(model), batch)
    assert torch.equal(found, LrpMask(mask="ones")(Session(model), batch))
    assert LrpMask().assets(model) == {"heads (no mask)": heads_sha256(model)}
    assert LrpMask(thresholds="paper").assets(model) == {"heads": heads_sha256(model)}
    with pytest.raises(FaithbenchError, match=r"is no mask.*; use mask=random,thresholds=paper"):
        LrpMask(mask="random")(Session(model), batch)
    assert LrpMask(mask="random", thresholds="paper")(Session(model), batch).shape == found.shape


# Per example, at either precision


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize(
    ("mask", "precision", "moved"),
    [("ones", "float64", 1e-9), ("positional", "float64", 1e-9), ("positional", "mixed", 1e-6)],
)
def test_sixteen_together_are_sixteen_alone(
    architecture: str,
    mask: str,
    precision: str,
    moved: float,
    tiny_model: Any,
    batch_of: Any,
    home: Path,
) -> None:
    model = tiny_model(architecture)
    store_mask(model, [[0, 1, 1, 0], [1, 0, 0, 1]])
    explainer = LrpMask(mask=mask, precision=precision)
    targets = [i % 2 for i in range(16)]
    together = explainer(Session(model), batch_of(model, texts(16), targets))
    assert len(together) == 16
    for row, (text, target) in enumerate(zip(texts(16), targets, strict=True)):
        alone = explainer(Session(model), batch_of(model, [text], [target]))[0]
        one = together[row, : len(alone)]
        torch.testing.assert_close(one, alone, rtol=0, atol=moved)
        assert ranking(one) == ranking(alone)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_float32_model(architecture: str, tiny_model: Any, batch_of: Any) -> None:
    """Relevance runs in float64, so only the gradients are rounded, and hardly differ."""
    model = tiny_model(architecture, dtype=torch.float32)
    targets = [i % 2 for i in range(16)]
    batch = batch_of(model, texts(16), targets)
    together = LrpMask(mask="ones")(Session(model), batch)
    assert together.dtype == torch.float64
    np.testing.assert_allclose(
        together.numpy(), written_out(model, batch, None, (0, 1)), rtol=1e-4, atol=1e-7
    )
    for row, (text, target) in enumerate(zip(texts(16), targets, strict=True)):
        alone = LrpMask(mask="ones")(Session(model), batch_of(model, [text], [target]))[0]
        one = together[row, : len(alone)]
        assert (one - alone).abs().max() < 1e-4 * alone.abs().max()
        assert ranking(one) == ranking(alone)


def ranking(scores: torch.Tensor) -> list[int]:
    return torch.argsort(scores, descending=True, stable=True).tolist()


def test_precision_is_a_setting(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert", dtype=torch.float32)
    batch = batch_of(model, texts(3))
    wide = LrpMask(mask="ones", precision="float64")(Session(model), batch)
    narrow = LrpMask(mask="ones", precision="float32")(Session(model), batch)
    mixed = LrpMask(mask="ones")(Session(model), batch)
    assert (wide.dtype, narrow.dtype, mixed.dtype) == (torch.float64, torch.float32, torch.float64)
    assert 0 < (wide - narrow).abs().max() < 1e-3
    assert 0 < (wide - mixed).abs().max() < 1e-5


# Settings, cost and what is left behind


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({"mask": "one"}, "mask 'one' is not one of both, syntactic, positional, random, ones"),
        ({"thresholds": "strict"}, "thresholds 'strict' are not among calibrated, paper"),
        ({"mask": "syntactic"}, "mask=syntactic with thresholds=calibrated selects no head"),
        (
            {"mask": "ones", "precision": "half"},
            "precision 'half' is not one of mixed, float64, float32",
        ),
    ],
)
def test_settings_that_mean_nothing(
    settings: dict[str, str], complaint: str, tiny_model: Any, batch_of: Any, home: Path
) -> None:
    model = tiny_model("bert")
    store_mask(model, [[1, 0, 0, 0], [0, 1, 1, 0]])
    text = ",".join(f"{key}={value}" for key, value in settings.items())
    (chosen,) = find_explainers(f"lrp-mask:{text}")
    assert chosen.explainer == LrpMask(**settings)
    with pytest.raises(FaithbenchError, match=complaint):
        chosen.explainer(Session(model), batch_of(model, ["good film"]))


def test_without_statistics_the_command_is_named(
    tiny_model: Any, batch_of: Any, home: Path
) -> None:
    model = tiny_model("bert")
    with pytest.raises(FaithbenchError, match=r"faithbench heads --task <task> --model tiny-bert"):
        LrpMask()(Session(model), batch_of(model, ["good film"]))


def test_statistics_are_an_asset(tiny_model: Any, home: Path) -> None:
    model = tiny_model("bert")
    assert LrpMask(mask="ones").assets(model) == {}
    store_mask(model, [[1, 0, 0, 0], [0, 1, 1, 0]])
    assert LrpMask().assets(model) == {"heads": heads_sha256(model)}


def test_cost_is_two_passes(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    session = Session(model)
    before = session.meter.total
    LrpMask(mask="ones")(session, batch_of(model, texts(3)))
    cost = session.meter.since(before)
    assert (cost.forwards, cost.backwards, cost.passes) == (6, 6, 2)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_model_is_left_as_it_was(architecture: str, tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model(architecture)
    probe, batch = batch_of(model, ["the film is good"], [1]), batch_of(model, texts(3))
    weights = {key: value.clone() for key, value in model.network.state_dict().items()}
    before = run_capture(model.eager(), probe)
    LrpMask(mask="ones")(Session(model), batch)
    after = run_capture(model.eager(), probe)
    assert torch.equal(after.logits, before.logits)
    assert torch.equal(after.embedding_gradients, before.embedding_gradients)
    assert all(torch.equal(value, weights[k]) for k, value in model.network.state_dict().items())
    assert not model.network.training


TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a badly plot ."]


def test_it_keeps_the_rules_of_explainers() -> None:
    check_explainer(AttnLrp())


def test_one_forward_and_one_backward_each(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    session = Session(model)
    start = session.meter.total
    scores = AttnLrp()(session, batch_of(model, TEXTS, [0, 1, 1]))
    spent = session.meter.since(start)
    assert (spent.forwards, spent.backwards) == (3, 3)
    assert not scores.requires_grad


def test_padding_scores_nothing(tiny_model: Any, batch_of: Any) -> None:
    for architecture in ("bert", "gpt2"):
        model = tiny_model(architecture)
        batch = batch_of(model, TEXTS, [0, 1, 1])
        assert not AttnLrp()(Session(model), batch)[batch.attention == 0].any()


def test_float32_agrees_with_float64(tiny_model: Any, batch_of: Any) -> None:
    narrow, wide = tiny_model("bert", 2, torch.float32), tiny_model("bert", 2, torch.float64)
    found = AttnLrp()(Session(narrow), batch_of(narrow, TEXTS, [0, 1, 1]))
    assert found.dtype == torch.float32
    expected = AttnLrp()(Session(wide), batch_of(wide, TEXTS, [0, 1, 1]))
    torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-6)
