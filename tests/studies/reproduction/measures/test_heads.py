"""Cells of attention heads: the bundled model's own file, read by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import faithbench
from faithbench.core.types import quiet
from faithbench.studies.reproduction.measures.heads import heads_value
from faithbench.studies.reproduction.measures.networks import Networks
from faithbench.studies.reproduction.reading import HEAD_SCORES
from faithbench.studies.reproduction.recipe import Part
from faithbench.studies.reproduction.values import Measured, Missing
from tests.studies.reproduction import HEAD, MODEL, TABLE, clock_of, recipe_of, request_of
from tests.support.training import save_base

SHIPPED = Path(faithbench.__file__).parent / "data" / "bundled" / "sst2" / "heads.json"


def networks_of(place: Path, model: Path | None = None) -> Networks:
    request = request_of(recipe_of(place, HEAD, MODEL, TABLE, model=model), place)
    return Networks(request, clock_of(request), quiet)


def value_of(networks: Networks, metric: str) -> Measured | Missing:
    return heads_value(networks, Part(measure="heads", model="net", metric=metric))


@pytest.fixture(scope="module")
def facts() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(SHIPPED.read_text())
    return content


@pytest.fixture(scope="module")
def networks(tmp_path_factory: pytest.TempPathFactory) -> Networks:
    return networks_of(tmp_path_factory.mktemp("recipe"))


def test_a_peak_is_the_share_of_the_commonest_distance(
    networks: Networks, facts: dict[str, Any]
) -> None:
    for relation in ("nsubj", "dobj", "amod", "advmod"):
        value = value_of(networks, f"peak_{relation}")
        assert isinstance(value, Measured)
        assert value.mean == facts["relations"][relation]["best_offset_share"]
        assert (value.n, value.values, value.interval) == (1, {}, None), "there is no seed"
    (ref,) = value.records
    assert ref.path == "heads of bundled:sst2" and ref.sha256 == facts["weights_sha256"]


def selected(facts: dict[str, Any], kind: str) -> list[tuple[int, int]]:
    """Return the heads that the paper's thresholds select: .1 above the best offset, or .8."""
    shares = facts["positions"]["share"]
    heads = [(block, head) for block, row in enumerate(shares) for head in range(len(row))]
    if kind == "positional":
        return [(b, h) for b, h in heads if shares[b][h] > 0.8]
    return [
        (b, h)
        for b, h in heads
        if any(
            max(one["to_head"][b][h], one["to_dependent"][b][h]) > one["best_offset_share"] + 0.1
            for one in facts["relations"].values()
        )
    ]


@pytest.mark.parametrize("kind", ["syntactic", "positional"])
def test_shares_and_depths_are_those_of_the_chosen_heads(
    kind: str, networks: Networks, facts: dict[str, Any]
) -> None:
    """MiniLM has six blocks of twelve heads: a depth of 1 is the sixth block."""
    heads = selected(facts, kind)
    assert 0 < len(heads) < 72
    share, depth = (value_of(networks, f"{name}_{kind}") for name in ("share", "depth"))
    assert isinstance(share, Measured) and isinstance(depth, Measured)
    assert share.mean == pytest.approx(len(heads) / 72)
    assert depth.mean == pytest.approx(sum(block / 5 for block, _ in heads) / len(heads))


def test_every_score_of_recipes_is_there(networks: Networks) -> None:
    assert all(isinstance(value_of(networks, name), Measured) for name in HEAD_SCORES)


def test_a_model_without_statistics_is_missing_with_a_reason(tmp_path: Path) -> None:
    networks = networks_of(tmp_path, save_base(tmp_path, "bert"))
    missing = value_of(networks, "share_syntactic")
    assert isinstance(missing, Missing) and "needs head statistics of model" in missing.why


def put_heads(folder: Path, networks: Networks) -> None:
    """Write statistics of a tiny model, in which one head of eight is positional and none else."""
    found = networks.of("net")
    assert not isinstance(found, Missing)
    none = [[0.0] * 4] * 2
    relation = {"pairs": 4, "best_offset": 1, "best_offset_share": 0.5}
    content = {
        "task": "sst2", "model": "net", "weights_sha256": networks.load(found[0]).weights_sha256,
        "parser": "by hand", "split": "train", "sentences": 3, "data_sha256": "0" * 64,
        "relations": {"nsubj": relation | {"to_head": none, "to_dependent": none}},
        "positions": {"rows": 4, "best_offset": [[1] * 4] * 2, "share": [[0.9, 0, 0, 0], [0] * 4]},
        "thresholds": {"paper": [0.1, 0.8]},
    }  # fmt: skip
    (folder / "heads.json").write_text(json.dumps(content))


def test_thresholds_that_select_no_head_leave_no_depth(tmp_path: Path) -> None:
    """Of heads that follow nothing, the share is 0, and there is no depth."""
    folder = save_base(tmp_path, "bert")
    networks = networks_of(tmp_path, folder)
    put_heads(folder, networks)
    share = value_of(networks, "share_syntactic")
    assert isinstance(share, Measured) and share.mean == 0
    assert value_of(networks, "depth_syntactic") == Missing(
        "the paper's thresholds select no syntactic head here"
    )
    one, first = (value_of(networks, f"{name}_positional") for name in ("share", "depth"))
    assert isinstance(one, Measured) and isinstance(first, Measured)
    assert (one.mean, first.mean) == (1 / 8, 0.0)


def test_no_reference_has_a_folder_of_this_machine(tmp_path: Path) -> None:
    """As that of a network that was trained for the recipe."""
    folder = save_base(tmp_path, "bert")
    networks = networks_of(tmp_path, folder)
    put_heads(folder, networks)
    share = value_of(networks, "share_syntactic")
    assert isinstance(share, Measured) and str(tmp_path) not in share.records[0].path


def test_a_model_that_is_not_there_is_missing(tmp_path: Path) -> None:
    assert isinstance(value_of(networks_of(tmp_path, tmp_path / "no"), "peak_nsubj"), Missing)
