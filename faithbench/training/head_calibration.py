"""Head thresholds of lrp-mask: the strictest that do not lower the AOPC of dev examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path

import numpy as np
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import check_writable
from faithbench.core.types import Attribution, Batch, Encoding, Floats, Progress
from faithbench.data.dataset import Dataset, load_dataset
from faithbench.data.kinds import KINDS
from faithbench.data.tasks import Task
from faithbench.explainers.lrp import relevance_pass, weighted_rollout
from faithbench.explainers.passes.capture import Capture, capture_square
from faithbench.explainers.passes.heads import (
    Calibration,
    Groups,
    HeadStatistics,
    Thresholds,
    Trial,
    Verdict,
    all_heads,
    cached_heads,
    count_heads,
    find_heads,
    masks_at,
    write_heads,
)
from faithbench.explainers.passes.lrp_rules import HeadRule
from faithbench.metrics.registry import case_metrics, find_metrics
from faithbench.models.encoding import collate, encode, shortened
from faithbench.models.engine import BUDGET
from faithbench.models.model import Model, load_model
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.chunk import batches_within
from faithbench.run.request import model_for
from faithbench.run.score import score
from faithbench.stats.pairwise import ALPHA, holm
from faithbench.stats.signed_rank import signed_rank
from faithbench.training.head_statistics import PARSER, measure, spacy_parse

PAPER = (0.1, 0.8)
"""The thresholds of the Mask-LRP paper: syntactic, positional."""
# The grid. A syntactic head must follow a relation more often than the best fixed offset plus xi,
# so a negative xi would call heads syntactic that a fixed offset beats. A positional head must have
# one offset in more than a share xi of its rows. The paper's values are the last ones.
XI_SYNTACTIC = (0.0, 0.05, 0.1)
XI_POSITIONAL = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)


def fit_heads(
    task: Task,
    *,
    model: str | None = None,
    folder: Path | None = None,
    source: str = "auto",
    sentences: int = 1000,
    examples: int = 200,
    max_tokens: int | None = None,
    coarse: bool = False,
    keep_statistics: bool = False,
    device: str = "auto",
    out: Path | None = None,
    progress: Progress,
) -> tuple[HeadStatistics, Path]:
    """Find a model's heads on training sentences, calibrate them on dev, and write the file.

    `keep_statistics` takes the heads from the model's present file, so that no parser is needed.
    Without `out`, the file goes where lrp-mask looks for it. Returns the statistics and the path.
    """
    if KINDS[task.kind].has_choices:
        raise FaithbenchError(
            f"task {task.name} is of kind {task.kind}, of which no heads are measured; "
            "use lrp-mask:mask=ones"
        )
    if out is not None:  # before anything is read or loaded
        check_writable(out.parent, "--out")
    dev = load_dataset(task, source=source, split="dev", folder=folder, limit=examples)
    name, revision = model_for(task, dev, model)
    loaded = load_model(name, labels=task.labels, kind=task.kind, revision=revision, device=device)
    loaded = shortened(loaded, max_tokens)
    path = out or cached_heads(loaded)
    check_writable(path.parent, "--out")
    if keep_statistics:
        statistics = find_heads(loaded)
    else:
        train = load_dataset(task, source=source, split="train", folder=folder, limit=sentences)
        statistics = _measured(loaded, train, progress)
    statistics = calibrate(loaded, statistics, dev, progress, coarse=coarse)
    write_heads(statistics, path)
    return statistics, path


def _measured(model: Model, train: Dataset, progress: Progress) -> HeadStatistics:
    """Return what the heads of a model follow on training sentences, not calibrated yet."""
    relations, positions = measure(model, train.examples, spacy_parse, progress)
    return HeadStatistics(
        task=train.task.name,
        model=model.public_name,
        model_sha256=model.sha256,
        weights_sha256=model.weights_sha256,
        parser=f"{PARSER} {version(PARSER.replace('_', '-'))}",
        split=train.split,
        sentences=len(train.examples),
        data_sha256=train.sha256,
        relations=relations,
        positions=positions,
        thresholds={"paper": PAPER},
    )


def calibrate(
    model: Model,
    statistics: HeadStatistics,
    dev: Dataset,
    progress: Progress,
    *,
    coarse: bool = False,
    budget: int = BUDGET,
) -> HeadStatistics:
    """Return the statistics with the grid of trials, and the thresholds that `choose_mask` takes.

    A `coarse` grid has every second threshold, the paper's among them, because a relevance pass
    per mask is slow on long texts. Texts go in batches of `budget` padded tokens at most.
    """
    candidates = _candidates(statistics, coarse)
    encodings = [encode(model, e, dev.task.evidence) for e in dev.examples]
    # Texts of similar length share a batch, so that little is padded.
    order = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    total, done, parts = len(order) * len(candidates), 0, []

    def advance(texts: int) -> None:
        nonlocal done
        done += texts
        progress("calibrating heads", done, total)

    for part in batches_within(order, budget):
        parts.append(_aopc_of_masks(model, order[part], candidates, advance))
    values = np.concatenate(parts, axis=1)
    # A text of which nothing can be erased has no AOPC, whatever the mask.
    values = values[:, ~np.isnan(values).any(axis=0)]
    grid = _trials(candidates, values)
    chosen = choose_mask(grid)
    return statistics.model_copy(
        update={
            "schema_version": 2,
            "thresholds": {"paper": PAPER, "calibrated": chosen.thresholds},
            "calibration": Calibration(
                split=dev.split,
                examples=values.shape[1],
                max_tokens=model.max_tokens,
                data_sha256=dev.sha256,
                grid=grid,
                verdict=verdict_on(chosen),
            ),
        }
    )


def choose_mask(grid: Sequence[Trial]) -> Trial:
    """Return the strictest mask that is not worse than none, or the trial without a mask.

    Not worse means both: the mean AOPC is at most one standard error of the paired difference
    below that of no mask, and a one-sided signed-rank test does not find it lower (Holm over the
    masks, alpha .05). The test alone would pass any mask on few texts, because a test that finds
    nothing proves nothing; the mean alone would pass a mask that lowers most texts a little and
    raises a few much. Without an error (a single text) the mean must not be lower at all. Strictest
    is the one with the fewest heads, of equals that with the higher thresholds.
    """
    (no_mask,) = (trial for trial in grid if trial.thresholds is None)

    def is_worse(trial: Trial) -> bool:
        low = trial.aopc < no_mask.aopc - (trial.error or 0.0)
        return low or (trial.p_worse is not None and trial.p_worse < ALPHA)

    masks = (trial for trial in grid if trial.thresholds is not None and not is_worse(trial))
    # Thresholds are compared like words: the syntactic ones first.
    return max(masks, key=lambda trial: (-trial.heads, trial.thresholds), default=no_mask)


def verdict_on(chosen: Trial) -> Verdict:
    """Return what the chosen trial says of masking on its model."""
    if chosen.thresholds is None:
        return "masking does not help"
    better = chosen.p_better is not None and chosen.p_better < ALPHA
    return "masking helps" if better else "masking does not hurt"


@dataclass(frozen=True)
class _Candidate:
    """One mask, and the thresholds that lead to it."""

    groups: Groups
    thresholds: tuple[Thresholds, ...]


def _candidates(statistics: HeadStatistics, coarse: bool) -> list[_Candidate]:
    """List all heads first, then the distinct masks of the grid that select some of them."""
    no_mask = all_heads(statistics)
    step = 2 if coarse else 1
    by_mask: dict[str, _Candidate] = {}
    for pair in sorted({*product(XI_SYNTACTIC[::step], XI_POSITIONAL[::step]), PAPER}):
        groups = masks_at(statistics, *pair)
        if 0 < count_heads(groups) < count_heads(no_mask):
            known = by_mask.get(str(groups), _Candidate(groups, ()))
            by_mask[str(groups)] = _Candidate(groups, (*known.thresholds, pair))
    return [_Candidate(no_mask, (None,)), *by_mask.values()]


def _trials(candidates: Sequence[_Candidate], values: Floats) -> tuple[Trial, ...]:
    """Compare every mask's AOPC per text [candidates, texts] with that of the first, no mask."""
    errors: list[float | None] = [None]
    worse: list[float | None] = [None]
    better: list[float | None] = [None]
    for masked in values[1:]:
        changes = masked - values[0]
        texts = len(changes)
        errors.append(_rounded(changes.std(ddof=1) / texts**0.5) if texts > 1 else None)
        test = signed_rank(masked.tolist(), values[0].tolist())
        # Half of the two-sided p is that of the side on which the effect lies.
        half = None if test.p is None else test.p / 2
        worse.append(half if half is None or test.effect < 0 else 1 - half)
        better.append(half if half is None or test.effect > 0 else 1 - half)
    columns = (candidates, values.mean(axis=1), errors, _adjusted(worse), _adjusted(better))
    trials = [
        Trial(
            xi_syntactic=None if pair is None else pair[0],
            xi_positional=None if pair is None else pair[1],
            heads=count_heads(candidate.groups),
            aopc=_rounded(mean),
            error=error,
            p_worse=p_worse,
            p_better=p_better,
        )
        for candidate, mean, error, p_worse, p_better in zip(*columns, strict=True)
        for pair in candidate.thresholds
    ]
    return tuple(sorted(trials, key=lambda trial: trial.thresholds or ()))


def _adjusted(p_values: Sequence[float | None]) -> list[float | None]:
    """Adjust p values by Holm; a missing one stays missing and is no test."""
    adjusted = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else _rounded(next(adjusted)) for p in p_values]


def _rounded(value: float) -> float:
    return round(float(value), 6)


def _aopc_of_masks(
    model: Model,
    encodings: Sequence[Encoding],
    candidates: Sequence[_Candidate],
    advance: Callable[[int], None],
) -> Floats:
    """Return each mask's AOPC of each text [candidates, texts], NaN where there is none.

    One gradient pass serves all masks, and erased rows that several masks ask for run once.
    """
    session = Session(model)
    engine = session.engine
    predicted = predictions(engine, encodings)
    targets = [prediction.target for prediction in predicted]
    full = [prediction.log_probability for prediction in predicted]
    batch = collate(model, encodings, targets, [0] * len(encodings))
    # Start and end of an answer are explained apart and added, as in a run.
    captures = [(part, capture_square(session, part)) for part in session.per_output(batch)]
    aopc = case_metrics(find_metrics("aopc"))
    values = np.full((len(candidates), len(encodings)), np.nan)
    for index, candidate in enumerate(candidates):
        rule = HeadRule(torch.tensor(candidate.groups, device="cpu"))
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
        values[index] = [
            np.nan if result.values["aopc"] is None else result.values["aopc"] for result in scored
        ]
        advance(len(encodings))
    return values


def _rolled_out(session: Session, batch: Batch, seen: Capture, rule: HeadRule) -> torch.Tensor:
    """Return the scores of lrp-mask under one mask [examples, tokens]."""
    relevance = relevance_pass(session, batch, rule, "float64")
    return weighted_rollout(
        seen.attention_gradients, relevance.attentions, seen.position, normalise=False
    )
