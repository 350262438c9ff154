"""The human rationale as an explainer: a marked word scores 1, whatever its pieces."""

from __future__ import annotations

from typing import Any

import torch

from faithbench.core.types import Example
from faithbench.explainers.controls import Human, Random
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.plausibility import auprc, iou_f1, saliency_accuracy
from faithbench.metrics.word_scores import with_mean_share, words_of
from faithbench.models.encoding import collate, encode
from faithbench.models.session import Session
from faithbench.run.attribute import attribute


def test_marked_words_score_one(tiny_model: Any) -> None:
    model = tiny_model()
    examples = [
        Example("a", "goodly film is dull", 0, rationale=((0, 6), (15, 19))),
        Example("b", "good film", 0),
        Example("c", "goodlys plots", 0, rationale=((4, 6),)),
    ]
    encodings = [encode(model, example) for example in examples]
    scores = Human()(Session(model), collate(model, encodings, [0, 0, 0], [0, 0, 0]))
    # [CLS] good ##ly film is dull [SEP]
    assert scores.tolist() == [
        [0, 1 / 2, 1 / 2, 0, 0, 1, 0],
        [0] * 7,
        # [CLS] good ##ly ##s plot ##s [SEP]: an annotator marked one piece of three.
        [0, 0, 1 / 3, 0, 0, 0, 0],
    ]
    assert scores.dtype == torch.float64


def test_only_evidence_is_marked(tiny_model: Any) -> None:
    model = tiny_model()
    example = Example("a", "good film", 0, "good film", rationale=((0, 9),))
    sums = {}
    for evidence in ("text", "text_b", "both"):
        batch = collate(model, [encode(model, example, evidence)], [0], [0])
        sums[evidence] = Human()(Session(model), batch).sum().item()
    assert sums == {"text": 2, "text_b": 0, "both": 2}


def test_it_is_the_ceiling_and_costs_nothing(tiny_model: Any) -> None:
    model = tiny_model()
    example = Example("a", "the goodlys plot is not very dull", 0, rationale=((4, 11), (29, 33)))
    encoding = encode(model, example)
    (chosen,) = find_explainers("human")
    (found,) = attribute(Session(model), chosen, collate(model, [encoding], [0], [0]))
    assert (found.forwards, found.backwards) == (0, 0)
    (words,) = with_mean_share([words_of(encoding, found.scores)])
    assert words.share == 2 / 7
    assert auprc(words) == iou_f1(words) == saliency_accuracy(words) == 1


TEXTS = ["good film", "the plot is not very dull , and the film is great .", "a bad film ."]


def scores(model: Any, batch: Any, rows: list[int], seeds: list[int]) -> torch.Tensor:
    encodings = [batch.encodings[row] for row in rows]
    return Random()(Session(model), collate(model, encodings, [0] * len(rows), seeds))


def test_seeded_per_example(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    found = scores(model, batch_of(model, TEXTS), [0, 0, 0], [7, 8, 7])
    assert torch.equal(found[0], found[2])
    assert not torch.equal(found[0], found[1])
    # Drawn by torch's own generator, in float64.
    first = torch.rand(4, generator=torch.Generator().manual_seed(7), dtype=torch.float64)
    assert torch.equal(found[0], first)
    assert ((found >= 0) & (found < 1)).all()


def test_batch_order_and_padding_change_nothing(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    together = scores(model, batch, [2, 0, 1], [12, 10, 11])
    assert together.shape == (3, 15)
    for row, example in enumerate([2, 0, 1]):
        alone = scores(model, batch, [example], [10 + example])[0]
        assert torch.equal(together[row, : len(alone)], alone)
        assert not together[row, len(alone) :].any()


def test_the_global_seed_is_neither_read_nor_moved(tiny_model: Any, batch_of: Any) -> None:
    model = tiny_model("bert")
    batch = batch_of(model, TEXTS)
    torch.manual_seed(1)
    expected = torch.rand(1)
    torch.manual_seed(1)
    found = scores(model, batch, [0], [3])
    assert torch.equal(torch.rand(1), expected)
    torch.manual_seed(2)
    assert torch.equal(scores(model, batch, [0], [3]), found)
