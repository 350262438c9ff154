"""`faithbench distil`: a student from the command line, what it prints, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.builders import MINI
from tests.support.commands import Call
from tests.support.students import put_texts
from tests.support.training import save_base


@pytest.fixture
def asked(tmp_path: Path) -> list[str]:
    """Return the arguments of a small distillation."""
    put_texts(tmp_path, 120)
    model = save_base(tmp_path, "bert")
    task = tmp_path / "mini.toml"
    task.write_text(f'{MINI}[folder]\nname = "mini"\nsplits = {{train = "learn"}}\n')
    return [
        "distil", "--task", str(task), "--model", str(model), "--data", str(tmp_path),
        "--teacher", "gradient", "--seeds", "1", "--epochs", "1", "--width", "8","--blocks", "1",
        "--out", str(tmp_path / "student"), "--explanations", str(tmp_path / "explanations"),
    ]  # fmt: skip


def test_a_student_is_made_and_shown(call: Call, asked: list[str], tmp_path: Path) -> None:
    said = call(*asked)
    assert said.code == 0, said.err
    assert "A student of gradient (labelling)" in said.out
    assert f"l2e:student={tmp_path / 'student'}" in said.out.replace("\n", "")
    assert "of the model's own forward pass" in " ".join(said.out.split())
    shown = said.out[said.out.index("A student of") :]
    table = shown[: shown.index("Use it:")]
    assert max(map(len, table.splitlines())) <= 80
    again = call(*asked)
    assert again.code == 0 and again.out.endswith(shown), "what is there is shown again"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--form", "labels"], "no form of a student named 'labels'"),
        (["--recipe", "papr"], "no recipe of students named 'papr'; did you mean 'paper'?"),
        (["--target", "absolute"], "use it with --form ranking"),
        (["--width", "10"], "a width of 10 cannot be split between 4 heads"),
        (["--limit", "50"], "50 texts are too few to learn from"),
        (["--teacher", "gradent"], "no explainer named 'gradent'; did you mean 'gradient'?"),
        (["--teacher", "none.json"], "none.json"),
    ],
)
def test_each_wrong_turn_is_one_line(
    call: Call, asked: list[str], more: list[str], said: str
) -> None:
    answer = call(*asked, *more)
    assert answer.code == 1 and said in answer.err
    assert len(answer.err.strip().splitlines()) == 1
