"""Names and settings of explainers: how a list is read, and what every entry must be."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from importlib.metadata import version
from typing import Any

import pytest

from faithbench.catalog import EXPLAINERS
from faithbench.errors import FaithbenchError
from faithbench.selection import Chosen, configure, find_explainers


def complaint(text: str) -> str:
    with pytest.raises(FaithbenchError) as caught:
        find_explainers(text)
    return str(caught.value)


# Reading a list


def test_settings_belong_to_the_name_before_them() -> None:
    first, second, third = find_explainers("lrp-mask:mask=ones,seed=3,attention,random")
    assert (first.name, second.name, third.name) == ("lrp-mask", "attention", "random")
    assert first.settings == {
        "thresholds": "calibrated",
        "mask": "ones",
        "released": False,
        "precision": "float64",
        "seed": 3,
    }
    assert second.settings == {}


def test_spaces_and_empty_parts_mean_nothing() -> None:
    found = find_explainers(" attention ,, lrp-mask : mask = ones , released = TRUE,")
    assert [chosen.label for chosen in found] == ["attention", "lrp-mask:mask=ones,released=true"]


def test_labels_show_what_differs_from_the_default() -> None:
    found = find_explainers("lrp-mask:seed=7,released=true,mask=both,lrp-mask")
    # In the order of the fields; mask=both is the default.
    assert [chosen.label for chosen in found] == ["lrp-mask:released=true,seed=7", "lrp-mask"]


def test_a_label_reads_back_as_itself() -> None:
    (chosen,) = find_explainers("lrp-mask:mask=random,seed=-2,released=true,thresholds=paper")
    assert find_explainers(chosen.label) == (chosen,)


def test_the_same_explainer_twice_is_once() -> None:
    found = find_explainers("random,attention,random,lrp-mask:seed=0,lrp-mask")
    assert [chosen.label for chosen in found] == ["random", "attention", "lrp-mask"]


def test_a_family_stands_for_its_names() -> None:
    for family in {entry.family for entry in EXPLAINERS.values()}:
        names = [chosen.name for chosen in find_explainers(f"all-{family}")]
        assert names == [name for name, entry in EXPLAINERS.items() if entry.family == family]
    assert [chosen.name for chosen in find_explainers("all")] == list(EXPLAINERS)


def test_who_needs_a_rationale_is_left_out_of_all_without_one() -> None:
    without = [name for name, entry in EXPLAINERS.items() if not entry.needs_rationale]
    assert [name for name in EXPLAINERS if name not in without] == ["human"]
    assert [chosen.name for chosen in find_explainers("all", rationale=False)] == without
    family = [chosen.name for chosen in find_explainers("all-control", rationale=False)]
    assert family == ["random", "first-tokens"]
    with pytest.raises(FaithbenchError, match="explainer 'human' shows a human rationale"):
        find_explainers("random,human", rationale=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lrp-msk", "no explainer named 'lrp-msk'; did you mean 'lrp-mask'?"),
        ("attention,atention", "no explainer named 'atention'; did you mean 'attention'?"),
        ("lrp-mask:sead=1", "no setting of lrp-mask named 'sead'; did you mean 'seed'?"),
        ("random:seed=1", "no setting of random named 'seed'; known: (it has none)"),
        ("lrp-mask:ones", "setting 'ones' of 'lrp-mask' has no value; write ones=value"),
        ("lrp-mask:released=yes", "lrp-mask: released is true or false, found 'yes'"),
        ("lrp-mask:seed=1.5", "lrp-mask: seed is a int, found '1.5'"),
        ("lrp-mask:seed=", "lrp-mask: seed is a int, found ''"),
        (":mask=ones", "setting 'mask=ones' has no explainer; write name:mask=ones"),
        ("mask=ones", "setting 'mask=ones' has no explainer; write name:mask=ones"),
        ("all-relevanse", "no family named 'relevanse'; did you mean 'relevance'?"),
        ("all:seed=1", "all takes no settings; name the explainers one by one"),
    ],
)
def test_what_cannot_be_read(text: str, said: str) -> None:
    assert complaint(text) == said


@pytest.mark.parametrize("text", ["", " , ", "qqqq"])
def test_nothing_of_that_name(text: str) -> None:
    known = ", ".join(sorted(EXPLAINERS))
    assert complaint(text) == f"no explainer named {text!r}; known: {known}"


@dataclass(frozen=True)
class Knobs:
    """Have one setting of each kind."""

    on: bool = False
    steps: int = 4
    rate: float = 0.5
    kind: str = "fine"


def test_each_setting_is_read_as_its_defaults_type() -> None:
    given = {"on": "True", "steps": "-3", "rate": "1e-3", "kind": "12"}
    explainer: Any = configure("knobs", Knobs, given)
    assert explainer == Knobs(True, -3, 0.001, "12")
    assert type(explainer.kind) is str
    assert Chosen("knobs", explainer).label == "knobs:on=true,steps=-3,rate=0.001,kind=12"
    whole: Any = configure("knobs", Knobs, {"rate": "2"})
    assert type(whole.rate) is float
    with pytest.raises(FaithbenchError, match="knobs: rate is a float, found 'fast'"):
        configure("knobs", Knobs, {"rate": "fast"})


# Every entry


@pytest.mark.parametrize("name", EXPLAINERS)
def test_entry(name: str) -> None:
    entry = EXPLAINERS[name]
    module, _, attribute = entry.target.partition(":")
    kind = getattr(importlib.import_module(module), attribute)
    assert is_dataclass(kind)
    assert inspect.getdoc(kind).splitlines()[0] == entry.summary
    assert entry.summary.endswith(".")
    assert name == name.lower().replace("_", "-")
    default = kind()
    for field in fields(kind):
        assert type(getattr(default, field.name)) in (bool, int, float, str), field.name
        with pytest.raises(FrozenInstanceError):
            setattr(default, field.name, 1)
    (chosen,) = find_explainers(name)
    assert (chosen.name, chosen.explainer, chosen.label) == (name, default, name)
    assert (chosen.package, chosen.version) == ("faithbench", version("faithbench"))
    settings = json.loads(json.dumps(chosen.settings, allow_nan=False))
    assert kind(**settings) == default
    assert list(inspect.signature(kind.__call__).parameters) == ["self", "model", "batch"]
    assert getattr(kind, "needs_rationale", False) == entry.needs_rationale


def test_listing_loads_no_torch() -> None:
    code = "import sys, faithbench.catalog; assert 'torch' not in sys.modules, 'torch was loaded'"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
