"""Columns of a table: means, tests and ties by hand; variants of a metric are never mixed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.leaderboard.board import Column, Table
from faithbench.leaderboard.build import make_board
from tests.support.records import forge_record
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]
ZERO = [0.0] * 7
NONE = ()


def table_of(folder: Path) -> Table:
    (table,) = make_board(folder, NONE).tables
    return table


def column_of(table: Table, metric: str) -> Column:
    return next(column for column in table.columns if column.metric == metric)


def test_two_explainers_by_hand(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"aopc": UP, "lodds": UP, "fi_entropy": UP})
    store(tmp_path, "zero-22222222", {"aopc": ZERO, "lodds": [None, *ZERO[1:]], "fi_entropy": UP})
    table = table_of(tmp_path)
    aopc = column_of(table, "aopc")
    assert list(aopc.cells) == ["lime", "zero"] and aopc.title == "AOPC"
    lime, zero = aopc.cells.values()
    assert lime.mean == pytest.approx(2.85 / 7, abs=1e-9)
    assert (lime.n, lime.skipped, lime.letters, lime.best, lime.tie) == (7, 0, "a", True, False)
    assert (zero.mean, zero.ci95) == (0.0, (0.0, 0.0))
    assert (zero.letters, zero.best, zero.tie) == ("b", False, False)
    # All seven up: 2 of 128 sign patterns are as extreme, and Holm counts one test.
    (pair,) = aopc.pairs
    assert pair == ("lime", "zero", "signed-rank", 7, 0.01562, 0.01562, 1.0, "")
    # Lower is better, one value is missing, and six pairs up are 2 of 64.
    lodds = column_of(table, "lodds")
    assert list(lodds.cells) == ["zero", "lime"] and lodds.cells["zero"].skipped == 1
    assert lodds.pairs[0][4:7] == (0.03125, 0.03125, 1.0), "+ is better, not higher"
    # Neither way is better: there is no best, and equal values have no test.
    entropy = column_of(table, "fi_entropy")
    assert not any(score.best or score.tie for score in entropy.cells.values())
    assert entropy.pairs[0].reason == "all differences are zero" and entropy.pairs[0].p is None


def test_ties_of_the_best_are_marked(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"aopc": UP})
    store(tmp_path, "deep-22222222", {"aopc": [*UP[:6], 0.7]})
    scores = column_of(table_of(tmp_path), "aopc").cells
    assert (scores["lime"].best, scores["deep"].best, scores["deep"].tie) == (True, False, True)
    assert scores["lime"].letters == scores["deep"].letters == "a"


def test_versions_and_encoders_are_columns_of_their_own(tmp_path: Path) -> None:
    values = {"aopc": UP, "iou_semantic": UP}
    store(tmp_path, "lime-11111111", values, protocol={"encoder": "small"})
    store(tmp_path, "deep-22222222", values, protocol={"encoder": "large"})
    store(tmp_path, "random-33333333", {"aopc": UP}, version=2)
    table = table_of(tmp_path)
    labels = {column.metric: list(column.cells) for column in table.columns[:4]}
    assert labels == {
        "aopc@1": ["deep", "lime"],
        "aopc@2": ["random"],
        "iou_semantic@1 (large)": ["deep"],
        "iou_semantic@1 (small)": ["lime"],
    }
    assert [column.title for column in table.columns[:2]] == ["AOPC@1", "AOPC@2"]
    store(tmp_path, "lime-44444444", {"aopc": UP}, version=2, seeds=(5,))
    with pytest.raises(FaithbenchError, match="different seeds hold 'aopc' of several versions"):
        make_board(tmp_path, NONE)


def test_the_human_rationale_is_shown_but_not_tested(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"aopc": ZERO})
    store(tmp_path, "human-22222222", {"aopc": UP})
    aopc = column_of(table_of(tmp_path), "aopc")
    assert list(aopc.cells) == ["lime", "human"] and aopc.pairs == ()
    human = aopc.cells["human"]
    assert (human.best, human.letters, human.mean) == (False, "", pytest.approx(2.85 / 7, abs=1e-9))
    assert aopc.cells["lime"].best


def test_columns_are_validated_although_they_are_made_without(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"aopc": UP, "fi_entropy": [None] * 7})
    store(tmp_path, "random-22222222", {"aopc": ZERO})
    table = table_of(tmp_path)
    assert table.columns[0].metric == "aopc"
    assert "fi_entropy" not in [column.metric for column in table.columns], "no value at all"
    for column in table.columns:
        assert Column.model_validate_json(column.model_dump_json(), strict=True) == column


def test_a_family_that_a_board_does_not_know_is_refused(tmp_path: Path) -> None:
    path = store(tmp_path, "lime-11111111", {"aopc": UP})
    forge_record(path, json.loads(path.read_text().replace('"faithfulness"', '"beauty"')))
    with pytest.raises(FaithbenchError) as caught:
        make_board(tmp_path, NONE)
    assert str(caught.value) == (
        "record records/lime-11111111.json says that metric 'aopc' is of family 'beauty', not one "
        "of faithfulness, stability, plausibility, speed; fix the record, or upgrade faithbench"
    )


def test_a_column_of_a_former_version_says_so(tmp_path: Path) -> None:
    store(tmp_path, "lime-11111111", {"iou_lexical": UP}, version=1)
    assert column_of(table_of(tmp_path), "iou_lexical").title == "iou_lexical (version 1)"
    store(tmp_path, "lime-11111111", {"iou_lexical": UP}, version=2)
    assert column_of(table_of(tmp_path), "iou_lexical").title == "iou_lexical"
