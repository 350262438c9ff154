"""The human rationale as an explainer: a marked word scores 1, whatever its pieces."""

from __future__ import annotations

from typing import Any

import torch

from faithbench.attribution import attribute
from faithbench.encoding import collate, encode
from faithbench.explainers.human import Human
from faithbench.plausibility import auprc, iou_f1, mean_rationale_share, saliency_accuracy
from faithbench.selection import find_explainers
from faithbench.types import Example
from faithbench.word_scores import words_of


def test_marked_words_score_one(tiny_model: Any) -> None:
    model = tiny_model()
    examples = [
        Example("a", "goodly film is dull", 0, rationale=((0, 6), (15, 19))),
        Example("b", "good film", 0),
        Example("c", "goodlys plots", 0, rationale=((4, 6),)),
    ]
    encodings = [encode(model, example) for example in examples]
    scores = Human()(model, collate(model, encodings, [0, 0, 0], [0, 0, 0]))
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
        sums[evidence] = Human()(model, batch).sum().item()
    assert sums == {"text": 2, "text_b": 0, "both": 2}


def test_it_is_the_ceiling_and_costs_nothing(tiny_model: Any) -> None:
    model = tiny_model()
    example = Example("a", "the goodlys plot is not very dull", 0, rationale=((4, 11), (29, 33)))
    encoding = encode(model, example)
    (chosen,) = find_explainers("human")
    (found,) = attribute(model, chosen, collate(model, [encoding], [0], [0]))
    assert (found.forwards, found.backwards) == (0, 0)
    words = words_of(encoding, found.scores)
    share = mean_rationale_share([words])
    assert share == 2 / 7
    assert auprc(words) == iou_f1(words, share) == saliency_accuracy(words) == 1
