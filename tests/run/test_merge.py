"""Shards, merged, are the bytes of one run; what does not belong together is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from faithbench import api
from faithbench.core.errors import FaithbenchError
from faithbench.core.types import quiet
from faithbench.run.request import Request
from faithbench.run.shard import Shard
from tests.support.jobs import content

COUNT = 3


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory, tiny_model: Any) -> tuple[Request, list[Path]]:
    """All shards of a run on nine sentences, and its request."""
    folder = tmp_path_factory.mktemp("shards")
    model = tiny_model()
    model.network.save_pretrained(folder / "net")
    model.tokenizer.save_pretrained(folder / "net")
    request = Request(
        explainer="random,attention,gradient",
        task="sst2",
        model=str(folder / "net"),
        limit=9,
        metrics="aopc,naopc",
        device="cpu",
        batch=2,
        seeds=2,
        results=folder / "results",
    )
    return request, [run_shard(request, index) for index in range(1, COUNT + 1)]


def run_shard(request: Request, index: int, count: int = COUNT) -> Path:
    folder, examples = api.evaluate_shard(
        request, Shard(index, count), jobs=1, backend="processes", progress=quiet
    )
    assert (folder, examples > 0) == (request.results / f"shard-{index}-of-{count}", True)
    return folder


@pytest.mark.slow
def test_merged_shards_are_the_bytes_of_one_run(
    shards: tuple[Request, list[Path]], tmp_path: Path
) -> None:
    request, folders = shards
    whole = Request(**vars(request) | {"results": tmp_path / "whole"})
    api.evaluate_request(whole, jobs=1, backend="processes", progress=quiet)
    # In any order: the rows are put into that of the examples.
    merged = api.merge(folders[::-1], tmp_path / "merged", jobs=1)
    assert [len(outcome.rows) for outcome in merged.outcomes] == [9] * 4, "human rationales too"
    assert any(name.startswith("bounds-") for name in content(tmp_path / "whole"))
    assert content(tmp_path / "merged") == content(tmp_path / "whole")


def test_what_does_not_belong_together_is_refused(
    shards: tuple[Request, list[Path]], tmp_path: Path
) -> None:
    request, (first, second, third) = shards

    def refusal(*folders: Path) -> str:
        with pytest.raises(FaithbenchError) as caught:
            api.merge(folders, tmp_path / "merged", jobs=1)
        assert not (tmp_path / "merged").exists() or not list((tmp_path / "merged").rglob("*.json"))
        return str(caught.value)

    assert "1 of 3 shards are missing (2); run them with --shard i/3" in refusal(first, third)
    copy = shutil.copytree(second, tmp_path / "copy")
    assert f"{second} and {copy} are both shard 2 of 3" in refusal(first, second, copy, third)
    other = json.loads((copy / "shard.json").read_text())
    other["asked"]["limit"] = 8
    other["keys"]["random"] = "0" * 64
    (copy / "shard.json").write_text(json.dumps(other))
    assert f"{copy} is a shard of another run than {first} (limit 8, not 9)" in refusal(first, copy)
    halves = run_shard(request, 1, 8)
    assert "(of 8 shards, not 3)" in refusal(first, halves)
    # A third shard whose rows are those of the second.
    shutil.rmtree(copy)
    shutil.copytree(second, copy)
    shutil.copy(third / "shard.json", copy)
    assert f"is in {copy} and in another shard; give shards" in refusal(first, second, copy)
    shutil.rmtree(copy)
    shutil.copytree(third, copy)
    (rows,) = copy.rglob("random-*.rows.jsonl")
    data = rows.read_bytes()
    rows.write_bytes(data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    assert "1 of 9 examples are in no shard" in refusal(first, second, copy), "one is damaged"
    rows.unlink()
    assert "lacks random-" in refusal(first, second, copy)
