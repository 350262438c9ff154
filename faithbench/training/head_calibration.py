"""Choose the head thresholds of lrp-mask by what they give on dev examples."""

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
XI_SYNTACTIC = (-0.3, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1)
XI_POSITIONAL = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
Groups = list[list[list[int]]]


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
    pairs: list[tuple[float, float]]


def calibrate(
    model: Model,
    facts: HeadStatistics,
    dev: Dataset,
    progress: Progress,
    *,
    step: int = 1,
    chunk: int = 16,
) -> HeadStatistics:
    """Return the statistics with the grid of trials, and the pair with the best dev AOPC.

    `step` 3 tries every third threshold, the paper's among them: on long texts a pass per mask
    takes its time.
    """
    candidates = _candidates(facts, step)
    if not candidates:
        raise FaithbenchError(
            f"no thresholds of the grid select a head of model {facts.model!r}; "
            "lrp-mask can only run on it with mask=ones"
        )
    encodings = [encode(model, e, dev.task.evidence) for e in dev.examples]
    order = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    sums = np.zeros(len(candidates))
    for start in range(0, len(order), chunk):
        part = order[start : start + chunk]
        sums += _aopc_sums(model, part, candidates)
        progress("calibrating heads", start + len(part), len(order))
    means = sums / len(order)
    trials = [
        Trial(
            xi_syntactic=xi[0],
            xi_positional=xi[1],
            heads=count_heads(candidate.groups),
            aopc=round(float(mean), 6),
        )
        for candidate, mean in zip(candidates, means, strict=True)
        for xi in candidate.pairs
    ]
    # Of equals, the stricter thresholds: fewer heads say the same.
    best = max(trials, key=lambda t: (t.aopc, -t.heads, t.xi_syntactic, t.xi_positional))
    grid = sorted(trials, key=lambda t: (t.xi_syntactic, t.xi_positional))
    return facts.model_copy(
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


def _candidates(facts: HeadStatistics, step: int) -> list[_Candidate]:
    """List the distinct masks of the grid; one that selects no head explains nothing."""
    found: dict[str, _Candidate] = {}
    for synt in XI_SYNTACTIC[::step]:
        for pos in XI_POSITIONAL[::step]:
            groups = masks_at(facts, synt, pos)
            if count_heads(groups):
                found.setdefault(str(groups), _Candidate(groups, [])).pairs.append((synt, pos))
    return list(found.values())


def _aopc_sums(
    model: Model, encodings: Sequence[Encoding], candidates: Sequence[_Candidate]
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return each mask's summed AOPC over a chunk; one gradient pass serves all masks."""
    session = Session(model)
    engine = session.engine
    found = predictions(engine, encodings)
    targets = [p.target for p in found]
    batch = collate(model, encodings, targets, [0] * len(encodings))
    # Start and end of an answer are explained apart and added, as in a run.
    parts = [(part, capture(session, part)) for part in session.per_output(batch)]
    sums = np.zeros(len(candidates))
    for index, candidate in enumerate(candidates):
        rule = HeadRule(torch.tensor(candidate.groups, device=model.device))
        table = torch.stack([_rolled_out(session, *part, rule) for part in parts]).sum(dim=0)
        attributions = [
            Attribution(e, targets[i], table[i, : len(e.ids)].cpu().numpy(), 0, 0, 0)
            for i, e in enumerate(encodings)
        ]
        aopc = case_metrics(find_metrics("aopc"))
        scored = score(engine, attributions, [p.log_probability for p in found], aopc, "mask")
        sums[index] = sum(s.values["aopc"] or 0.0 for s in scored)
    return sums


def _rolled_out(session: Session, batch: Batch, seen: Capture, rule: HeadRule) -> torch.Tensor:
    found = relevance_pass(session, batch, rule)
    return weighted_rollout(
        seen.attention_gradients, found.attentions, seen.position, normalise=False
    )
