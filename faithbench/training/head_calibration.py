"""Head thresholds of lrp-mask, chosen on dev examples by the AOPC they give."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import check_writable
from faithbench.core.types import Attribution, Batch, Encoding, Progress
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.tasks import Task
from faithbench.explainers.lrp import relevance_pass, weighted_rollout
from faithbench.explainers.passes.capture import Capture, capture
from faithbench.explainers.passes.heads import (
    Calibration,
    HeadStatistics,
    Trial,
    cached_heads,
    count_heads,
    masks_at,
    write_heads,
)
from faithbench.explainers.passes.lrp_rules import HeadRule
from faithbench.metrics.registry import case_metrics, find_metrics
from faithbench.models.encoding import collate, encode, shortened
from faithbench.models.model import Model, load_model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.request import model_for
from faithbench.run.score import score
from faithbench.training.head_statistics import PARSER, measure, spacy_parse

PAPER = (0.1, 0.8)
"""The thresholds of the Mask-LRP paper: syntactic, positional."""
# The grid. A syntactic head must follow a relation more often than the best fixed offset plus xi:
# a negative xi lets weaker heads in. A positional head must have one offset in more than a share
# xi of its rows. Both lists have the paper's value at an index that `step` 3 keeps.
XI_SYNTACTIC = (-0.3, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1)
XI_POSITIONAL = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
Groups = list[list[list[int]]]
"""The weight of each head [groups][blocks][heads]; the groups are syntactic and positional."""


def fit_heads(
    task: Task,
    *,
    model: str | None = None,
    folder: Path | None = None,
    source: str = "auto",
    sentences: int = 1000,
    examples: int = 100,
    max_tokens: int | None = None,
    step: int = 1,
    device: str = "auto",
    out: Path | None = None,
    progress: Progress,
) -> tuple[HeadStatistics, Path]:
    """Find a model's heads on training sentences, calibrate them on dev, and write the file.

    Without `out`, the file goes where lrp-mask looks for it. Returns the statistics and the path.
    """
    if out is not None:  # before anything is read or loaded
        check_writable(out.parent, "--out")
    train = load_dataset(task, source=source, split="train", folder=folder, limit=sentences)
    dev = load_dataset(task, source=source, split="dev", folder=folder, limit=examples)
    name, revision = model_for(task, train, model)
    loaded = load_model(name, labels=task.labels, kind=task.kind, revision=revision, device=device)
    loaded = shortened(loaded, max_tokens)
    path = out or cached_heads(loaded)
    check_writable(path.parent, "--out")
    relations, positions = measure(loaded, train.examples, spacy_parse, progress)
    statistics = HeadStatistics(
        task=task.name,
        model=loaded.public_name,
        weights_sha256=loaded.weights_sha256,
        parser=f"{PARSER} {version(PARSER.replace('_', '-'))}",
        split=train.split,
        sentences=len(train.examples),
        data_sha256=train.sha256,
        relations=relations,
        positions=positions,
        thresholds={"paper": PAPER},
    )
    statistics = calibrate(loaded, statistics, dev, progress, step=step)
    write_heads(statistics, path)
    return statistics, path


@dataclass(frozen=True)
class _Candidate:
    """One mask, and the threshold pairs that lead to it."""

    groups: Groups
    pairs: tuple[tuple[float, float], ...]


def calibrate(
    model: Model,
    statistics: HeadStatistics,
    dev: Dataset,
    progress: Progress,
    *,
    step: int = 1,
    chunk: int = 16,
) -> HeadStatistics:
    """Return the statistics with the grid of trials, and the pair with the best dev AOPC.

    `step` 3 tries every third threshold, the paper's among them, because a relevance pass per mask
    is slow on long texts. Examples are scored `chunk` at a time.
    """
    candidates = _candidates(statistics, step)
    if not candidates:
        raise FaithbenchError(
            f"no thresholds of the grid select a head of model {statistics.model!r}; "
            "lrp-mask can only run on it with mask=ones"
        )
    encodings = [encode(model, e, dev.task.evidence) for e in dev.examples]
    # Texts of similar length share a chunk, so that little is padded.
    order = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    sums = np.zeros(len(candidates))
    for start in range(0, len(order), chunk):
        neighbours = order[start : start + chunk]
        sums += _aopc_sums(model, neighbours, candidates)
        progress("calibrating heads", start + len(neighbours), len(order))
    means = sums / len(order)
    trials = [
        Trial(
            xi_syntactic=syntactic,
            xi_positional=positional,
            heads=count_heads(candidate.groups),
            aopc=round(float(mean), 6),
        )
        for candidate, mean in zip(candidates, means, strict=True)
        for syntactic, positional in candidate.pairs
    ]
    # Ties go to fewer heads, then to stricter thresholds: they explain as well with less.
    best = max(trials, key=lambda t: (t.aopc, -t.heads, t.xi_syntactic, t.xi_positional))
    grid = sorted(trials, key=lambda t: (t.xi_syntactic, t.xi_positional))
    return statistics.model_copy(
        update={
            "thresholds": {
                "paper": PAPER,
                "calibrated": (best.xi_syntactic, best.xi_positional),
            },
            "calibration": Calibration(
                split=dev.split,
                examples=len(order),
                max_tokens=model.max_tokens,
                data_sha256=dev.sha256,
                grid=tuple(grid),
            ),
        }
    )


def _candidates(statistics: HeadStatistics, step: int) -> list[_Candidate]:
    """List the distinct masks of the grid, without those that select no head."""
    pairs: dict[str, list[tuple[float, float]]] = {}
    masks: dict[str, Groups] = {}
    for syntactic in XI_SYNTACTIC[::step]:
        for positional in XI_POSITIONAL[::step]:
            groups = masks_at(statistics, syntactic, positional)
            if count_heads(groups):
                masks[str(groups)] = groups
                pairs.setdefault(str(groups), []).append((syntactic, positional))
    return [_Candidate(groups, tuple(pairs[key])) for key, groups in masks.items()]


def _aopc_sums(
    model: Model, encodings: Sequence[Encoding], candidates: Sequence[_Candidate]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return each mask's summed AOPC over a chunk; one gradient pass serves all masks."""
    session = Session(model)
    engine = session.engine
    predicted = predictions(engine, encodings)
    targets = [prediction.target for prediction in predicted]
    full = [prediction.log_probability for prediction in predicted]
    batch = collate(model, encodings, targets, [0] * len(encodings))
    # Start and end of an answer are explained apart and added, as in a run.
    captures = [(part, capture(session, part)) for part in session.per_output(batch)]
    aopc = case_metrics(find_metrics("aopc"))
    sums = np.zeros(len(candidates))
    for index, candidate in enumerate(candidates):
        rule = HeadRule(torch.tensor(candidate.groups, device=model.device))
        rolled_out = [_rolled_out(session, *captured, rule) for captured in captures]
        scores = torch.stack(rolled_out).sum(dim=0)
        attributions = [
            Attribution(
                encoding=encoding,
                target=target,
                every_score=row[: len(encoding.ids)].cpu().numpy(),
                seconds=0,
                forwards=0,
                backwards=0,
            )
            for encoding, target, row in zip(encodings, targets, scores, strict=True)
        ]
        scored = score(engine, attributions, full, aopc, "mask")
        sums[index] = sum(result.values["aopc"] or 0.0 for result in scored)
    return sums


def _rolled_out(session: Session, batch: Batch, seen: Capture, rule: HeadRule) -> torch.Tensor:
    """Return the scores of lrp-mask under one mask [examples, tokens]."""
    relevance = relevance_pass(session, batch, rule)
    return weighted_rollout(
        seen.attention_gradients, relevance.attentions, seen.position, normalise=False
    )
