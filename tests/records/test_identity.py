"""The identity of a record: the same from the job that makes it and from the file it wrote."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from faithbench.data.dataset import load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.registry import METRICS, find_metrics
from faithbench.records.conditions import Conditions, conditions_of
from faithbench.records.identity import Identity, identity_of, place_of, run_key
from faithbench.records.record import read
from faithbench.records.rows_file import read_keyed_rows
from faithbench.run.job import Cell, Job
from faithbench.run.loop import run
from tests.support.builders import ROWS, make_task, put
from tests.support.paths import ROOT

ON_REQUEST = (
    "tau_ceiling", "tau_loo_share", "tau_gradient", "tau_gradient_share", "top_gradient",
    "support_auc", "tau_inner_gradient", "inside_inner_gradient", "tau_inner_loo", "inner_entropy",
    "own_share", "own_rank",
)  # fmt: skip
"""In the order in which the plan asks for them."""


@pytest.fixture(scope="module")
def written(tmp_path_factory: Any, tiny_model: Any) -> Any:
    folder = tmp_path_factory.mktemp("identity")
    put(folder, ROWS)
    job = Job(
        data=load_dataset(make_task(), folder=folder),
        model=tiny_model(),
        explainers=find_explainers("attention"),
        metrics=find_metrics("all", ["rationale"]),
        results=folder / "results",
    )
    (outcome,) = run(job, lambda *_: None)
    return Cell(job, job.explainers[0]), outcome


def test_a_record_says_its_own_name(written: Any) -> None:
    cell, outcome = written
    digest = identity_of(outcome.record, outcome.rows).digest
    assert digest == cell.identity
    place = place_of(outcome.record, "attention", digest)
    assert cell.job.results / f"{place}.json" == outcome.path


def test_a_record_has_the_conditions_of_its_job(written: Any) -> None:
    cell, outcome = written
    read_back = conditions_of(outcome.record, outcome.rows)
    assert read_back == cell.job.conditions
    # Neither takes part in the comparison above.
    assert (read_back.model, read_back.n) == (cell.job.conditions.model, 3)


@pytest.mark.parametrize(("operator", "token"), [("delete", ""), ("pad", "[PAD]")])
def test_the_erasure_token_is_that_of_the_operator(written: Any, operator: Any, token: str) -> None:
    cell, _ = written
    assert replace(cell.job, operator=operator).conditions.erasure_token == token


def test_another_explainer_or_row_is_another_name(written: Any) -> None:
    _, outcome = written
    digest = identity_of(outcome.record, outcome.rows).digest
    assert identity_of(outcome.record, outcome.rows[1:]).digest != digest
    facts = outcome.record.explainer.model_copy(update={"assets": {"explainer.py": "0"}})
    other = outcome.record.model_copy(update={"explainer": facts})
    assert identity_of(other, outcome.rows).digest != digest


def test_a_place_has_no_way_out_of_its_folder(written: Any) -> None:
    _, outcome = written
    model = outcome.record.model.model_copy(update={"name": "../../etc/passwd"})
    place = place_of(outcome.record.model_copy(update={"model": model}), "../x", "0" * 64)
    assert ".." not in place.parts
    assert not Path(place).is_absolute()
    assert len(place.parts) == 3


CONDITIONS = Conditions(
    task="sst2",
    task_version=2,
    source="folder",
    data_sha256="da",
    split="test",
    ids="not in the digest",
    model_sha256="we",
    dtype="float32",
    protocol=1,
    operator="mask",
    erasure_token="[MASK]",
    long="truncate",
    model="not in the digest",
    n=2,
)


def test_the_digest_is_that_of_this_text() -> None:
    """The names of all published records were made of it."""
    identity = Identity(
        conditions=CONDITIONS,
        ids=("b", "a"),
        explainer="lime",
        settings={"samples": 64, "fast": False},
        assets={"heads.json": "as"},
        seeds=(0, 1, 2),
        metrics={"lodds": 2, "aopc": 1},
        encoder=None,
    )
    text = (
        '{"data": ["da", ["b", "a"]], '
        '"explainer": ["lime", {"fast": false, "samples": 64}, {"heads.json": "as"}], '
        '"metrics": [["lodds", 2], ["aopc", 1]], '
        '"model": ["we", "torch.float32"], '
        '"run": ["mask", [0, 1, 2], "truncate", null], '
        '"task": ["sst2", 2, "folder", "test"]}'
    )
    assert identity.digest == hashlib.sha256(text.encode()).hexdigest()
    revised = text.replace('{"heads.json": "as"}]', '{"heads.json": "as"}, 2]')
    digest = hashlib.sha256(revised.encode()).hexdigest()
    assert replace(identity, revision=2).digest == digest != identity.digest
    other = replace(identity, conditions=replace(CONDITIONS, protocol=2, erasure_token=""))
    assert other.digest == identity.digest


def test_the_key_is_that_of_this_text() -> None:
    text = json.dumps(["1d", ["lime", "random"], 16, 2048, "cpu"])
    key = run_key("1d", labels=("lime", "random"), chunk=16, budget=2048, device="cpu")
    assert key == hashlib.sha256(text.encode()).hexdigest()


def test_published_records_have_the_names_that_their_content_gives() -> None:
    folder = ROOT / "leaderboard" / "records"
    paths = sorted(folder.rglob("*.json"))
    assert len(paths) > 100
    for path in paths:
        record = read(path)
        _, rows = read_keyed_rows(path.with_name(record.rows.file), record.rows.sha256)
        identity = identity_of(record, rows)
        # A plan may take measures out of `all`, or ask for a family alone, which no record tells:
        # the name is that of one of these runs.
        asked = [
            identity.metrics,
            {k: v for k, v in identity.metrics.items() if k != "max_sensitivity"},
            {k: v for k, v in identity.metrics.items() if k in record.metrics},
            # Networks of the study of sparse attention: `all`, and metrics on request.
            identity.metrics | {name: METRICS[name].version for name in ON_REQUEST},
        ]
        label = path.stem[: -len("-12345678")]
        places = [
            place_of(record, label, replace(identity, metrics=metrics).digest) for metrics in asked
        ]
        assert PurePosixPath(path.relative_to(folder).with_suffix("")) in places


def test_submitted_records_have_the_names_and_keys_that_their_content_gives() -> None:
    paths = sorted((ROOT / "submissions").glob("*/records/*/*/*.json"))
    assert len(paths) >= 2
    for path in paths:
        record = read(path)
        found_key, rows = read_keyed_rows(path.with_name(record.rows.file), record.rows.sha256)
        name, digest = record.explainer.name, identity_of(record, rows).digest
        assert path.stem == f"{name}-{digest[:8]}"
        assert found_key == run_key(digest, labels=[name], chunk=16, budget=2048, device="cpu")
