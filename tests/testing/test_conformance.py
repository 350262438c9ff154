"""The conformance suite: every built-in passes it, and each kind of fault is caught."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from faithbench.core.errors import CannotServeError, FaithbenchError
from faithbench.explainers.selection import find_explainers
from faithbench.testing import conformance, tiny_model
from faithbench.testing.conformance import check_explainer, check_file
from faithbench.testing.served import SMALL, served
from faithbench.testing.tiny import ARCHITECTURES, WITHOUT_BLOCKS
from tests.support.explainers import USUAL


@pytest.mark.parametrize("name", USUAL)
def test_every_built_in_conforms(name: str) -> None:
    (selected,) = find_explainers(SMALL.get(name, name))
    check_explainer(selected.explainer)
    assert set(ARCHITECTURES) <= set(served()[name].architectures)


def test_who_learns_from_a_training_split_is_taught_first() -> None:
    (selected,) = find_explainers("salience:kind=tfidf")
    check_explainer(selected.explainer, architectures=("bert", "gpt2"))


# Who refuses networks without square attention or blocks, and with which words.
BY_RULES = ("deep-shap", "lrp", "lrp-partial", "attn-lrp")
OF_BLOCKS = ("alti", "value-zeroing")
OF_ATTENTION = ("attention", "attention-x-gradient", "grad-cam", "cam")
OF_SQUARES = ("rollout", "gae", "attcat", "attention-flow", "lrp-rollout", "lrp-mask")
REFUSE = {
    "cnn": {
        (*OF_ATTENTION, *OF_SQUARES): "a cnn model gives no attention matrices",
        BY_RULES: "rule for torch.nn.functional.conv1d",
        OF_BLOCKS: "has no blocks of attention",
    },
    "bilstm": {
        OF_SQUARES: "a bilstm model has no square attention",
        BY_RULES: "rule for torch.lstm",
        OF_BLOCKS: "has no blocks of attention",
    },
    "transformer": {
        OF_SQUARES: "a transformer model has no square attention",
        BY_RULES: "rule for torch.Tensor.masked_fill",
        OF_BLOCKS: "has no blocks of attention",
    },
    "xlnet": {
        (*OF_ATTENTION, *OF_SQUARES): "a xlnet model hands out copies of its attention",
        BY_RULES: "no .* rule for .*, which a xlnet model computes",
        OF_BLOCKS: "a xlnet model has no blocks of attention",
    },
    "t5": {
        (*OF_ATTENTION, *OF_SQUARES): "a t5 model attends in an encoder and in a decoder",
        ("lrp", "lrp-partial", "attn-lrp"): "no .* rule for .*, which a t5 model computes",
        OF_BLOCKS: "a t5 model has blocks in an encoder and in a decoder",
    },
    "bart": {
        (*OF_ATTENTION, *OF_SQUARES, "lrp", "lrp-partial"): "a bart model attends in an encoder",
        OF_BLOCKS: "a bart model has blocks in an encoder and in a decoder",
    },
    "longformer": {
        (*OF_ATTENTION, *OF_SQUARES): "a longformer model attends within windows",
        BY_RULES: "no .* rule for .*, which a longformer model computes",
        OF_BLOCKS: "a longformer model has no blocks of attention",
    },
    "fnet": {
        (*OF_ATTENTION, *OF_SQUARES): "a fnet model gives no attention matrices",
        BY_RULES: "no .* rule for .*, which a fnet model computes",
        OF_BLOCKS: "a fnet model has no blocks of attention",
    },
}


@pytest.mark.parametrize("name", USUAL)
@pytest.mark.parametrize("architecture", REFUSE)
def test_every_built_in_conforms_on_unusual_networks_or_refuses(
    architecture: str, name: str
) -> None:
    (selected,) = find_explainers(SMALL.get(name, name))
    said = next((said for names, said in REFUSE[architecture].items() if name in names), None)
    # What the reference page says of the explainer is what this test sees.
    assert (architecture in served()[name].architectures) == (said is None)
    models = [tiny_model(architecture, 3)]
    if architecture in WITHOUT_BLOCKS:
        models.append(tiny_model(architecture, 2, projection="sparsemax"))
    for model in models:
        if said is None:
            conformance.check_model(selected.explainer, model, longest=True)
            continue
        with pytest.raises(CannotServeError, match=said) as error:
            conformance.check_model(selected.explainer, model, longest=False)
        assert "\n" not in str(error.value) and "; choose " in str(error.value)


@dataclass(frozen=True)
class Faulty:
    fault: str = "none"

    def __call__(self, session, batch):
        scores = batch.ids.double()
        if self.fault == "shape":
            return scores[:, 1:]
        if self.fault == "nan":
            return scores / 0 - scores / 0
        if self.fault == "random":
            return torch.rand_like(scores)
        if self.fault == "batch":
            return scores / scores.sum()
        if self.fault == "hook":
            session.model.network.register_forward_hook(lambda *_: None)
        if self.fault == "train":
            session.model.network.train()
        if self.fault == "weights":
            next(session.model.network.parameters()).data.mul_(1.001)
        if self.fault == "grad":
            session.model.network.requires_grad_(True)
        return scores


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("shape", r"found scores of shape \(4, 12\), expected \(4, 13\); return one score per"),
        ("nan", "on tiny-bert: a score is not finite; check divisions by 0"),
        ("random", "two calls with the same seeds gave other scores; draw from a generator"),
        ("batch", "the scores of example 'e0' alone differ from those in a batch by"),
        ("hook", "changed the model's hooks; leave the model as it was"),
        ("train", "changed the model's mode"),
        ("weights", "changed the model's parameters"),
        ("grad", "changed the model's requires_grad"),
    ],
)
def test_each_fault_is_caught(fault: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_explainer(Faulty(fault), architectures=("bert",), longest=False)


def test_a_faultless_one_passes() -> None:
    check_explainer(Faulty(), architectures=("bert",))


class Constant:
    def __call__(self, session, batch):
        return batch.ids.double()


@dataclass(frozen=True)
class WithTuple(Constant):
    sizes: tuple[int, ...] = (1, 2)


@dataclass(frozen=True)
class WithNan(Constant):
    scale: float = float("nan")


@dataclass(frozen=True)
class WithoutDefault(Constant):
    scale: float


@dataclass
class Mutable(Constant):
    scale: float = 1.0


@pytest.mark.parametrize(
    ("explainer", "message"),
    [
        (WithTuple(), "setting 'sizes' of WithTuple is a tuple, expected bool, int, float or str"),
        (WithNan(), "settings of WithNan change when they are stored as JSON"),
        (WithoutDefault(2.0), "cannot be made without settings .* give every field a default"),
        (Mutable(), r"write @dataclass\(frozen=True\) above the class"),
        (Constant(), "Constant is not a dataclass"),
    ],
)
def test_settings_must_be_plain(explainer: object, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_explainer(explainer)


PLUGIN = """
from dataclasses import dataclass
from faithbench import explainer

@explainer("position")
@dataclass(frozen=True)
class Position:
    scale: float = 1.0
    def __call__(self, session, batch):
        return self.scale * batch.ids.double()
"""


def test_every_explainer_of_a_file_is_checked(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    second = PLUGIN.replace("Position", "Broken").replace('"position"', '"broken"')
    path.write_text(PLUGIN + second.replace("batch.ids.double()", "batch.ids.double()[:, 1:]"))
    with pytest.raises(AssertionError, match="Broken on tiny-bert: found scores of shape"):
        check_file(path, architectures=("bert",), longest=False)


def test_a_file_may_be_named_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    check_file("mine.py", architectures=("bert",), longest=False)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            '@explainer("position")\n',
            "",
            "names no explainer and no metric; put @faithbench",
        ),
        (" = 1.0", "", "explainer 'position' has a setting 'scale' with no default"),
        ("@dataclass(frozen=True)\n", "", "must be a frozen dataclass with a __call__ method"),
        ("batch.ids", "batch.", "does not import: SyntaxError"),
    ],
)
def test_a_file_that_cannot_be_checked_says_why(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    path = tmp_path / "plugin.py"
    path.write_text(PLUGIN.replace(old, new).replace("batch..", "batch. ."))
    with pytest.raises((AssertionError, FaithbenchError), match=message):
        check_file(path)


def test_a_file_of_metrics_alone_has_nothing_to_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conformance, "plugins_of_file", lambda path: ())
    with pytest.raises(AssertionError, match=r"metrics\.py names no explainer, so there is"):
        check_file(tmp_path / "metrics.py")


def test_the_room_resolves_its_names_lazily() -> None:
    code = """
import sys
import faithbench.testing as testing
print({"torch", "transformers"} & set(sys.modules))
print([getattr(testing, name) is not None for name in testing.__all__])
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == ["set()", "[True, True, True, True, True]"]
    import faithbench.testing

    with pytest.raises(AttributeError, match=r"'faithbench\.testing' has no attribute 'check'"):
        _ = faithbench.testing.check
