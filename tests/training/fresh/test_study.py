"""A whole study on tiny models: arms, classifiers, scores, tests, and what is found again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.kinds.classification import class_scores
from faithbench.models.evaluation import outcomes
from faithbench.models.model import load_model
from faithbench.training.fresh.study import ArmScore, FreshReport, _tests, fresh
from tests.support.fresh import SIZES, put_study, request_of
from tests.support.training import killer, save_base, silent

Study = tuple[Path, FreshReport]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Attention, random words and whole texts under two seeds: six classifiers."""
    folder = put_study(tmp_path_factory.mktemp("fresh"))
    return folder, fresh(request_of(folder), silent)


def cards(folder: Path) -> dict[str, dict[str, Any]]:
    """The cards of all classifiers, by the beginning of their folder's name."""
    found = {}
    for path in sorted((folder / "out" / "models").glob("*/card.json")):
        card = json.loads(path.read_text())
        arm = path.parent.name.rpartition("-")[0]
        found[f"{arm} {card['recipe']['seed']}"] = card | {"folder": path.parent}
    return found


def test_there_is_a_classifier_per_arm_and_seed(study: Study) -> None:
    folder, report = study
    names = [
        f"{arm} {seed}"
        for arm in ("attention-tiny-bert", "full-text", "random-words-tiny-bert")
        for seed in range(2)
    ]
    assert sorted(cards(folder)) == names
    assert [arm.label for arm in report.arms] == ["attention", "random-words", "full text"]
    assert report.sizes == tuple(SIZES.values())


def test_a_score_is_that_of_the_model_in_its_folder(study: Study) -> None:
    """Whole texts: the folder's model, on the task's own test split."""
    from faithbench.data.dataset import load_dataset

    folder, report = study
    test = load_dataset(request_of(folder).task, folder=folder)
    gold = [example.label for example in test.examples]
    for seed, found in enumerate(report.arms[2].macro_f1):
        card = cards(folder)[f"full-text {seed}"]
        model = load_model(str(card["folder"]), labels=("no", "yes"), device="cpu")
        predicted = outcomes(model, test)
        assert found == class_scores(predicted, gold, 2)["macro_f1"]
        assert card["test"]["macro_f1"] == round(found, 4)
    assert report.arms[2].mean == pytest.approx(sum(report.arms[2].macro_f1) / 2)


def test_two_of_five_words_are_kept(study: Study) -> None:
    folder, report = study
    assert [arm.words for arm in report.arms] == [2, 2, 5]
    of_arms = {
        name.split()[0]: card["data"]["test"]["sha256"] for name, card in cards(folder).items()
    }
    assert len(set(of_arms.values())) == 3
    drawn = [cards(folder)[f"random-words-tiny-bert {seed}"]["data"]["train"] for seed in range(2)]
    assert drawn[0]["sha256"] != drawn[1]["sha256"], "words are drawn anew for each seed"
    same = [cards(folder)[f"attention-tiny-bert {seed}"]["data"]["train"] for seed in range(2)]
    assert same[0] == same[1]


def test_what_is_done_is_not_done_again(study: Study) -> None:
    """Also with other records asked for: nothing is explained or trained, only predicted."""
    folder, report = study
    steps: list[str] = []
    again = fresh(request_of(folder), lambda what, *_: steps.append(what))
    assert again == report
    assert not [step for step in steps if "epoch" in step or "explain" in step]
    assert "full text, seed 1: scoring test" in steps


def test_a_killed_study_continues_and_ends_with_the_same_numbers(
    study: Study, tmp_path: Path
) -> None:
    """Killed as train was explained, and inside the training of the third classifier."""
    _, report = study
    put_study(tmp_path)
    asked = request_of(tmp_path)
    for stage in (("explaining attention", 0), ("random-words, seed 0: epoch 1/1", 2)):
        with pytest.raises(KeyboardInterrupt) as stop:
            fresh(asked, killer(*stage))
        assert type(stop.value) is KeyboardInterrupt, "not with a count of one split"
    finished = sorted((tmp_path / "out" / "models").glob("*/card.json"))
    assert len(finished) == 2
    ended = fresh(asked, silent)
    assert [replace(arm, record=None) for arm in ended.arms] == [
        replace(arm, record=None) for arm in report.arms
    ]


def test_jobs_change_no_number(tmp_path: Path) -> None:
    put_study(tmp_path)
    one, two = (
        fresh(request_of(tmp_path, out=tmp_path / f"out{jobs}", jobs=jobs, controls=()), silent)
        for jobs in (1, 2)
    )
    assert one == two


def test_two_support_models_have_an_arm_each_and_are_tested(tmp_path: Path) -> None:
    put_study(tmp_path)
    save_base(tmp_path, "distilbert")
    models = tuple(str(tmp_path / f"tiny-{name}") for name in ("bert", "distilbert"))
    report = fresh(request_of(tmp_path, models=models, seeds=1, controls=("random",)), silent)
    assert [(arm.label, arm.support) for arm in report.arms] == [
        ("attention", "tiny-bert"), ("attention", "tiny-distilbert"), ("random-words", "tiny-bert"),
    ]  # fmt: skip
    assert [(test.first, test.second) for test in report.tests] == [(0, 1), (0, 2), (1, 2)]
    assert all(test.over_seeds is None for test in report.tests), "one seed has no spread"
    folders = {arm.record.parent.name for arm in report.arms if arm.record}
    assert len(folders) == 2, "records of two models lie apart"


def arm(label: str, support: str, f1: tuple[float, ...], right: list[float]) -> ArmScore:
    return ArmScore(label, support, f1, tuple(right), 1.0)


def test_support_models_are_tested_against_each_other_and_all_against_chance() -> None:
    """Means 2 and 4 of three seeds, variance 1: p is .070; 8 of 8 texts: signed ranks say .0078."""
    right, wrong = [1.0, 0.9, 0.8, 0.7, 1.0, 0.9, 0.8, 0.7], [0.0] * 8
    arms = [
        arm("attention", "plain", (3, 4, 5), right),
        arm("gradient", "plain", (3, 4, 5), right),
        arm("attention", "made", (1, 2, 3), wrong),
        arm("random-words", "plain", (1, 2, 3), wrong),
        arm("full text", "", (9, 9, 9), right),
    ]
    tests = _tests(arms)
    assert [(test.first, test.second) for test in tests] == [(0, 2), (0, 3), (1, 3), (2, 3)]
    assert tests[0].over_seeds == pytest.approx(0.0705, abs=1e-4)
    assert tests[0].over_examples.p == pytest.approx(2 / 256)
    assert tests[3].over_seeds == 1 and tests[3].over_examples.p is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"controls": ("full", "randm")}, "no control named 'randm'; did you mean 'random'?"),
        ({"models": ("a", "a")}, "a support model is named twice; give each --model once"),
    ],
)
def test_what_cannot_be_studied_is_one_line(
    study: Study, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(FaithbenchError) as caught:
        fresh(request_of(study[0], **changes), silent)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("kind", "labels"), [("qa", ["answerable"]), ("multiple-choice", ["A", "B"])]
)
def test_only_classifiers_are_trained(study: Study, kind: str, labels: list[str]) -> None:
    from tests.support.builders import make_task

    task = make_task(kind=kind, labels=labels, hub=None)
    with pytest.raises(FaithbenchError, match=f"mini is of kind {kind}, and faithbench fresh trai"):
        fresh(request_of(study[0], task=task), silent)
