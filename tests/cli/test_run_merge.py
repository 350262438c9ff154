"""Shards by command, and the command that merges them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.models.model import quieten
from tests.support.commands import Call


@pytest.mark.slow
def test_a_run_in_shards(
    call: Call, tmp_path: Path, tiny_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    quieten()  # saving shows a progress bar otherwise
    model = tiny_model()
    model.network.save_pretrained(tmp_path / "net")
    model.tokenizer.save_pretrained(tmp_path / "net")
    words = (
        "run", "--explainer", "random", "--task", "sst2", "--model", "net", "--limit", "4",
        "--metrics", "aopc", "--batch", "2", "--device", "cpu",
    )  # fmt: skip
    said = call(*words, "--shard", "1/2")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[-1] == (
        "shard 1 of 2: 2 examples in results/shard-1-of-2; when all are done: "
        "faithbench merge results/shard-*-of-2 --results results"
    )
    said = call("merge", "results/shard-1-of-2")
    assert (said.code, "1 of 2 shards are missing (2)" in said.err) == (1, True)
    for name, value in (("ID", "7"), ("COUNT", "2"), ("MIN", "6")):
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", value)
    said = call(*words)
    assert said.out.splitlines()[-1].startswith("shard 2 of 2: 2 examples in")
    said = call("merge", "results/shard-1-of-2", "results/shard-2-of-2")
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines()[-1].startswith("record: results/sst2")


def test_a_wrong_shard_is_one_line(call: Call) -> None:
    said = call("run", "--explainer", "random", "--task", "sst2", "--shard", "3/2")
    assert said.code == 1
    assert "--shard '3/2' should be i/N with i from 1 to N" in said.err
