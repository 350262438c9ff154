"""What a shard is called and which chunks it takes, from an option or a Slurm array."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.run.shard import WHOLE, Shard, parse_shard, read_shard, shard_of_array


def test_shards_share_out_all_chunks() -> None:
    parts = [Shard(index, 3).part(range(8)) for index in (1, 2, 3)]
    assert parts == [[0, 3, 6], [1, 4, 7], [2, 5]]
    assert WHOLE.part("abc") == ["a", "b", "c"]
    assert parse_shard(" 2/8 ") == Shard(2, 8) and Shard(2, 8).folder == "shard-2-of-8"


@pytest.mark.parametrize("text", ["", "2", "0/4", "5/4", "1/0", "-1/3", "1/2/3", "a/b", "1.0/2"])
def test_what_is_no_shard_is_refused(text: str) -> None:
    with pytest.raises(FaithbenchError, match=r"should be i/N with i from 1 to N, such as 2/8"):
        parse_shard(text)


@pytest.mark.parametrize(
    ("values", "shard"),
    [
        ({}, None),
        ({"ID": "3"}, None),
        ({"ID": "0", "COUNT": "4", "MIN": "0"}, Shard(1, 4)),
        ({"ID": "4", "COUNT": "4", "MIN": "1"}, Shard(4, 4)),
        ({"ID": "14", "COUNT": "3", "MIN": "10", "STEP": "2"}, Shard(3, 3)),
        ({"ID": "2", "COUNT": "2"}, Shard(2, 2)),
    ],
)
def test_the_task_of_an_array_is_a_shard(values: dict[str, str], shard: Shard | None) -> None:
    environment = {f"SLURM_ARRAY_TASK_{name}": value for name, value in values.items()}
    assert shard_of_array(environment) == shard


def test_an_odd_array_is_refused() -> None:
    environment = {"SLURM_ARRAY_TASK_ID": "9", "SLURM_ARRAY_TASK_COUNT": "2"}
    with pytest.raises(FaithbenchError, match=r"_COUNT=2 and _MIN= are no shard; give one with"):
        shard_of_array(environment)


def test_a_folder_without_a_finished_shard_is_named(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="holds no finished shard; check the folder, or run"):
        read_shard(tmp_path)
    (tmp_path / "shard.json").write_text('{"faithbench_shard": 1}')
    with pytest.raises(FaithbenchError, match=r"shard.json: key 'index': Field required"):
        read_shard(tmp_path)
