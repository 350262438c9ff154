"""Figures of a network itself: counted by hand, kept by digest, and refused if broken."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.seals import parse_sealed, seal_json
from faithbench.core.types import Example
from faithbench.models.evaluation import outcomes
from faithbench.studies.reproduction.measures import figures as module
from faithbench.studies.reproduction.measures.figures import figures_of
from faithbench.testing import tiny_model
from faithbench.training.level_saliency import measure_levels, measure_removal
from tests.studies.reproduction import refuse
from tests.support.builders import make_task
from tests.support.training import dataset

EXAMPLES = (
    Example("a", "the plot is very dull and bad", 1, rationale=((17, 21), (26, 29))),
    Example("b", "good film", 1, rationale=((0, 4),)),
    Example("c", "a great plot , not bad", 0),
    Example("d", "the film is great", 0),
    Example("e", "w1 w2 very dull", 1),
)
DATA = dataset(make_task(hub=None), EXAMPLES, "test")


@pytest.fixture(autouse=True)
def predictions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network says yes, yes, yes, no, no: three of five are right."""
    monkeypatch.setattr(module, "outcomes", lambda *_: [1, 1, 1, 0, 0])


def test_scores_by_hand(tmp_path: Path) -> None:
    figures, _ = figures_of(tiny_model("cnn"), DATA, tmp_path, saliency=False)
    assert (figures.n, figures.right) == (5, (1, 1, 0, 1, 0))
    assert figures.by_id == {"a": 1.0, "b": 1.0, "c": 0.0, "d": 1.0, "e": 0.0}
    # Of three that are called yes, two are; of three that are yes, two are found. No: 1 of 2.
    assert figures.scores == {
        "accuracy": 0.6,
        "macro_f1": pytest.approx((2 / 3 + 1 / 2) / 2),
        "matthews": pytest.approx(1 / 6),
        "precision": pytest.approx(2 / 3),
        "recall": pytest.approx(2 / 3),
        "f1": pytest.approx(2 / 3),
    }
    assert figures.saliency == {}


def test_saliency_is_that_of_the_levels_and_of_the_removal(tmp_path: Path) -> None:
    model = tiny_model("cnn")
    figures, _ = figures_of(model, DATA, tmp_path, saliency=True)
    levels, removal = measure_levels(model, DATA), measure_removal(model, DATA)
    assert set(figures.saliency) == {
        "word", "intermediate", "decision", "word_unmarked", "intermediate_unmarked",
        "decision_unmarked", "tpr_before", "tpr_after", "tpr_drop",
    }  # fmt: skip
    for name, level in levels.items():
        assert figures.saliency[name] == pytest.approx(level.marked)
        assert figures.saliency[f"{name}_unmarked"] == pytest.approx(level.unmarked)
    # Three marked words, one gradient each.
    assert (figures.saliency["word"] or 0) * 3 == pytest.approx(round(3 * levels["word"].marked))
    assert figures.saliency["tpr_before"] == pytest.approx(removal.before)
    assert figures.saliency["tpr_after"] == pytest.approx(removal.after)


def test_each_text_contributes_its_own_words(tmp_path: Path) -> None:
    """The first has two marked words and the second one; the others have none, and no share."""
    figures, _ = figures_of(tiny_model("cnn"), DATA, tmp_path, saliency=True)
    shares = figures.by_text["word"]
    assert set(shares) == set(figures.by_text["tpr_before"]) == {"a", "b"}
    assert shares["a"] in (0.0, 0.5, 1.0) and shares["b"] in (0.0, 1.0)
    assert (2 * shares["a"] + shares["b"]) / 3 == pytest.approx(figures.saliency["word"])
    found = figures.by_text["tpr_after"]
    assert sum(found.values()) / 2 == pytest.approx(figures.saliency["tpr_after"])
    plain, _ = figures_of(tiny_model("cnn"), DATA, tmp_path, saliency=False)
    assert plain.by_text == {}


def test_figures_are_measured_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, folder = tiny_model("cnn"), tmp_path / "figures"
    first, ref = figures_of(model, DATA, folder, saliency=False)
    (path,) = folder.iterdir()
    assert ref.path == f"figures/{path.name}" and path.name.startswith("tiny-cnn-scores-")
    assert ref.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    monkeypatch.setattr(module, "outcomes", refuse)
    assert figures_of(model, DATA, folder, saliency=False) == (first, ref)
    # Other weights, texts or figures are another file.
    others = [
        (replace(model, sha256="other"), DATA, False),
        (model, replace(DATA, examples=EXAMPLES[:4]), False),
        (model, replace(DATA, sha256="other"), False),
        (model, DATA, True),
    ]
    for other, data, saliency in others:
        with pytest.raises(AssertionError, match="done already"):
            figures_of(other, data, folder, saliency=saliency)


def test_predictions_are_those_of_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "outcomes", outcomes)
    model = tiny_model("cnn")
    figures, _ = figures_of(model, DATA, tmp_path, saliency=False)
    said = outcomes(model, DATA)
    labels = [example.label for example in EXAMPLES]
    assert figures.right == tuple(int(a == b) for a, b in zip(said, labels, strict=True))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "Expecting property name"),
        ("more", "unknown key 'more'"),
        ("[]", "it holds no JSON object"),
        ("flip", "its content does not match its sha256"),
    ],
)
def test_a_broken_file_is_refused_in_one_line(tmp_path: Path, text: str, said: str) -> None:
    model = tiny_model("cnn")
    figures_of(model, DATA, tmp_path, saliency=False)
    (path,) = tmp_path.iterdir()
    whole = path.read_text()
    changed = {
        "more": seal_json(parse_sealed(whole.encode()) | {"more": 1}),
        "flip": whole.replace('"accuracy": 0.6', '"accuracy": 0.7'),
    }
    assert whole not in changed.values()
    path.write_text(changed.get(text, text))
    with pytest.raises(FaithbenchError) as caught:
        figures_of(model, DATA, tmp_path, saliency=False)
    message = str(caught.value)
    assert message.startswith(f"figures {path}: ") and said in message
    assert message.endswith("; remove the file to measure again") and "\n" not in message


def test_the_file_has_no_folder_of_this_machine(tmp_path: Path) -> None:
    place = tmp_path / "net"
    place.mkdir()
    model = replace(tiny_model("cnn"), name=str(place), folder=place)
    figures, ref = figures_of(model, DATA, tmp_path / "figures", saliency=False)
    assert figures.model == "net" and ref.path.startswith("figures/net-scores-")
    assert str(tmp_path) not in next((tmp_path / "figures").iterdir()).read_text()
