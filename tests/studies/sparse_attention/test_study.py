"""The whole study of a few made texts: its files, what a second call does, and refusals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.studies.sparse_attention import adversary, measure, networks, study
from faithbench.studies.sparse_attention.plan import StudyRequest
from faithbench.studies.sparse_attention.record import read_record
from faithbench.studies.sparse_attention.study import (
    PAGE,
    command_of,
    study_sparse_attention,
)

Make = Callable[..., StudyRequest]


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refuse(*_: Any, **__: Any) -> Any:
    raise AssertionError("this was done already")


def test_a_study_from_data_to_page_and_not_twice(
    study_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Networks, a control and adversaries of a small task; then nothing but the page again."""
    monkeypatch.setattr(adversary, "MORE_WEIGHTS", ())
    request = study_request(seeds=2)
    said: list[str] = []
    made = study_sparse_attention(request, lambda what, *_: said.append(what))
    assert (said[0], said[-1]) == ("reading mini", "writing the page")
    names = [f"mini-bilstm-{one}-seed{n}" for one in ("softmax", "sparsemax") for n in (0, 1)]
    assert [record.network.name for record in made.records] == [
        *names,
        "mini-bilstm-softmax-untrained",
    ]
    assert [one.network for one in made.adversaries] == names
    for record in made.records:
        assert read_record(request.records / f"{record.network.name}.json") == record
    before = files(request.out)
    text = before[PAGE].decode()
    assert f"`{made.command}`" in text and "nan" not in text.lower()
    assert str(request.out.parent) not in text, "no folder of this machine"
    for module, name in ((networks, "fit"), (measure, "_values"), (adversary, "_measured")):
        monkeypatch.setattr(module, name, refuse)
    assert study_sparse_attention(request) == made
    assert files(request.out) == before


def test_a_killed_study_continues_to_the_same_records(
    study_request: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed in the second training, in measuring, and at an adversary."""
    monkeypatch.setattr(adversary, "MORE_WEIGHTS", ())
    whole = study_sparse_attention(study_request(out=tmp_path / "whole"))
    request = study_request()
    for at in ("network 2/2 (mini, bilstm, sparsemax, seed 0): epoch", "measuring mini, bilstm, sp",
               "adversary 2/2: epoch"):  # fmt: skip
        before = files(request.out)
        with pytest.raises(KeyboardInterrupt):
            study_sparse_attention(request, killer(at))
        after = files(request.out)
        assert PAGE not in after
        finished = {name for name in before if name.endswith(("card.json", "-seed0.json"))}
        assert all(after[name] == before[name] for name in finished)
    continued = study_sparse_attention(request)
    for ours, theirs in zip(continued.records, whole.records, strict=True):
        assert (ours.network, ours.values) == (theirs.network, theirs.values)
    drop = {"timing"}
    assert [one.model_dump(exclude=drop) for one in continued.adversaries] == [
        one.model_dump(exclude=drop) for one in whole.adversaries
    ]


def killer(start: str) -> Callable[[str, int, int], None]:
    """Return a progress callback that interrupts where a text that begins like this is said."""

    def progress(what: str, _done: int, _total: int) -> None:
        if what.startswith(start):
            raise KeyboardInterrupt

    return progress


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tasks": ()}, "a study needs a task"),
        ({"tasks": ("mini.toml", "sst3")}, "no task named 'sst3'"),
        ({"archs": ()}, "a study needs an architecture"),
        ({"archs": ("cnn",)}, "no architecture with attention named 'cnn'"),
        ({"vectors": "word2vec"}, "no word vectors named 'word2vec'"),
        ({"out": Path("a,b")}, "--out a,b has a comma in it; choose another --out"),
    ],
)
def test_a_bad_request_is_refused_before_data_are_read(
    changes: dict[str, Any], said: str, study_request: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "read_splits", refuse)
    request = study_request(**changes)
    with pytest.raises(FaithbenchError) as caught:
        study_sparse_attention(request)
    assert str(caught.value).startswith(said) and "\n" not in str(caught.value)
    assert not request.out.exists()


def test_data_of_all_tasks_are_read_before_the_first_training(
    study_request: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = study_request(tasks=("mini.toml", "other.toml"))
    text = (tmp_path / "mini.toml").read_text()
    (tmp_path / "other.toml").write_text(text.replace('"mini"', '"other"'))
    monkeypatch.setattr(study, "trained_networks", refuse)
    with pytest.raises(FaithbenchError, match="cannot read split 'train' of task other"):
        study_sparse_attention(request)


def test_the_command_has_what_is_not_usual_and_no_folder_of_this_machine() -> None:
    usual = StudyRequest(("sst2", "news20"), Path("/home/me/out"))
    start = "faithbench study sparse-attention --task sst2,news20 --seeds 3"
    assert command_of(usual) == start
    other = replace(
        usual, folder=Path("/home/me/data"), vectors="glove", quick=True, archs=("bilstm",)
    )
    assert command_of(other) == f"{start} --arch bilstm --data DATA --vectors glove --quick"
