"""How attention, or any scores, agree with the influence of words and of inner representations.

The measures of Meister et al. (2021) on one text, from arrays alone: how spread influence is, and
Kendall's tau-b of attention with it. Ties limit tau-b, so that its ceiling stands beside it. The
metrics take the sizes of an explainer's scores for attention; all of them describe, and none says
that an explanation is better.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from faithbench.core.types import Case, Floats, Ints, Outputs
from faithbench.metrics.faithfulness import (
    SWAPPED_RANKS,
    leave_one_out,
    normalised_entropy,
)
from faithbench.metrics.rank_correlation import kendall
from faithbench.metrics.registry import metric


@dataclass(frozen=True)
class Influence:
    """What moves a network's prediction of one text, and its inner representations h.

    All are over the n tokens that may be erased. `attention` is that of the row which the
    classifier reads. `input_gradient` and `state_gradient` are norms of the gradient of f at word
    embeddings and at h (Eq. 4), f the predicted class's probability; `input_change` and
    `state_change` are |f - f without it| (Eq. 6). `on_states` [positions, n] are norms of the
    gradient of |h_p| at each embedding (Eq. 5), for the h_p of `positions`. None stands for what
    the network does not allow.
    """

    attention: Floats
    input_gradient: Floats
    state_gradient: Floats
    input_change: Floats
    state_change: Floats | None
    on_states: Floats
    positions: Ints


Values = dict[str, float | None]


def influence_values(text: Influence) -> Values:
    """Return every measure of a text by name; None where it is not defined."""
    attention, support = text.attention, text.attention > 0
    values: Values = {
        "length": float(len(attention)),
        "support": float(support.mean()),
        "entropy_attention": normalised_entropy(attention),
        "ceiling": tau_ceiling(attention),
    }
    parts = {
        "gradient_x": text.input_gradient,
        "gradient_h": text.state_gradient,
        "loo_x": text.input_change,
        "loo_h": text.state_change,
    }
    for name, influence in parts.items():
        if influence is None:
            values |= {f"tau_{name}": None, f"inside_{name}": None}
            continue
        values[f"tau_{name}"] = kendall(attention, influence)
        values[f"inside_{name}"] = kendall(attention[support], influence[support])
        if name.endswith("_x"):
            values[f"share_{name}"] = _share(attention, influence)
            values[f"auc_{name}"] = support_auc(attention, influence)
            values[f"top_{name}"] = _same_top(attention, influence)
            values[f"entropy_{name}"] = normalised_entropy(influence)
    return values | on_state_values(text)


def on_state_values(text: Influence) -> Values:
    """Return how far each h is that of its own word: means over the positions that were asked for.

    `entropy_on_h` is that of Table 1; `own_share` is the part of all influence on h_p that x_p
    has, `own_rank` its rank from 1 for the strongest, and `own_first` how often it is that.
    """
    entropies, shares, ranks = [], [], []
    for position, influence in zip(text.positions, text.on_states, strict=True):
        entropy, total = normalised_entropy(influence), float(influence.sum())
        if entropy is None or total == 0:
            continue
        entropies.append(entropy)
        shares.append(float(influence[position]) / total)
        ranks.append(1 + int((influence > influence[position]).sum()))
    if not entropies:
        return dict.fromkeys(("entropy_on_h", "own_share", "own_rank", "own_first"))
    return {
        "entropy_on_h": float(np.mean(entropies)),
        "own_share": float(np.mean(shares)),
        "own_rank": float(np.mean(ranks)),
        "own_first": float(np.mean([rank == 1 for rank in ranks])),
    }


def tau_ceiling(scores: Floats, other: Floats | None = None) -> float | None:
    """Return the largest tau-b that ties leave room for, against `other` or any strict order.

    A pair that is tied on one side counts for neither, but stays in the denominator: with T tied
    pairs of C(n, 2), it is sqrt(1 - T / C(n, 2)). With k of n weights above 0 and the others tied
    at 0, T is C(n - k, 2). If `other` has ties too, no more pairs can agree than the side with more
    of them orders: sqrt(fewer / more), of the pairs that each side orders. None where a side is
    constant.
    """
    order = np.arange(len(scores)) if other is None else other
    ordered = _ordered_pairs(scores), _ordered_pairs(order)
    return math.sqrt(min(ordered) / max(ordered)) if all(ordered) else None


def _ordered_pairs(scores: Floats | Ints) -> int:
    """Count the pairs of different scores."""
    counts = np.unique(scores, return_counts=True)[1]
    n = len(scores)
    return int(n * (n - 1) - (counts * (counts - 1)).sum()) // 2


def support_auc(attention: Floats, influence: Floats) -> float | None:
    """Return how well influence tells the tokens with attention above 0 from the others.

    The area under the ROC curve: .5 for an influence that knows nothing of the support, 1 for one
    that is higher on all of it. None where attention reaches all tokens, as softmax does.
    """
    inside = attention > 0
    count, others = int(inside.sum()), int((~inside).sum())
    if not count or not others:
        return None
    # The Mann-Whitney statistic; tied values count half.
    above = (influence[inside][:, None] > influence[~inside][None]).sum()
    equal = (influence[inside][:, None] == influence[~inside][None]).sum()
    return float((above + equal / 2) / (count * others))


def _share(weights: Floats, influence: Floats) -> float | None:
    """Return tau-b divided by what ties leave room for."""
    tau, ceiling = kendall(weights, influence), tau_ceiling(weights, influence)
    return None if tau is None or ceiling is None else tau / ceiling


def _same_top(weights: Floats, influence: Floats) -> float | None:
    """Return whether one word is the first of both; None where a side has no first."""
    if len(weights) < 2 or np.ptp(weights) == 0 or np.ptp(influence) == 0:
        return None
    return float(influence.argmax() == weights.argmax())


@metric(
    "tau_ceiling",
    family="faithfulness",
    higher_is_better=None,
    bounds=(0, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def ceiling_of_ties(case: Case, outputs: Outputs) -> float | None:
    """Of the scores alone: the largest tau-b that their ties leave room for."""
    return tau_ceiling(case.scores)


@metric(
    "tau_loo_share",
    family="faithfulness",
    higher_is_better=True,
    bounds=(-1, 1),
    plan=leave_one_out,
    tolerance=SWAPPED_RANKS,
    opt_in=True,
    papers=("meister2021sparse",),
)
def tau_loo_share(case: Case, outputs: Outputs) -> float | None:
    """tau_loo divided by the largest tau-b that ties leave room for: scores that are 0 for most
    tokens are not marked down for it.
    """
    return _share(case.scores, case.probability - outputs.probability)


@metric(
    "tau_gradient",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(-1, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def tau_gradient(weights: Floats, influence: Influence) -> float | None:
    """tau-b of |scores| with the gradient's norm at each word (Meister et al. 2021, Eq. 4)."""
    return kendall(weights, influence.input_gradient)


@metric(
    "tau_gradient_share",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(-1, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def tau_gradient_share(weights: Floats, influence: Influence) -> float | None:
    """tau_gradient divided by the largest tau-b that ties leave room for."""
    return _share(weights, influence.input_gradient)


@metric(
    "top_gradient",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(0, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def top_gradient(weights: Floats, influence: Influence) -> float | None:
    """Whether the word with the largest |score| is the one with the largest gradient."""
    return _same_top(weights, influence.input_gradient)


@metric(
    "support_auc",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(0, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def gradient_of_support(weights: Floats, influence: Influence) -> float | None:
    """How well the gradient tells words of a score from words of score 0, as area under the ROC
    curve; none where no score is 0.
    """
    return support_auc(weights, influence.input_gradient)


@metric(
    "tau_inner_gradient",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(-1, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def tau_inner_gradient(weights: Floats, influence: Influence) -> float | None:
    """tau-b of |scores| with the gradient's norm at each inner representation."""
    return kendall(weights, influence.state_gradient)


@metric(
    "inside_inner_gradient",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(-1, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def inside_inner_gradient(weights: Floats, influence: Influence) -> float | None:
    """tau_inner_gradient among words whose score is not 0: where sparse attention has its zeros,
    inner representations have no influence, so that the others agree by construction.
    """
    inside = weights > 0
    return kendall(weights[inside], influence.state_gradient[inside])


@metric(
    "tau_inner_loo",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(-1, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def tau_inner_loo(weights: Floats, influence: Influence) -> float | None:
    """tau-b of |scores| with the change of f without each inner representation (Eq. 6); none for
    models whose last attention cannot be asked again.
    """
    if influence.state_change is None:
        return None
    return kendall(weights, influence.state_change)


@metric(
    "inner_entropy",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(0, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def inner_entropy(weights: Floats, influence: Influence) -> float | None:
    """Of the model, not of explainers: how evenly all words move an inner representation, as
    entropy divided by ln n (Eq. 5, Table 1 of Meister et al. 2021).
    """
    return on_state_values(influence)["entropy_on_h"]


@metric(
    "own_share",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(0, 1),
    opt_in=True,
    papers=("meister2021sparse",),
)
def own_share(weights: Floats, influence: Influence) -> float | None:
    """Of the model, not of explainers: the part of all influence on an inner representation that
    its own word has.
    """
    return on_state_values(influence)["own_share"]


@metric(
    "own_rank",
    kind="influence",
    family="faithfulness",
    higher_is_better=None,
    bounds=(1, math.inf),
    opt_in=True,
    papers=("meister2021sparse",),
)
def own_rank(weights: Floats, influence: Influence) -> float | None:
    """Of the model, not of explainers: the place of its own word among those that move an inner
    representation, 1 for the strongest.
    """
    return on_state_values(influence)["own_rank"]
