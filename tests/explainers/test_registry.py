"""Names and settings of explainers: how a list is read, and what every entry must be."""

from __future__ import annotations

import importlib
import inspect
import json
import subprocess
import sys
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass
from importlib.metadata import EntryPoint, version
from pathlib import Path
from typing import Any

import pytest

from faithbench.core import plugins
from faithbench.core.errors import FaithbenchError
from faithbench.core.spec import setting_text
from faithbench.explainers.protocol import reads_model
from faithbench.explainers.registry import (
    EXPLAINERS,
    installed_plugins,
    is_control,
    plugins_of_file,
    written_settings,
)
from faithbench.explainers.selection import Selected, configure, find_explainers


def complaint(text: str) -> str:
    with pytest.raises(FaithbenchError) as caught:
        find_explainers(text)
    return str(caught.value)


@pytest.mark.parametrize("name", EXPLAINERS)
def test_settings_read_from_the_source_are_those_of_the_class(name: str) -> None:
    (selected,) = find_explainers(name)
    said = {key: setting_text(value) for key, value in selected.settings.items()}
    assert written_settings(EXPLAINERS[name]) == said


# Reading a list


def test_settings_belong_to_the_name_before_them() -> None:
    first, second, third = find_explainers("lrp-mask:mask=ones,released=true,attention,random")
    assert (first.name, second.name, third.name) == ("lrp-mask", "attention", "random")
    assert first.settings == {
        "thresholds": "calibrated",
        "mask": "ones",
        "released": True,
        "precision": "mixed",
    }
    assert second.settings == {}


def test_spaces_and_empty_parts_mean_nothing() -> None:
    found = find_explainers(" attention ,, lrp-mask : mask = ones , released = TRUE,")
    assert [chosen.label for chosen in found] == ["attention", "lrp-mask:mask=ones,released=true"]


def test_labels_show_what_differs_from_the_default() -> None:
    found = find_explainers("lrp-mask:precision=float32,released=true,mask=both,lrp-mask")
    # In the order of the fields; mask=both is the default.
    assert [chosen.label for chosen in found] == [
        "lrp-mask:released=true,precision=float32",
        "lrp-mask",
    ]


def test_a_label_reads_back_as_itself() -> None:
    (chosen,) = find_explainers("lrp-mask:mask=random,released=true,thresholds=paper")
    assert find_explainers(chosen.label) == (chosen,)


def test_the_same_explainer_twice_is_once() -> None:
    found = find_explainers("random,attention,random,lrp-mask:mask=both,lrp-mask")
    assert [chosen.label for chosen in found] == ["random", "attention", "lrp-mask"]


def test_a_family_stands_for_its_names() -> None:
    for family in {entry.family for entry in EXPLAINERS.values()}:
        names = [chosen.name for chosen in find_explainers(f"all-{family}")]
        assert names == [name for name, entry in EXPLAINERS.items() if entry.family == family]
    every = [name for name, entry in EXPLAINERS.items() if not entry.by_name_only]
    assert [chosen.name for chosen in find_explainers("all")] == every
    assert [name for name in EXPLAINERS if name not in every] == ["l2e"]


def test_who_needs_a_rationale_is_left_out_of_all_without_one() -> None:
    usual = [name for name, entry in EXPLAINERS.items() if not entry.by_name_only]
    without = [name for name in usual if not EXPLAINERS[name].needs_rationale]
    assert [name for name in usual if name not in without] == ["human"]
    assert [chosen.name for chosen in find_explainers("all", rationale=False)] == without
    family = [chosen.name for chosen in find_explainers("all-control", rationale=False)]
    assert family == ["random", "first-tokens", "salience"]
    with pytest.raises(FaithbenchError, match="explainer 'human' shows a human rationale"):
        find_explainers("random,human", rationale=False)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lrp-msk", "no explainer named 'lrp-msk'; did you mean 'lrp-mask'?"),
        ("attention,atention", "no explainer named 'atention'; did you mean 'attention'?"),
        ("lrp-mask:musk=1", "no setting of lrp-mask named 'musk'; did you mean 'mask'?"),
        ("random:seed=1", "no setting of random named 'seed'; known: (it has none)"),
        ("lrp-mask:ones", "setting 'ones' of 'lrp-mask' has no value; write ones=value"),
        ("lrp-mask:released=yes", "lrp-mask: released is true or false, found 'yes'"),
        ("lime:samples=1.5", "lime: samples is a whole number, found '1.5'"),
        ("lime:samples=", "lime: samples is a whole number, found ''"),
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
    assert Selected("knobs", explainer).label == "knobs:on=true,steps=-3,rate=0.001,kind=12"
    whole: Any = configure("knobs", Knobs, {"rate": "2"})
    assert type(whole.rate) is float
    with pytest.raises(FaithbenchError, match="knobs: rate is a number, found 'fast'"):
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
    assert list(inspect.signature(kind.__call__).parameters) == ["self", "session", "batch"]
    assert getattr(kind, "needs_rationale", False) == entry.needs_rationale
    assert reads_model(default) != is_control(name), "a control is what does not read the model"


def test_controls_are_known_by_name() -> None:
    controls = [name for name in EXPLAINERS if is_control(name)]
    assert controls == ["random", "first-tokens", "human", "salience"]
    assert not is_control("a-plugin-that-is-not-installed")


def test_listing_loads_no_torch() -> None:
    code = "import sys, faithbench.explainers.registry; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


LOOSE = """
from dataclasses import dataclass
import numpy as np
from faithbench import explainer, per_example

@explainer("drop-one")
@per_example
@dataclass(frozen=True)
class DropOne:
    \"\"\"Score a token by how far the probability falls without it.\"\"\"

    scale: float = 1.0

    def __call__(self, probs, example):
        n = len(example.tokens)
        keep = np.vstack([np.ones(n, dtype=bool), ~np.eye(n, dtype=bool)])
        answers = probs(keep)
        return self.scale * (answers[0] - answers[1:])
"""


def test_a_loose_file_is_an_explainer(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(LOOSE)
    (chosen,) = find_explainers("drop-one:scale=2", [path])
    assert chosen.label == "drop-one:scale=2.0"
    assert chosen.package == "file mine.py"


def test_the_readme_plugin_is_short() -> None:
    assert len(LOOSE.strip().splitlines()) < 25


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1", "names no explainer and no metric"),
        ("import no_such_module_at_all", "does not import: ModuleNotFoundError"),
    ],
)
def test_a_broken_file_is_one_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(content)
    with pytest.raises(FaithbenchError, match=message) as caught:
        find_explainers("x", [path])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("weights: dict = None", "the default None"),
        ("weights: list = field(default_factory=list)", r"the default \[\]"),
        ("weights: float", "no default"),
    ],
)
def test_a_setting_that_no_record_can_keep_is_refused(
    tmp_path: Path, field: str, found: str
) -> None:
    path = tmp_path / "mine.py"
    with_field = LOOSE.replace("import dataclass", "import dataclass, field")
    path.write_text(with_field.replace("scale: float = 1.0", field))
    with pytest.raises(FaithbenchError, match=f"'drop-one' has a setting 'weights' with {found};"):
        find_explainers("drop-one", [path])


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"none\.py does not exist"):
        plugins_of_file(tmp_path / "none.py")


def test_a_plugin_that_fails_to_import_hurts_nobody_else(monkeypatch) -> None:
    install(monkeypatch, EntryPoint("broken", "no_such_module_at_all:X", "faithbench"))
    assert [p.name for p in installed_plugins()] == ["broken"]
    assert find_explainers("random")[0].name == "random"
    with pytest.raises(FaithbenchError, match=r"plugin 'broken' .* does not import"):
        find_explainers("broken")


def test_two_plugins_of_one_name_are_both_named(monkeypatch, tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(LOOSE.replace("drop-one", "random"))
    with pytest.raises(FaithbenchError, match=r"faithbench itself and file mine\.py"):
        find_explainers("random", [path])


def test_something_else_is_not_an_explainer(monkeypatch) -> None:
    install(monkeypatch, EntryPoint("odd", "math:sqrt", "faithbench"))
    with pytest.raises(FaithbenchError, match=r"'odd' .* is not an explainer"):
        find_explainers("odd")


def install(monkeypatch, *points: EntryPoint) -> None:
    monkeypatch.setattr(plugins, "entry_points", lambda group: list(points))
