"""`faithbench study sparse-attention`: its help, its refusals in one line, and its last lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faithbench.run import backends
from faithbench.studies.sparse_attention import plan, study
from faithbench.studies.sparse_attention.page import Study
from faithbench.studies.sparse_attention.plan import StudyRequest, TaskPlan
from tests.support.builders import MINI
from tests.support.commands import Call, complaint

STUDY = ("study", "sparse-attention")


def put_task(folder: Path, splits: str, texts: dict[str, list[str]] | None = None) -> None:
    """Write mini.toml and, for each of its files, rows of these texts."""
    table = f'[models]\n[folder]\nname = "mini"\nsplits = {{ {splits} }}\n'
    (folder / "mini.toml").write_text(MINI + table)
    (folder / "mini").mkdir()
    for name, rows in (texts or {}).items():
        lines = [
            json.dumps({"id": f"{name}{n}", "text": text, "label": n % 2})
            for n, text in enumerate(rows)
        ]
        (folder / "mini" / f"{name}.jsonl").write_text("\n".join(lines) + "\n")


def test_help_says_what_is_asked_and_what_is_kept(call: Call) -> None:
    said = call(*STUDY, "--help")
    assert said.code == 0 and "Is sparse attention more interpretable?" in said.out
    for option in ("--task", "--seeds", "--arch", "--vectors", "--quick", "--jobs", "--out"):
        assert option in said.out
    assert "sst2,news20" in said.out and "bilstm,transformer" in said.out
    assert "sparse-attention" in call("study", "--help").out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--task", "sst3"), "no task named 'sst3'; did you mean 'sst2'"),
        (("--task", ","), "a study needs a task; give --task sst2,news20"),
        (("--task", "squad"), "task squad is of kind qa, and these networks classify single"),
        (("--arch", "lstm"), "no architecture with attention named 'lstm'; did you mean 'bilstm'"),
        (("--arch", "bilstm,bert"), "no architecture with attention named 'bert'"),
        (("--arch", ","), "a study needs an architecture; give --arch bilstm,transformer"),
        (("--vectors", "glov"), "no word vectors named 'glov'; did you mean 'glove'"),
        (("--out", "a,b"), "--out a,b has a comma in it; choose another --out"),
        (("--task", "mini.toml"), "task mini has no training data, so that no network can be"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    words: tuple[str, ...], said: str, call: Call, tmp_path: Path
) -> None:
    put_task(tmp_path, 'test = "test"')
    assert complaint(call(*STUDY, *words)).startswith(said)
    assert not (tmp_path / "studies").exists(), "nothing was begun"


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("folder", "cannot read split 'train' of task mini (folder: no file "),
        ("disk", "no data source named 'disk'; known: auto, bundled, folder, hub"),
    ],
)
def test_data_that_are_not_there_are_told_in_one_line(
    source: str, said: str, call: Call, tmp_path: Path
) -> None:
    put_task(tmp_path, 'train = "train", test = "test"')
    words = ("--task", "mini.toml", "--data", tmp_path, "--source", source, "--vectors", "random")
    stopped = call(*STUDY, *words)
    assert stopped.out == "reading mini\n"
    assert complaint(stopped._replace(out="")).startswith(said)


@pytest.mark.parametrize("words", [("--seeds", "0"), ("--seeds", "two"), ("--jobs", "0")])
def test_usage_errors_end_with_2(words: tuple[str, ...], call: Call) -> None:
    said = call(*STUDY, *words)
    assert said.code == 2 and words[0] in said.err and "Traceback" not in said.err


def test_a_study_of_few_texts_ends_with_verdicts_and_the_page(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = TaskPlan(epochs=1, max_tokens=8, texts=3, positions=2, adversaries=False)
    monkeypatch.setattr(plan, "OTHERS", small)
    texts = [f"{('bad', 'good')[n % 2]} film w{n}" for n in range(12)]
    put_task(
        tmp_path,
        'train = "train", dev = "dev", test = "test"',
        {"train": texts, "dev": texts[:4], "test": texts[4:10]},
    )
    said = call(
        *STUDY, *("--task", "mini.toml", "--data", tmp_path, "--source", "folder"),
        *("--vectors", "random", "--arch", "bilstm", "--quick", "--out", "there"),
    )  # fmt: skip
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[-1] == "page: there/sparse-attention.md"
    assert lines[-2] == "a quick study proves nothing; leave out --quick for one that does"
    assert any("cannot be told" in line for line in lines)
    names = sorted(path.stem for path in (tmp_path / "there" / "records").glob("*.json"))
    assert names == [
        "mini-bilstm-softmax-seed0",
        "mini-bilstm-softmax-untrained",
        "mini-bilstm-sparsegen--1-seed0",
        "mini-bilstm-sparsegen-0.9-seed0",
        "mini-bilstm-sparsemax-seed0",
    ]


@pytest.mark.parametrize(
    ("words", "folder", "changes"),
    [
        ((), "sparse-attention", {}),
        (("--quick",), "sparse-attention-quick", {"quick": True}),
        (
            ("--seeds", "2", "--arch", "transformer", "--jobs", "2", "--device", "cpu"),
            "sparse-attention",
            {"seeds": 2, "archs": ("transformer",), "jobs": 2, "device": "cpu"},
        ),
    ],
)
def test_options_reach_the_request(
    words: tuple[str, ...],
    folder: str,
    changes: dict[str, Any],
    call: Call,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    requests: list[StudyRequest] = []
    monkeypatch.setattr(backends, "default_processes", lambda: 3)

    def make(request: StudyRequest, _progress: object) -> Study:
        requests.append(request)
        return Study((), (), request.quick, "", "")

    monkeypatch.setattr(study, "study_sparse_attention", make)
    monkeypatch.setattr(Study, "claims", ())
    assert call(*STUDY, *words).code == 0
    usual = StudyRequest(("sst2", "news20"), Path("studies") / folder, seeds=3, jobs=3)
    fields = vars(usual) | changes
    assert requests == [StudyRequest(**fields)]


def test_ctrl_c_says_what_is_kept(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(study, "study_sparse_attention", stop)
    said = call(*STUDY)
    assert said.code == 130
    assert "finished networks and records are kept" in " ".join(said.err.split())
