"""Rows one at a time: what is held in memory, what is chosen, how a file is cut into splits."""

from __future__ import annotations

import gzip
import hashlib
import json
import tracemalloc
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.data.dataset import load_dataset
from faithbench.data.jsonl import file_digest, read_rows, sample_by_digest, share_of
from faithbench.data.task_schema import SplitByDigest
from tests.support.builders import complaint, make_task, put

ROWS = 100_000
DERIVED = SplitByDigest(by="article", shares={"train": 60, "dev": 10, "test": 30})


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A gzipped file of 100,000 rows, 100 MB unpacked."""
    root = tmp_path_factory.mktemp("large")
    (root / "mini").mkdir()
    text = "a long and winding sentence about a film; " * 23
    with gzip.open(root / "mini" / "test.jsonl.gz", "wt", compresslevel=1) as file:
        for number in range(ROWS):
            row = {"id": f"r{number}", "text": f"{number} {text}", "label": number % 2}
            file.write(json.dumps(row) + "\n")
    return root


def test_a_large_file_never_sits_in_memory(large: Path) -> None:
    tracemalloc.start()
    found = load_dataset(make_task(), folder=large, limit=50)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(found.examples) == 50
    # A number per id, for those used twice, and little else.
    assert peak < 16e6
    packed = (large / "mini" / "test.jsonl.gz").read_bytes()
    assert found.sha256 == hashlib.sha256(packed).hexdigest()
    ids = (f"r{number}" for number in range(ROWS))
    ranked = sorted(ids, key=lambda name: hashlib.sha256(f"limit:{name}".encode()).digest())
    assert {example.id for example in found.examples} == set(ranked[:50])


def test_an_id_used_twice_is_found_however_far_apart(tmp_path: Path) -> None:
    rows = [{"id": f"r{n % 2999}", "text": "t", "label": 0} for n in range(3000)]
    path = put(tmp_path, rows)
    assert complaint(make_task(), folder=tmp_path, limit=1) == (
        f"{path}, line 3000: field 'id': expected an id used once, found 'r0'; fix the row"
    )


def test_a_gzip_cut_in_half(large: Path, tmp_path: Path) -> None:
    path = tmp_path / "half.jsonl.gz"
    packed = (large / "mini" / "test.jsonl.gz").read_bytes()
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(FaithbenchError) as caught:
        for _ in read_rows(path):
            pass
    assert str(caught.value) == (
        f"cannot read {path} as JSON lines in UTF-8: Compressed file ended before the "
        "end-of-stream marker was reached; fetch it again"
    )


def test_choosing_keeps_order_and_nests() -> None:
    examples = [Example(f"e{n}", "t", 0) for n in range(200)]
    few, more = sample_by_digest(examples, 7), sample_by_digest(iter(examples), 40)
    assert len(few) == 7 and set(few) < set(more)
    assert list(more) == [example for example in examples if example in set(more)]
    assert sample_by_digest(examples, 1000) == sample_by_digest(examples, None) == tuple(examples)


def test_a_file_is_shared_out_by_a_field() -> None:
    rows = [(f"line {n}", {"article": f"a{n // 3}", "n": n}) for n in range(3000)]
    parts = {split: list(share_of(rows, DERIVED, split)) for split in DERIVED.shares}
    assert sorted(row["n"] for part in parts.values() for _, row in part) == list(range(3000))
    articles = {split: {row["article"] for _, row in part} for split, part in parts.items()}
    assert sum(map(len, articles.values())) == 1000, "no article is on two sides"
    for split, share in DERIVED.shares.items():
        assert abs(len(parts[split]) / 3000 - share / 100) < 0.03


def test_where_a_value_goes_is_fixed_for_ever() -> None:
    where = {name: DERIVED.split_of(name) for name in ("Warsaw", "Oxygen", "Rhine", "Normans")}
    assert where == {"Warsaw": "test", "Oxygen": "test", "Rhine": "train", "Normans": "test"}
    # 73, 81, 33 and 89 of 100.
    narrow = SplitByDigest(by="article", shares={"train": 73, "dev": 8, "test": 19})
    assert [narrow.split_of(name) for name in ("Warsaw", "Oxygen")] == ["dev", "test"]


@pytest.mark.parametrize("row", [{"id": "a"}, {"article": 7}, [1]])
def test_a_row_without_the_field(row: object) -> None:
    with pytest.raises(FaithbenchError, match="x, line 1: field 'article': expected the text that"):
        list(share_of([("x, line 1", row)], DERIVED, "test"))


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"absent\.jsonl as .*: No such file or directory;"):
        file_digest(tmp_path / "absent.jsonl")
