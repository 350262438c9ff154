"""Claims on made records: the verdict is that of the numbers, and turns with them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from faithbench.studies.sparse_attention.claims import (
    Claim,
    Trial,
    claims_of,
    column,
    groups_of,
    mean,
    over_seeds,
    trends,
)
from faithbench.studies.sparse_attention.record import StudyRecord
from tests.studies.sparse_attention.made import MEASURES, made_adversary, made_record, made_study


def verdicts(records: Sequence[StudyRecord]) -> dict[str, str]:
    return {claim.number: claim.verdict for claim in claims_of(records)}


def test_made_records_that_say_what_the_paper_says() -> None:
    assert verdicts(made_study()) == {
        "1": "holds",
        "1 (leave-one-out)": "holds",
        "1 (inside the support)": "holds",
        "2": "holds",
        "2 (own share)": "holds",
        "3": "holds",
        "3 (Table 2)": "holds",
        "4": "holds",
        "4 (leave-one-out)": "holds",
        "4 (share of the ceiling)": "does not hold",
    }


@pytest.mark.parametrize(
    ("number", "swapped"),
    [
        ("1", ("tau_gradient_h", "tau_gradient_x")),
        ("1 (leave-one-out)", ("tau_loo_h", "tau_loo_x")),
        ("1 (inside the support)", ("inside_gradient_h", "inside_gradient_x")),
        ("3", ("entropy_gradient_x", "entropy_attention")),
    ],
)
def test_a_verdict_turns_when_its_numbers_are_swapped(
    number: str, swapped: tuple[str, str]
) -> None:
    first, second = swapped
    turned = []
    for record in made_study():
        values = record.values | {first: record.values[second], second: record.values[first]}
        turned.append(record.model_copy(update={"values": values}))
    assert verdicts(turned)[number] == "does not hold"


@pytest.mark.parametrize("number", ["3 (Table 2)", "4", "4 (leave-one-out)"])
def test_a_trend_turns_with_lambda(number: str) -> None:
    turned = []
    for record in made_study():
        strength = record.network.strength
        network = record.network.model_copy(
            update={"strength": None if strength is None else -strength}
        )
        turned.append(record.model_copy(update={"network": network}))
    assert verdicts(turned)[number] == "does not hold"


def test_entropies_and_shares_are_held_against_a_half() -> None:
    low = made_study(entropy_on_h=0.4, own_share=0.6)
    assert {k: v for k, v in verdicts(low).items() if k.startswith("2")} == {
        "2": "does not hold",
        "2 (own share)": "does not hold",
    }


def test_few_texts_decide_nothing() -> None:
    assert set(verdicts(made_study(texts=3)).values()) == {"cannot be told"}


def test_one_network_against_it_is_in_part() -> None:
    records = made_study()
    last = records[-1]
    values = last.values | {"tau_gradient_h": tuple([-1.0] * len(last.texts))}
    claim = claims_of([*records[:-1], last.model_copy(update={"values": values})])[0]
    assert claim.verdict == "holds in part"
    assert claim.count == f"{len(records) - 1} of {len(records)} for it, 1 against, 0 undecided"


def test_p_is_corrected_over_the_trials_of_a_claim() -> None:
    alone = claims_of(made_study()[:1])[0].trials[0].p
    together = claims_of(made_study())[0].trials[0].p
    assert alone is not None and together is not None
    # All networks are equally clear, so that Holm multiplies by how many there are.
    assert together == pytest.approx(min(1, alone * len(made_study())), rel=1e-9)


def test_untrained_networks_are_no_trials() -> None:
    records = made_study()
    network = records[0].network.model_copy(update={"trained": False, "name": "untrained"})
    control = records[0].model_copy(update={"network": network})
    assert claims_of([*records, control]) == claims_of(records)
    assert [group.name for group in groups_of([*records, control])] == ["mini, bilstm"]


def test_seeds_are_averaged_and_counted() -> None:
    records = made_study(seeds=2)
    (group,) = groups_of(records)
    assert list(group.strengths) == [-1.0, 0.0, 0.9]
    pair = group.strengths[0.0]
    expected = (column(pair[0], "tau_loo_x") + column(pair[1], "tau_loo_x")) / 2
    assert over_seeds(pair, "tau_loo_x") == pytest.approx(expected)
    falls = next(claim for claim in claims_of(records) if claim.number == "4")
    assert falls.trials[0].seeds == (2, 2)
    assert trends(group.strengths, "tau_gradient_x") == pytest.approx(np.full(12, -1.0))


def test_missing_values_are_left_out() -> None:
    record = made_record("sparsemax", 0.0)
    values = record.values | {"tau_gradient_x": (None, *record.values["tau_gradient_x"][1:])}
    lacking = record.model_copy(update={"values": values})
    assert claims_of([lacking])[0].trials[0].n == len(record.texts) - 1
    assert mean(column(lacking, "tau_gradient_x")) == pytest.approx(
        np.mean(record.values["tau_gradient_x"][1:])
    )
    assert mean(np.array([np.nan])) is None


def test_adversaries_are_held_against_their_networks() -> None:
    right = [True] * 40
    wrong = [False] * 15 + [True] * 25
    claims = claims_of(made_study(), [made_adversary(base=right, near=wrong, far=wrong)])
    assert [(claim.number[0], claim.verdict) for claim in claims[-3:]] == [
        ("5", "holds"),
        ("5", "holds"),
        ("5", "cannot be told"),
    ]
    assert claims[-3].trials[0].difference == pytest.approx(15 / 40)
    other_weight = made_adversary(weight=1.0, base=right, near=wrong)
    assert len(claims_of(made_study(), [other_weight])) == len(claims_of(made_study()))


def test_one_text_far_off_does_not_turn_what_ranks_say() -> None:
    """Of 24 texts, 23 have the higher agreement, and significantly so; one is lower by far."""
    records = []
    for record in made_study(texts=24):
        (_, *others) = record.values["tau_gradient_h"]
        values = record.values | {"tau_gradient_h": (-100.0, *others)}
        records.append(record.model_copy(update={"values": values}))
    claim = claims_of(records)[0]
    assert claim.number == "1" and {trial.difference < 0 for trial in claim.trials} == {True}
    assert claim.verdict == "holds"


def test_a_claim_without_trials_cannot_be_told() -> None:
    assert Claim("1", "", "", ()).verdict == "cannot be told"
    assert Trial("a", 1.0, None, 0).verdict == "cannot be told"
    assert set(MEASURES) <= set(made_record("softmax", None).values)
