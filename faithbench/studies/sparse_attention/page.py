"""The page of a study: verdicts, the paper's tables beside ours, figures, and all trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from faithbench.core.types import Floats
from faithbench.leaderboard.pages.formatting import grid as markdown_grid
from faithbench.stats.signed_rank import signed_rank
from faithbench.studies.sparse_attention.adversary import Adversary
from faithbench.studies.sparse_attention.claims import (
    Claim,
    claims_of,
    column,
    groups_of,
    mean,
    over_seeds,
    trends,
)
from faithbench.studies.sparse_attention.record import StudyRecord

# Table 1 of Meister et al. (2021): mean and standard deviation, by task, architecture, projection.
TABLE_1 = {
    ("imdb", "bilstm", "softmax"): (0.71, 0.09),
    ("imdb", "bilstm", "sparsemax"): (0.72, 0.10),
    ("imdb", "transformer", "softmax"): (0.76, 0.08),
    ("imdb", "transformer", "sparsemax"): (0.72, 0.09),
    ("news20-body", "bilstm", "softmax"): (0.75, 0.12),
    ("news20-body", "bilstm", "sparsemax"): (0.68, 0.12),
    ("news20-body", "transformer", "softmax"): (0.48, 0.06),
    ("news20-body", "transformer", "sparsemax"): (0.46, 0.06),
    ("sst2", "bilstm", "softmax"): (0.93, 0.05),
    ("sst2", "bilstm", "sparsemax"): (0.91, 0.07),
    ("sst2", "transformer", "softmax"): (0.73, 0.09),
    ("sst2", "transformer", "sparsemax"): (0.63, 0.08),
}
# Table 2: correlation of lambda with the entropy of the gradient of inputs.
TABLE_2 = {
    ("imdb", "bilstm"): -0.935,
    ("imdb", "transformer"): -0.830,
    ("news20-body", "bilstm"): -0.675,
    ("news20-body", "transformer"): -0.409,
    ("sst2", "bilstm"): -0.866,
    ("sst2", "transformer"): -0.810,
}
SHOWN_ALIKE = 12
"""Trials that are listed one by one; of more, only those that are not for the claim."""


@dataclass(frozen=True)
class Study:
    """All that a page is made of."""

    records: tuple[StudyRecord, ...]
    adversaries: tuple[Adversary, ...]
    quick: bool
    command: str
    cpu: str

    @property
    def claims(self) -> tuple[Claim, ...]:
        """The claims, tested."""
        return claims_of(self.records, self.adversaries)


def page(study: Study, figures: Sequence[str]) -> str:
    """Return the page as markdown; figures lie beside it."""
    blocks = (
        *_head(study),
        *_verdicts(study.claims),
        *_accuracy(study),
        *_table_1(study),
        *_table_2(study),
        *_figures(study, figures),
        *_adversaries(study.adversaries),
        *_references(study),
        *_trials(study.claims),
    )
    return "\n\n".join(blocks) + "\n"


def _head(study: Study) -> Iterator[str]:
    yield "# Is sparse attention more interpretable?"
    trained = [record for record in study.records if record.network.trained]
    timings = [record.timing for record in study.records]
    timings += [adversary.timing for adversary in study.adversaries]
    training = sum(timing.training or 0 for timing in timings)
    measuring = sum(timing.measuring for timing in timings)
    if study.quick:
        yield (
            "**A quick study: one epoch, few texts, one seed. It shows that all works, and no "
            "number of it means anything.**"
        )
    sizes = dict.fromkeys((record.task.name, record.task.n) for record in study.records)
    yield (
        f"The study of Meister et al. (2021) on {len(trained)} networks and "
        f"{len(study.adversaries)} adversaries that were trained for it, by "
        f"`{study.command}`. Measured on "
        + ", ".join(f"{n} test texts of {name}" for name, n in sizes)
        + f"; {training / 60:.0f} CPU minutes of training and {measuring / 60:.0f} of measuring "
        f"on one thread of {study.cpu}."
    )
    yield (
        "f is the probability of the predicted class. x are words, h the representations that "
        "attention is over. A word is left out by deleting it, an h by leaving it out of the "
        "projection. Changes of f below 1e-6 are rounding, and count as 0."
    )


def _verdicts(claims: Sequence[Claim]) -> Iterator[str]:
    yield "## Verdicts"
    yield _grid(
        ("claim", "", "verdict", "trials"),
        [(claim.number, claim.sentence, f"**{claim.verdict}**", claim.count) for claim in claims],
        names=4,
    )
    yield (
        "A trial is one network, or one task and architecture where lambda is what varies; its p "
        "is corrected by Holm over the trials of the claim. A claim holds if every trial is "
        "significant for it, and in part if some are. Tests pair texts: they speak of these "
        "networks, and the seeds in the last section say how far others from the same recipe agree."
    )


def _accuracy(study: Study) -> Iterator[str]:
    yield "## Networks"
    rows = []
    for group in groups_of(study.records):
        for projection, found in group.by_projection.items():
            scores = [record.network.test["accuracy"] for record in found]
            rows.append(
                (
                    group.task,
                    group.arch,
                    projection,
                    _number(float(np.mean(scores))),
                    _number(min(scores)),
                    len(scores),
                    _mean(found, "support"),
                    _mean(found, "entropy_attention"),
                )
            )
    titles = ("task", "network", "projection", "accuracy", "lowest", "seeds", "support", "H(a)")
    yield _grid(titles, rows)
    yield (
        "Accuracy is on all of test. Support is the share of words with attention above 0, H(a) "
        "attention's normalised entropy: where it is near 1, attention is nearly uniform, and a "
        "rank correlation with it ranks tiny differences."
    )


def _table_1(study: Study) -> Iterator[str]:
    yield "## Table 1: entropy of the influence of inputs on inner representations"
    rows = []
    for group in groups_of(study.records):
        for projection, found in group.by_projection.items():
            theirs = TABLE_1.get((group.task, group.arch, projection))
            values = np.concatenate([column(record, "entropy_on_h") for record in found])
            rows.append(
                (
                    group.task,
                    group.arch,
                    projection,
                    "" if theirs is None else f"{theirs[0]:.2f} ± {theirs[1]:.2f}",
                    _with_deviation(values),
                    *(_mean(found, name) for name in ("own_share", "own_first", "own_rank")),
                )
            )
    for record in study.records:
        if not record.network.trained:
            values = column(record, "entropy_on_h")
            own = (_mean([record], name) for name in ("own_share", "own_first", "own_rank"))
            rows.append(
                (
                    record.task.name,
                    record.network.arch,
                    "untrained",
                    "",
                    _with_deviation(values),
                    *own,
                )
            )
    titles = ("task", "network", "projection", "paper", "ours", "own share", "own first", "rank")
    yield _grid(titles, rows)
    yield (
        "Mean and standard deviation over texts and seeds. Own share is the part of the influence "
        "on h_i that x_i has, own first how often x_i is the strongest input of h_i, rank its mean "
        f"place. Positions are sampled, at most {_positions(study)} per text, by the text's id. "
        "`untrained` has its first, random weights: what it has is the architecture's, not learnt."
    )


def _positions(study: Study) -> str:
    sampled = dict.fromkeys((r.task.name, r.settings.positions) for r in study.records)
    return ", ".join(f"{positions} ({name})" for name, positions in sampled)


def _table_2(study: Study) -> Iterator[str]:
    from scipy.stats import kendalltau

    yield "## Table 2: lambda and the entropy of input importance"
    rows = []
    for group in groups_of(study.records):
        by_strength = group.strengths
        if len(by_strength) < 2:
            continue
        for kind, name in (("gradient", "entropy_gradient_x"), ("leave-one-out", "entropy_loo_x")):
            table = {strength: over_seeds(found, name) for strength, found in by_strength.items()}
            means = kendalltau(list(table), [np.nanmean(values) for values in table.values()])
            pooled = [
                (strength, value)
                for strength, values in table.items()
                for value in values[~np.isnan(values)]
            ]
            over_texts = kendalltau(*zip(*pooled, strict=True))
            within = trends(by_strength, name)
            within = within[~np.isnan(within)]
            test = signed_rank(within.tolist(), [0.0] * len(within))
            theirs = TABLE_2.get((group.task, group.arch)) if kind == "gradient" else None
            rows.append(
                (
                    group.task,
                    group.arch,
                    kind,
                    "" if theirs is None else f"{theirs:+.2f}",
                    _signed(means.statistic, means.pvalue),
                    _signed(over_texts.statistic, over_texts.pvalue),
                    _signed(float(within.mean()), test.p),
                )
            )
    titles = ("task", "network", "importance", "paper", "over lambdas", "pooled", "within texts")
    yield _grid(titles, rows)
    yield (
        "tau-b of lambda with the entropy, p in brackets: over the mean of each lambda (at most "
        "five points, so that no p can be small), over all texts of all lambdas pooled (whose "
        "values are not independent), and within each text, averaged (signed ranks over texts). "
        "The paper does not say which it is. Its table has negative correlations, by which entropy "
        "*falls* as sparsity grows; its text reads them as entropy that *increases*. Both readings "
        "are here: a negative number is for the table, a positive one for the text."
    )


_AGREEMENT = {
    "tau x": "tau_gradient_x",
    "ceiling": "ceiling",
    "share": "share_gradient_x",
    "AUC": "auc_gradient_x",
    "top": "top_gradient_x",
    "tau h": "tau_gradient_h",
    "inside x": "inside_gradient_x",
    "inside h": "inside_gradient_h",
    "LOO x": "tau_loo_x",
    "LOO h": "tau_loo_h",
}


def _figures(study: Study, figures: Sequence[str]) -> Iterator[str]:
    yield "## Figures 1 to 3: attention and influence"
    captions = {
        "figure-1": "Figure 1: tau-b of attention with the gradient of inputs and of h.",
        "figure-2": "Figure 2: entropies of input importance, and of attention itself.",
        "figure-3": "Figure 3: agreement with input importance as lambda grows, and its ceiling.",
    }
    for name in figures:
        yield f"![{captions[name]}]({name}.svg)"
    rows = [
        (group.task, group.arch, projection, *(_mean(found, name) for name in _AGREEMENT.values()))
        for group in groups_of(study.records)
        for projection, found in group.by_projection.items()
    ]
    yield _grid(("task", "network", "projection", *_AGREEMENT), rows)
    yield (
        "tau x and tau h: tau-b of attention with the gradient of words and of h; LOO: with "
        "leave-one-out changes. With k of n weights above 0, tau-b against an order without ties "
        "is at most the ceiling, sqrt(1 - C(n-k,2)/C(n,2)); share is tau x divided by it, text by "
        "text. AUC: how well the gradient of words tells those in the support from the others. "
        "top: how often the word with most attention has the largest gradient. inside: the same "
        "tau-b among the words with attention above 0, where there are two or more."
    )


def _adversaries(adversaries: Sequence[Adversary]) -> Iterator[str]:
    if not adversaries:
        return
    yield "## Attention that is made to diverge"
    rows = []
    for task in dict.fromkeys(one.task for one in adversaries):
        for projection in dict.fromkeys(one.projection for one in adversaries):
            for weight in sorted({one.weight for one in adversaries}):
                alike = [
                    one
                    for one in adversaries
                    if (one.task, one.projection, one.weight) == (task, projection, weight)
                ]
                if alike:
                    rows.append((task, projection, f"{weight:g}", len(alike), *_rates(alike)))
    titles = (
        "task", "projection", "weight", "seeds", "accuracy", "frozen, far", "frozen, near",
        "trained", "JSD", "JSD of seeds",
    )  # fmt: skip
    yield _grid(titles, rows)
    yield (
        "BiLSTMs, accuracy on all of test. Frozen, far: all attention on the word that has least. "
        "Frozen, near: on the way there, at the divergence that the trained adversary has on the "
        "same text. Trained: a network whose loss has the divergence from the first one's "
        "attention, times the weight. JSD is the adversary's mean Jensen-Shannon divergence (at "
        "most .693); JSD of seeds that between two networks that differ in their start alone."
    )


def _rates(alike: Sequence[Adversary]) -> Iterator[str]:
    for name in ("base", "far", "near", "trained", "divergence"):
        yield _number(float(np.mean([np.mean(getattr(one, name)) for one in alike])))
    seeds = [np.mean(one.another_seed) for one in alike if one.has_sibling]
    yield _number(float(np.mean(seeds)) if seeds else None)


def _references(study: Study) -> Iterator[str]:
    yield "## What chance gives"
    rng = np.random.default_rng(0)
    rows = []
    for name in dict.fromkeys(record.task.name for record in study.records):
        record = next(r for r in study.records if r.task.name == name and r.network.trained)
        lengths = column(record, "length").astype(int)
        draws = [np.abs(rng.normal(size=length)) for length in lengths if length > 1]
        shares = [draw / draw.sum() for draw in draws]
        entropies = [-(share * np.log(share)).sum() / np.log(len(share)) for share in shares]
        own = float(np.mean([1 / length for length in lengths]))
        rows.append(
            (name, f"{lengths.mean():.1f}", _number(float(np.mean(entropies))), _number(own))
        )
    yield _grid(("task", "words", "entropy of normal draws", "own share if all are equal"), rows)
    yield (
        "A random explainer has tau-b 0 and AUC .5, a constant one has no tau-b. An entropy of 1 "
        "is the same influence of all words; the sizes of independent normal draws have the one "
        "above, so that entropies of .9 are what no preference at all looks like."
    )


def _trials(claims: Sequence[Claim]) -> Iterator[str]:
    yield "## All trials"
    for claim in claims:
        yield f"**{claim.number}: {claim.sentence}** {claim.count}. Test: {claim.test}."
        if claim.note:
            yield claim.note
        shown = [
            trial
            for trial in claim.trials
            if len(claim.trials) <= SHOWN_ALIKE or trial.verdict != "holds"
        ]
        if len(shown) < len(claim.trials):
            yield f"{len(claim.trials) - len(shown)} trials are for it" + (
                "; the others:" if shown else ", without exception."
            )
        if shown:
            yield _grid(
                ("what", "difference", "p (Holm)", "texts", "seeds for it"),
                [
                    (
                        trial.what,
                        f"{trial.difference:+.3f}",
                        "-" if trial.p is None else f"{trial.p:.2g}",
                        trial.n,
                        "" if trial.seeds is None else f"{trial.seeds[0]} of {trial.seeds[1]}",
                    )
                    for trial in shown
                ],
                names=1,
            )


def _grid(titles: Sequence[str], rows: Sequence[Sequence[object]], names: int = 3) -> str:
    return markdown_grid([[str(cell) for cell in row] for row in rows], titles, names)


def _mean(records: Sequence[StudyRecord], name: str) -> str:
    """Return a measure's mean over texts and seeds; values that a text lacks are left out."""
    values = np.concatenate([column(record, name) for record in records])
    return _number(mean(values))


def _with_deviation(values: Floats) -> str:
    present = values[~np.isnan(values)]
    return f"{present.mean():.2f} ± {present.std(ddof=1):.2f}" if len(present) > 1 else "-"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _signed(value: float, p: float | None) -> str:
    return f"{value:+.2f} ({'-' if p is None else f'{p:.2g}'})"
