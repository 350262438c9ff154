"""Files of attributions: aligned with tokens so that a word's score is what the file says."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.types import Example
from faithbench.metrics.word_scores import words_of
from faithbench.models.encoding import encode
from faithbench.submissions import score_files
from faithbench.submissions.score_files import aligned_scores, read_scores, words_of_evidence
from tests.support.builders import make_task

TEXT = "goodly films , not dulling"  # pieces: good ##ly | film ##s | , | not | dull ##ing


def write(folder: Path, rows: list[object], name: str = "mini.jsonl") -> Path:
    (folder / "scores").mkdir(exist_ok=True)
    path = folder / "scores" / name
    data = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.fixture
def encoding(tiny_model):
    return encode(tiny_model(), Example("a", TEXT, 0))


def test_words_are_shared_equally_and_add_up_again(tmp_path: Path, encoding) -> None:
    write(tmp_path, [{"id": "a", "scores": [1.0, -3.0, 0.5, 0.0, 8.0]}])
    scores = aligned_scores(tmp_path, make_task(), "words", [encoding])["a"]
    assert scores == (0.5, 0.5, -1.5, -1.5, 0.5, 0.0, 4.0, 4.0)
    assert words_of(encoding, np.array(scores)).scores.tolist() == [1.0, -3.0, 0.5, 0.0, 8.0]


def test_tokens_are_taken_as_they_are(tmp_path: Path, encoding) -> None:
    write(tmp_path, [{"id": "a", "scores": list(range(8))}], "mini.jsonl.gz")
    assert aligned_scores(tmp_path, make_task(), "tokens", [encoding])["a"] == tuple(range(8))


@pytest.mark.parametrize(("unit", "wanted"), [("tokens", 8), ("words", 5)])
def test_a_wrong_number_of_scores_is_named(
    tmp_path: Path, encoding, unit: str, wanted: int
) -> None:
    write(tmp_path, [{"id": "a", "scores": [1.0]}])
    message = rf"mini.jsonl, example 'a': 1 scores for {wanted} {unit} that may be erased"
    with pytest.raises(FaithbenchError, match=message):
        aligned_scores(tmp_path, make_task(), unit, [encoding])


def test_examples_must_be_the_tasks_own(tmp_path: Path, encoding) -> None:
    good = {"id": "a", "scores": [1.0] * 8}
    write(tmp_path, [good, {"id": "z", "scores": [1.0]}])
    with pytest.raises(FaithbenchError, match="has, besides the task's, example 'z'"):
        aligned_scores(tmp_path, make_task(), "tokens", [encoding])
    write(tmp_path, [{"id": "z", "scores": [1.0]}])
    with pytest.raises(FaithbenchError, match="lacks example 'a'"):
        aligned_scores(tmp_path, make_task(), "tokens", [encoding])


def test_which_words_count_is_the_tasks_to_say() -> None:
    pair = Example("a", "two words", 0, "three more words")
    assert words_of_evidence(pair, "text") == range(2)
    assert words_of_evidence(pair, "text_b") == range(2, 5)
    assert words_of_evidence(pair, "both") == range(5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "a", "scores": [NaN]}\n', "invalid character"),
        ('{"id": "a", "scores": [1e999]}\n', "Number out of range"),
        ('{"id": "a", "scores": [1e31]}\n', "Expected `float` <= 1e\\+30"),
        ('{"id": "a"}\n', "missing required field `scores`"),
        ('{"id": "a", "scores": [1], "aopc": 1}\n', "unknown field `aopc`"),
        ('{"id": 1, "scores": [1]}\n', r"Expected `str`, got `int` - at `\$.id`"),
        ('{"id": "a", "scores": ["1"]}\n', "Expected `float`, got `str`"),
        ('{"id": "a", "scores": [1], "scores": [2]}\n', "key 'scores' appears twice"),
        (f'{{"id": "a", "scores": [{"0, " * 400_000}0]}}\n', "the line has more than 1 MB"),
        ("[" * 5000 + "\n", "line 2"),
        ('{"id": "b", "scores": [1]}\n', "example 'b' appears twice"),
        ("\x80\x04\n", "line 2"),
        ("\n", "line 2"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    path = write(tmp_path, ['{"id": "b", "scores": [1]}\n', line])
    with pytest.raises(FaithbenchError, match=message) as caught:
        read_scores(path)
    assert "scores/mini.jsonl, line 2" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_small_file_that_unpacks_to_much_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "bomb.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * (3 << 20)))
    assert path.stat().st_size < 10_000
    with pytest.raises(
        FaithbenchError, match=r"bomb.jsonl.gz, line 1: the line has more than 1 MB"
    ):
        read_scores(path)
    monkeypatch.setattr(score_files, "MAX_BYTES", 2 << 20)
    line = b'{"id": "%d", "scores": [' + b"0, " * 300_000 + b"0]}\n"
    path.write_bytes(gzip.compress(b"".join(line % number for number in range(4))))
    with pytest.raises(FaithbenchError, match="line 3: the file, up to here, has more than 2 MB"):
        read_scores(path)


def test_a_file_without_a_line_is_refused(tmp_path: Path) -> None:
    for name in ("mini.jsonl", "mini.jsonl.gz"):
        with pytest.raises(FaithbenchError, match=f"scores/{name}, line 1: the file is empty; wri"):
            read_scores(write(tmp_path, [], name))


def test_no_more_lines_than_any_task_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_files, "MAX_EXAMPLES", 2)
    lines: list[object] = [{"id": name, "scores": []} for name in "abc"]
    assert len(read_scores(write(tmp_path, lines[:2]))) == 2
    with pytest.raises(FaithbenchError, match="line 3: there are more than 2 examples"):
        read_scores(write(tmp_path, lines))


# The peak of a process is all it ever had: each file is read in turn, the smallest peak first.
PEAKS = """
import resource, sys
from pathlib import Path
from faithbench.core.errors import FaithbenchError
from faithbench.submissions.score_files import read_scores

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before = peak()
for name in sys.argv[1:]:
    try:
        read_scores(Path(name))
    except FaithbenchError as error:
        assert "line" in str(error)
    print(peak() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere peaks are in other units")
def test_reading_takes_little_memory_whatever_a_file_holds(tmp_path: Path) -> None:
    many = b"".join(b'{"id": "%d", "scores": [%s0]}\n' % (n, b"0," * 99_999) for n in range(20))
    contents = {
        "line": b'{"id": "a", "scores": [' + b"0," * (6 << 20) + b"0]}\n",
        "texts": b'{"id": "a", "scores": [' + b'"",' * 300_000 + b"0]}\n",
        "keys": b"{" + b",".join(b'"%d":0' % n for n in range(90_000)) + b"}\n",
        "bomb": gzip.compress(b"0" * (24 << 20), 1),
        "many": many,
    }
    paths = []
    for name, content in contents.items():
        paths.append(tmp_path / f"{name}.jsonl{'.gz' * (name == 'bomb')}")
        paths[-1].write_bytes(content)
    ran = subprocess.run(
        [sys.executable, "-c", PEAKS, *map(str, paths)], capture_output=True, text=True, check=True
    )
    peaks = dict(zip(contents, map(float, ran.stdout.split()), strict=True))
    # In MB. The last file's two million scores are taken: they are 16 MB as an array.
    assert max(peaks[name] for name in contents if name != "many") < 32, peaks
    assert peaks["many"] < 60, peaks


def test_an_archive_that_is_none_is_said(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(b"PK\x03\x04")
    with pytest.raises(FaithbenchError, match="cannot be read"):
        read_scores(path)


def test_one_file_per_task(tmp_path: Path, encoding) -> None:
    with pytest.raises(FaithbenchError, match="neither is there"):
        aligned_scores(tmp_path, make_task(), "tokens", [encoding])
    write(tmp_path, [])
    write(tmp_path, [], "mini.jsonl.gz")
    with pytest.raises(FaithbenchError, match="both are there"):
        aligned_scores(tmp_path, make_task(), "tokens", [encoding])
