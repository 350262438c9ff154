"""Objectives by name: built in, in a file of their own, and from installed packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
import torch.nn.functional as F

from faithbench.core.errors import FaithbenchError
from faithbench.models.encoding import inputs_of
from faithbench.training import objectives
from faithbench.training.base import find_base, start_model
from faithbench.training.fit import fit
from faithbench.training.items import batches, collate_items, make_training_set, schedule
from faithbench.training.objectives import find_objective, find_objectives, objective
from faithbench.training.objectives.cross_entropy import CrossEntropy
from faithbench.training.recipe import Recipe, Splits
from tests.support.training import (
    WHOLE,
    killer,
    label_splits,
    load_weights,
    save_base,
    silent,
)

TOYS = Path(__file__).parents[1] / "support" / "objectives"
# Two batches of four, one epoch; without dropout no random number is drawn on the way.
TWO_STEPS = replace(
    WHOLE, epochs=1, encoder_dropout=0.0, objectives=("label-smoothing:amount=0.3",)
)


@pytest.fixture(autouse=True)
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """A copy of the registry, so that what a test adds is gone after it."""
    find_objective()  # import the built-in ones into the lasting registry
    known = set(sys.modules)
    copy = dict(objectives._OBJECTIVES)
    monkeypatch.setattr(objectives, "_OBJECTIVES", copy)
    yield copy
    for name in set(sys.modules) - known:
        if name.startswith(f"{objectives.__name__}."):
            del sys.modules[name]


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the one file of `label-smoothing` among the objectives."""
    monkeypatch.setattr(objectives, "__path__", [*objectives.__path__, str(TOYS)])


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_base(tmp_path_factory.mktemp("bases"), "bert")


def test_the_default_is_cross_entropy() -> None:
    chosen = find_objective()
    assert (chosen.name, chosen.loss, chosen.settings) == ("cross-entropy", CrossEntropy(), {})
    assert chosen.is_default and find_objectives(Recipe().objectives).selected == (chosen,)


@pytest.mark.usefixtures("toy")
def test_one_file_adds_an_objective_with_settings() -> None:
    chosen = find_objective("label-smoothing:amount=0.3")
    assert chosen.name == "label-smoothing" and chosen.package == ""
    assert chosen.settings == {"amount": 0.3}
    assert not chosen.is_default
    assert find_objective("label-smoothing").settings == {"amount": 0.1}


@pytest.mark.usefixtures("toy")
def test_two_steps_with_the_toy_are_those_with_torch_s_label_smoothing(
    base: Path, tmp_path: Path
) -> None:
    splits = eight_rows()
    fit(splits, TWO_STEPS, tmp_path / "out", silent, base=str(base), device="cpu")
    by_hand = two_steps_by_hand(splits, base, smoothing=0.3)
    without = two_steps_by_hand(splits, base, smoothing=0.0)
    trained = load_weights(tmp_path / "out")
    for name, weight in trained.items():
        torch.testing.assert_close(weight, by_hand[name], rtol=1e-4, atol=1e-6)
    farthest = max((trained[name] - without[name]).abs().max() for name in trained)
    assert farthest > 1e-3, "the amount shows in the weights"


@pytest.mark.usefixtures("toy")
def test_card_and_resumed_run_know_an_objective_that_is_not_the_default(
    base: Path, tmp_path: Path
) -> None:
    splits, out = eight_rows(), tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        fit(splits, TWO_STEPS, out, killer("epoch 1/1", 2), base=str(base), device="cpu")
    for other in ("label-smoothing:amount=0.2", "cross-entropy"):
        with pytest.raises(FaithbenchError, match="holds a training with other data or settings"):
            fit(splits, replace(TWO_STEPS, objectives=(other,)), out, silent, base=str(base))
    # Written in another way, it is the same objective.
    same = replace(TWO_STEPS, objectives=(" label-smoothing : amount = 0.30 ",))
    card = fit(splits, same, out, silent, base=str(base), device="cpu")
    told = {"name": "label-smoothing", "settings": {"amount": 0.3}}
    assert card["recipe"]["objectives"] == [told]


@pytest.mark.usefixtures("toy")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("cross-entrpy", "no objective named 'cross-entrpy'; did you mean 'cross-entropy'?"),
        ("label-smoothin", "no objective named 'label-smoothin'; did you mean 'label-smoothing'?"),
        (
            "cross-entropy:amount=1",
            "no setting of cross-entropy named 'amount'; known: (it has none)",
        ),
        ("label-smoothing:amount=much", "label-smoothing: amount is a number, found 'much'"),
        ("saloss:weight=-1", "objective saloss: weight is at least 0, found -1"),
        ("saloss:weight=nan", "saloss: weight is a finite number, found 'nan'"),
        ("amount=0.1", "setting 'amount=0.1' has no objective; write name:amount=0.1"),
        (
            "cross-entropy,label-smoothing",
            "--objective 'cross-entropy,label-smoothing' should be one objective, such as "
            "cross-entropy or name:key=value",
        ),
        (
            "",
            "--objective '' should be one objective, such as cross-entropy or name:key=value",
        ),
    ],
)
def test_a_fault_in_the_choice_is_named(text: str, message: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        find_objective(text)
    assert str(caught.value) == message


def test_an_auxiliary_objective_gets_cross_entropy_first(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "attentive", "Attentive")
    both = find_objectives(("attentive",))
    assert [one.name for one in both.selected] == ["cross-entropy", "attentive"]
    assert both.losses == (CrossEntropy(), Attentive()) and both.captures == {"attentions"}
    assert not both.is_default and find_objectives(()).is_default
    named = find_objectives(("attentive", "cross-entropy"))
    assert [one.name for one in named.selected] == ["attentive", "cross-entropy"]
    with pytest.raises(FaithbenchError, match="objective 'attentive' is given twice; name it once"):
        find_objectives(("attentive", "attentive:weight=3"))


def test_an_objective_of_weight_0_is_told_but_not_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    install(monkeypatch, "attentive", "Attentive")
    none = find_objectives(("attentive:weight=0",))
    assert none.losses == (CrossEntropy(),) and none.captures == frozenset()
    assert [one.name for one in none.selected] == ["cross-entropy", "attentive"]


def test_an_unknown_objective_leaves_no_folder(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="no objective named 'hinge'"):
        fit(label_splits(), replace(WHOLE, objectives=("hinge",)), tmp_path / "out", silent)
    assert not (tmp_path / "out").exists()


def test_two_classes_of_one_name_are_refused_but_not_a_class_defined_again(
    registry: dict[str, Any],
) -> None:
    again = type("CrossEntropy", (), {"__module__": CrossEntropy.__module__})
    assert objective("cross-entropy")(again) is again
    assert registry["cross-entropy"] is again
    with pytest.raises(FaithbenchError, match="two objectives are named 'cross-entropy'; rename"):
        objective("cross-entropy")(Plain)


@dataclass(frozen=True)
class Plain:
    """Zero times the logits; a module's own class, as a package would bring it."""

    weight: int = 2

    def __call__(self, batch: Any, forward: Any) -> torch.Tensor:
        return 0 * forward.logits[0].sum()


@dataclass(frozen=True)
class Attentive(Plain):
    captures: ClassVar = frozenset({"attentions"})
    auxiliary: ClassVar = True
    weight: float = 2.0


class NoDataclass:
    def __call__(self) -> None: ...


def test_an_installed_package_brings_an_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "plain", "Plain")
    chosen = find_objective("plain:weight=3")
    assert (chosen.loss, chosen.package) == (Plain(3), "toys 1.2")
    with pytest.raises(FaithbenchError, match="did you mean 'plain'"):
        find_objective("plane")


@pytest.mark.parametrize(
    ("name", "target", "message"),
    [
        (
            "absent",
            "Absent",
            f"plugin 'absent' ({__name__}:Absent) does not import: AttributeError: module "
            f"'{__name__}' has no attribute 'Absent'",
        ),
        (
            "bare",
            "NoDataclass",
            "plugin 'bare' of package toys is not an objective: it must be a frozen "
            "dataclass with a __call__ method",
        ),
        (
            "cross-entropy",
            "Plain",
            "objective 'cross-entropy' is defined by faithbench itself and package toys; "
            "uninstall one",
        ),
    ],
)
def test_a_package_that_brings_no_usable_objective_is_named(
    name: str, target: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, name, target)
    with pytest.raises(FaithbenchError) as caught:
        find_objective(name)
    assert str(caught.value) == message


def install(monkeypatch: pytest.MonkeyPatch, name: str, target: str) -> None:
    """Pretend that a package `toys` names a class of this file as its objective."""

    class Point(EntryPoint):
        dist = type("Toys", (), {"name": "toys", "version": "1.2"})

    def entry_points(group: str) -> list[EntryPoint]:
        assert group == "faithbench.objectives"
        return [Point(name, f"{__name__}:{target}", group)]

    monkeypatch.setattr("faithbench.core.plugins.entry_points", entry_points)


def eight_rows() -> Splits:
    splits = label_splits()
    return replace(splits, train=replace(splits.train, examples=splits.train.examples[:8]))


def two_steps_by_hand(splits: Splits, base: Path, *, smoothing: float) -> dict[str, torch.Tensor]:
    """Take the same two steps with torch's loss, and return the weights."""
    model = start_model(splits.train.task, TWO_STEPS, find_base(str(base)), "cpu")
    items = make_training_set(model, splits.train, silent).items
    optimizer = torch.optim.AdamW(
        model.network.parameters(), lr=TWO_STEPS.learning_rate, weight_decay=TWO_STEPS.weight_decay
    )
    for step, chosen in enumerate(batches(items, TWO_STEPS, 0)):
        optimizer.param_groups[0]["lr"] = TWO_STEPS.learning_rate * schedule(step, 2, 0.06)
        batch = collate_items(model, chosen, None)
        inputs = inputs_of(model.network, batch.ids, batch.types, batch.attention)
        logits = model.network(**inputs).logits
        loss = F.cross_entropy(logits, batch.targets[:, 0], label_smoothing=smoothing)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.network.parameters(), 1.0)
        optimizer.step()
    return {name: weight.detach() for name, weight in model.network.state_dict().items()}
