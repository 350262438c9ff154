"""Explainers that erase tokens and watch the target's probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from faithbench.core.erasure import Operator, erase
from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Batch, Bools, Encoding, Floats, Ints, TokenRow
from faithbench.data.kinds.multiple_choice import among
from faithbench.models.session import Session

_OUTPUTS = ("probability", "log-probability")


@dataclass(frozen=True)
class Occlusion:
    """Replace tokens by the mask token and see how far the target falls.

    Zeiler & Fergus 2014; Li et al. 2016, Eq. 1: f(x) - f(x with the token masked), where f is
    the target's probability or, with `output` log-probability, its logarithm. `window` adjacent
    erasable tokens are masked together; a token's score is the mean over the windows that
    contain it. captum's Occlusion gives the same values, one text at a time.
    """

    window: int = 1
    output: str = "probability"

    def __post_init__(self) -> None:
        _check("occlusion", self.window, self.output)

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the signed drops."""
        return _drops(session, batch, "mask", self.window, self.output)


@dataclass(frozen=True)
class LeaveOneOut:
    """Delete tokens and see how far the target falls.

    Li et al. 2016, Eq. 1: f(x) - f(x without the token), where f is the target's probability
    or, with `output` log-probability, its logarithm; positions close up. `window` adjacent
    erasable tokens are deleted together; a token's score is the mean over the windows that
    contain it.
    """

    window: int = 1
    output: str = "probability"

    def __post_init__(self) -> None:
        _check("leave-one-out", self.window, self.output)

    def __call__(self, session: Session, batch: Batch) -> torch.Tensor:
        """Return the signed drops."""
        return _drops(session, batch, "delete", self.window, self.output)


def _check(name: str, window: int, output: str) -> None:
    if window < 1:
        raise FaithbenchError(f"{name}: window is at least 1 token, found {window}")
    if output not in _OUTPUTS:
        raise unknown(f"output of {name}", output, _OUTPUTS)


def _drops(
    session: Session, batch: Batch, operator: Operator, window: int, output: str
) -> torch.Tensor:
    """Return the mean drop over the windows that contain each token."""
    # The first row keeps everything: f(x) comes with the same call as the erased texts.
    erased = [windows(n, window) for n in counts(batch)]
    keeps = [np.vstack([np.ones((1, len(e[0])), dtype=bool), ~e]) for e in erased]
    answers = ask(session, batch, keeps, operator)
    if output == "probability":
        answers = [np.exp(values) for values in answers]
    scores = [
        (values[0] - values[1:]) @ e / e.sum(axis=0)
        for values, e in zip(answers, erased, strict=True)
    ]
    return place(batch, scores)


def windows(n: int, width: int) -> Bools:
    """Mark each window of `width` adjacent ones of n tokens: one row per window."""
    width = min(width, n)
    start, token = np.arange(n - width + 1)[:, None], np.arange(n)[None, :]
    inside: Bools = (token >= start) & (token < start + width)
    return inside


def counts(batch: Batch) -> list[int]:
    """Return how many erasable tokens each example has."""
    return [int(encoding.erasable.sum()) for encoding in batch.encodings]


def ask(
    session: Session, batch: Batch, keeps: Sequence[Bools], operator: Operator = "mask"
) -> list[Floats]:
    """Return the target's log-probability for every keep-mask, all examples in one call.

    `keeps` and the answer have one entry per example: a matrix with one row per mask and one
    column per erasable token, and a vector with one number per mask.
    """
    token_id = session.model.erasure_token("mask")[1]
    rows = [
        _row(read, keep, operator, token_id)
        for encoding, masks in zip(batch.encodings, keeps, strict=True)
        for keep in masks
        for read in (encoding, *encoding.others)
    ]
    table = session.engine.log_probabilities(rows, output=batch.output)
    targets = batch.targets.tolist()
    answers, start = [], 0
    for i, masks in enumerate(keeps):
        each = 1 + len(batch.encodings[i].others)
        lines = table[start : start + each * len(masks)]
        if each > 1:
            # The choice's own row comes first, and its logit competes with those of the others.
            answers.append(among(lines[:, 0].reshape(len(masks), each))[:, 0])
        else:
            columns = _columns(batch, i, targets[i], masks, operator)
            answers.append(lines[np.arange(len(masks)), columns])
        start += each * len(masks)
    return answers


def place(batch: Batch, scores: Sequence[Floats]) -> torch.Tensor:
    """Put one score per erasable token where the tokens are; all else is 0."""
    table = torch.zeros(batch.ids.shape, dtype=torch.float64)
    for row, (encoding, values) in enumerate(zip(batch.encodings, scores, strict=True)):
        table[row, np.flatnonzero(encoding.erasable)] = torch.from_numpy(values)
    return table


def _row(encoding: Encoding, keep: Bools, operator: Operator, token_id: int) -> TokenRow:
    ids, types = erase(encoding, keep, operator, token_id)
    # A model without special tokens reads nothing once all is deleted: it reads masks instead.
    return (ids, types) if len(ids) else erase(encoding, keep, "mask", token_id)


def _columns(batch: Batch, row: int, target: int, keeps: Bools, operator: Operator) -> Ints:
    """Return the target's column for each mask: an answer moves when tokens before it go."""
    if batch.output == "logits" or operator != "delete":
        return np.full(len(keeps), target)
    before = np.flatnonzero(batch.encodings[row].erasable) < target
    gone: Ints = (~keeps[:, before]).sum(axis=1)
    return target - gone
