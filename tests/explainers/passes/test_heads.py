"""Head statistics: the choice by thresholds worked by hand, and the files they live in."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.explainers.passes import heads
from faithbench.explainers.passes.heads import (
    RELATIONS,
    HeadStatistics,
    PositionFacts,
    RelationFacts,
    cached_heads,
    count_heads,
    drawn_masks,
    find_heads,
    heads_sha256,
    masks_at,
    masks_nothing,
    named_masks,
    read_heads,
    write_heads,
)

SHIPPED = Path(heads.__file__).parents[2] / "data" / "bundled" / "sst2" / "heads.json"

# Two blocks of three heads; the best fixed offsets are right for 0.5 and 0.25 of the pairs.
NSUBJ = RelationFacts(
    pairs=4,
    best_offset=1,
    best_offset_share=0.5,
    to_head=((0.75, 0.5, 0.0), (0.0, 0.625, 0.0)),
    to_dependent=((0.0, 0.0, 0.75), (0.0, 0.75, 0.5)),
)
AMOD = RelationFacts(
    pairs=8,
    best_offset=-1,
    best_offset_share=0.25,
    to_head=((0.5, 0.25, 0.0), (0.0, 0.0, 0.0)),
    to_dependent=((0.0, 0.0, 0.0), (0.0, 0.0, 0.375)),
)
POSITIONS = PositionFacts(
    rows=16,
    best_offset=((-1, 1, 1), (2, -1, 1)),
    share=((0.25, 0.875, 0.5), (0.75, 0.0, 0.125)),
)


def facts(**changes: Any) -> HeadStatistics:
    given: dict[str, Any] = {
        "task": "mini",
        "model": "tiny",
        "weights_sha256": "bert-2",
        "parser": "by hand",
        "split": "train",
        "sentences": 3,
        "data_sha256": "0" * 64,
        "relations": {"nsubj": NSUBJ, "amod": AMOD},
        "positions": POSITIONS,
        "thresholds": {"paper": (0.125, 0.75), "loose": (-0.25, 0.25), "none": (0.5, 0.9)},
    }
    return HeadStatistics(**given | changes)


# The choice


def test_syntactic_heads_are_counted_per_relation_and_either_way() -> None:
    """Above 0.5 for the subject: 0.75 to head; 0.75 back; 0.75 back. Above 0.25: 0.5, 0.375."""
    syntactic, _ = masks_at(facts(), 0.0, 1.0)
    assert syntactic == [[2, 0, 1], [0, 1, 1]]


def test_a_head_on_the_bar_does_not_beat_it() -> None:
    """0.5 is not above 0.5, nor 0.25 above 0.25: head 1 of block 0 is out, and in just below."""
    assert masks_at(facts(), 0.0, 1.0)[0][0][1] == 0
    assert masks_at(facts(), -0.0625, 1.0)[0][0][1] == 2
    # With xi 1/8 the bars are 0.625 and 0.375; with 1/4, 0.75 and 0.5.
    assert masks_at(facts(), 0.125, 1.0)[0] == [[2, 0, 1], [0, 1, 0]]
    assert masks_at(facts(), 0.25, 1.0)[0] == [[0, 0, 0], [0, 0, 0]]


def test_positional_heads_exceed_their_threshold() -> None:
    assert masks_at(facts(), 1.0, 0.5)[1] == [[0, 1, 0], [1, 0, 0]]
    assert masks_at(facts(), 1.0, 0.25)[1] == [[0, 1, 1], [1, 0, 0]]
    assert masks_at(facts(), 1.0, 0.0)[1] == [[1, 1, 1], [1, 0, 1]]
    assert masks_at(facts(), 1.0, 0.875)[1] == [[0, 0, 0], [0, 0, 0]]


def test_masks_by_name() -> None:
    syntactic, positional = [[2, 0, 1], [0, 1, 0]], [[0, 1, 0], [0, 0, 0]]
    assert named_masks(facts(), "paper", "both") == [syntactic, positional]
    assert named_masks(facts(), "paper", "syntactic") == [syntactic]
    assert named_masks(facts(), "paper", "positional") == [positional]
    assert named_masks(facts(), "loose", "positional") == [[[0, 1, 1], [1, 0, 0]]]


def test_a_head_in_both_groups_is_counted_once() -> None:
    assert count_heads([[[2, 0, 1], [0, 1, 0]], [[1, 1, 0], [0, 0, 0]]]) == 4
    assert count_heads([[[2, 0, 1], [0, 1, 0]]]) == 3
    assert count_heads([[[0, 0]], [[0, 0]]]) == 0


def test_random_masks_have_as_many_heads() -> None:
    drawn = [mask for (mask,) in drawn_masks(facts(), "paper", range(20))]
    assert {sum(map(sum, mask)) for mask in drawn} == {4}
    assert {weight for mask in drawn for row in mask for weight in row} == {0, 1}
    assert {tuple(map(len, mask)) for mask in drawn} == {(3, 3)}
    assert len({str(mask) for mask in drawn}) > 5
    # Each is of its own seed, whatever its company.
    assert drawn_masks(facts(), "paper", [7, 3]) == [[drawn[7]], [drawn[3]]]


@pytest.mark.parametrize("mask", ["both", "syntactic", "positional", "random"])
def test_no_head_is_an_error_that_says_so(mask: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        chosen_masks(facts(), "none", mask)
    assert str(caught.value) == (
        f"lrp-mask: mask={mask} with thresholds=none selects no head of model 'tiny'; "
        "use thresholds=calibrated or mask=ones"
    )


def chosen_masks(statistics: HeadStatistics, thresholds: str, mask: str) -> Any:
    if mask == "random":
        return drawn_masks(statistics, thresholds, [0])
    return named_masks(statistics, thresholds, mask)


def test_thresholds_can_be_no_mask() -> None:
    unmasked = facts(thresholds={"paper": (0.125, 0.75), "calibrated": None})
    assert named_masks(unmasked, "calibrated", "both") == [[[1, 1, 1], [1, 1, 1]]]
    assert masks_nothing(unmasked, "calibrated") and not masks_nothing(unmasked, "paper")


@pytest.mark.parametrize("mask", ["syntactic", "positional", "random"])
def test_without_a_mask_no_kind_of_head_is_named(mask: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        chosen_masks(facts(thresholds={"calibrated": None}), "calibrated", mask)
    assert str(caught.value) == (
        "lrp-mask: thresholds=calibrated of model 'tiny' is no mask, because masking does not "
        f"help there; use mask={mask},thresholds=paper"
    )


def test_unknown_names() -> None:
    with pytest.raises(FaithbenchError, match="'strict' are not among loose, none, paper"):
        named_masks(facts(), "strict", "both")
    with pytest.raises(FaithbenchError, match="mask 'all' is not one of both, syntactic, pos"):
        named_masks(facts(), "paper", "all")


# The files


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "heads.json"
    write_heads(facts(), path)
    assert read_heads(path) == facts()
    write_heads(facts(sentences=9), path)
    assert read_heads(path).sentences == 9
    assert [p.name for p in path.parent.iterdir()] == ["heads.json"]


def test_files_of_the_first_version_are_read(tmp_path: Path) -> None:
    """They have no verdict, and their trials no tests."""
    trial = {"xi_syntactic": -0.3, "xi_positional": 0.2, "heads": 5, "aopc": 0.25}
    calibration = {"split": "dev", "examples": 9, "data_sha256": "0" * 64, "grid": [trial]}
    content = facts(calibration=calibration).model_dump(mode="json") | {"schema_version": 1}
    del content["calibration"]["verdict"]
    path = tmp_path / "heads.json"
    path.write_text(json.dumps(content))
    first = read_heads(path)
    assert first.schema_version == 1 and first.calibration is not None
    assert first.calibration.verdict is None
    (kept,) = first.calibration.grid
    assert (kept.thresholds, kept.heads, kept.error) == ((-0.3, 0.2), 5, None)


def test_found_in_the_cache_by_weights(tiny_model: Any, home: Path) -> None:
    model = tiny_model("bert")
    assert cached_heads(model) == home / "heads" / "bert-2.json"
    write_heads(facts(), cached_heads(model))
    assert find_heads(model) == facts()
    content = (home / "heads" / "bert-2.json").read_bytes()
    assert heads_sha256(model) == hashlib.sha256(content).hexdigest()


def test_beside_the_weights_comes_first(tiny_model: Any, home: Path, tmp_path: Path) -> None:
    model = replace(tiny_model("bert"), folder=tmp_path)
    write_heads(facts(sentences=7), cached_heads(model))
    assert find_heads(model).sentences == 7
    write_heads(facts(sentences=8), tmp_path / "heads.json")
    assert find_heads(model).sentences == 8


def test_none_there(tiny_model: Any, home: Path) -> None:
    with pytest.raises(FaithbenchError) as caught:
        find_heads(tiny_model("bert"))
    assert str(caught.value) == (
        "lrp-mask needs head statistics of model 'tiny-bert' and there are none; run: "
        "faithbench heads --task <task> --model tiny-bert, or use lrp-mask:mask=ones"
    )


def test_other_weights(tiny_model: Any, home: Path) -> None:
    model = tiny_model("bert")
    write_heads(facts(weights_sha256="another"), cached_heads(model))
    with pytest.raises(FaithbenchError) as caught:
        find_heads(model)
    assert str(caught.value) == (
        "head statistics bert-2.json belong to another model than 'tiny-bert'; run: "
        "faithbench heads --task <task> --model tiny-bert"
    )


@pytest.mark.parametrize(
    ("damage", "complaint"),
    [
        ({"sentences": "many"}, "sentences: "),
        ({"sentences": None}, "sentences: "),
        ({"schema_version": 3}, "schema_version: Input should be 1 or 2"),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"positions": {"rows": 1, "best_offset": [[1]]}}, "positions.share: Field required"),
        ({"thresholds": {"paper": [0.1]}}, "thresholds.paper.1: Field required"),
        ({"relations": {"nsubj": {"pairs": 1}}}, "relations.nsubj.best_offset: Field required"),
    ],
)
def test_a_damaged_file_names_the_field(
    damage: dict[str, Any], complaint: str, tmp_path: Path
) -> None:
    path = tmp_path / "heads.json"
    path.write_text(json.dumps(facts().model_dump(mode="json") | damage))
    with pytest.raises(FaithbenchError) as caught:
        read_heads(path)
    assert str(caught.value).startswith(f"head statistics {path}: {complaint}")


def test_a_file_cut_short_is_invalid_json(tmp_path: Path) -> None:
    path = tmp_path / "heads.json"
    path.write_text(facts().model_dump_json()[:-20])
    with pytest.raises(FaithbenchError, match=r"heads\.json: .*Invalid JSON"):
        read_heads(path)


# The shipped file


def test_shipped_statistics() -> None:
    shipped = read_heads(SHIPPED)
    assert (shipped.task, shipped.model, shipped.split) == ("sst2", "bundled:sst2", "train")
    assert set(shipped.relations) == set(RELATIONS)
    assert set(shipped.thresholds) == {"paper", "calibrated"}
    assert shipped.thresholds["paper"] == (0.1, 0.8)
    matrices = [shipped.positions.share]
    for relation in shipped.relations.values():
        matrices += [relation.to_head, relation.to_dependent]
    assert {(len(m), *map(len, m)) for m in matrices} == {(6, 12, 12, 12, 12, 12, 12)}
    assert all(0 <= share <= 1 for m in matrices for row in m for share in row)
    assert count_heads(named_masks(shipped, "calibrated", "both")) > 0


def test_shipped_statistics_belong_to_the_shipped_weights() -> None:
    card = json.loads((SHIPPED.parent / "card.json").read_text())
    adapter = (SHIPPED.parent / "adapter_model.safetensors").read_bytes()
    assert hashlib.sha256(adapter).hexdigest() == card["adapter_sha256"]
    both = hashlib.sha256(f"{card['base_sha256']}{card['adapter_sha256']}".encode()).hexdigest()
    assert read_heads(SHIPPED).weights_sha256 == both
