"""The claim of Mask-LRP on made-up records: which rows are compared, and the verdicts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from faithbench.leaderboard.build import make_board
from faithbench.leaderboard.pages.heads_page import HeadTest, head_tests, heads_page, summary
from tests.support.stores import store

NONE = ()
N = 20
FORMS: dict[str, dict[str, Any]] = {
    "paper": {"thresholds": "paper", "mask": "both", "released": False},
    "random heads": {"thresholds": "paper", "mask": "random", "released": False},
    "released code": {"thresholds": "paper", "mask": "both", "released": True},
    "calibrated": {"thresholds": "calibrated", "mask": "both", "released": False},
}


def add(folder: Path, task: str, means: dict[str, float], seed: int = 0) -> None:
    noise = np.random.default_rng(seed)
    for index, (form, mean) in enumerate(means.items()):
        values = (mean + 0.02 * noise.normal(size=N)).round(6).tolist()
        name = "lrp-rollout" if form == "no mask" else "lrp-mask"
        store(
            folder / task, f"{name}-{index:08x}", {"aopc": values}, settings=FORMS.get(form, {}),
            task={"name": task},
        )  # fmt: skip


def head_tests_in(folder: Path) -> dict[str, HeadTest]:
    return {test.table: test for test in head_tests(make_board(folder, NONE).tables)}


def test_verdicts_follow_the_tests(tmp_path: Path) -> None:
    add(tmp_path, "better", {"paper": 0.5, "random heads": 0.4, "no mask": 0.6})
    add(tmp_path, "worse", {"paper": 0.4, "random heads": 0.5})
    add(tmp_path, "same", {"paper": 0.5, "random heads": 0.5}, seed=3)
    add(tmp_path, "other", {"calibrated": 0.5, "random heads": 0.4})
    tests = head_tests_in(tmp_path)
    assert {name: test.verdict for name, test in tests.items()} == {
        "better": "holds", "worse": "the opposite holds", "same": "no difference found",
    }  # fmt: skip
    assert tests["better"].aopc == pytest.approx(
        {"paper": 0.5, "random heads": 0.4, "no mask": 0.6}, abs=0.02
    )
    assert tests["better"].effect > 0.9 and tests["worse"].effect < -0.9
    # Holm over three tables: the smallest p counts three times.
    assert tests["better"].p is not None
    assert tests["better"].adjusted == pytest.approx(3 * tests["better"].p, rel=0.5)
    assert summary(list(tests.values())) == (
        "Of 3 tables, the paper's heads are significantly better than random ones (p < .05 after "
        "Holm) on 1, significantly worse on 1, and not told apart on 1."
    )


def test_the_page_shows_all_forms_side_by_side(tmp_path: Path) -> None:
    means = dict.fromkeys((*FORMS, "no mask"), 0.5)
    add(tmp_path, "one", means | {"released code": 0.7})
    page = heads_page(make_board(tmp_path, NONE))
    assert page is not None
    (line,) = [line for line in page.splitlines() if line.startswith("| [one](tasks/one.md)")]
    assert line.count("**") == 2 and line.endswith("| no difference found |")


def test_without_random_heads_there_is_no_page(tmp_path: Path) -> None:
    add(tmp_path, "one", {"paper": 0.5, "no mask": 0.4})
    assert heads_page(make_board(tmp_path, NONE)) is None
