"""The open rows file: what survives a crash, what is refused, equal bytes for equal runs."""

from __future__ import annotations

import errno
import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import replace_file
from faithbench.core.seals import seal, unseal
from faithbench.records import rows_writer
from faithbench.records.rows_file import read_rows, times_path
from faithbench.records.rows_writer import open_rows
from tests.support.builders import HEAD, KEY, LINE, line, row

SEALED_HEAD, SEALED_LINE = seal(HEAD), seal(LINE)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sst2.random-0.jsonl"


def sealed(*lines: bytes) -> bytes:
    return SEALED_HEAD + b"".join(map(seal, lines))


def test_reopening_continues(path: Path) -> None:
    with open_rows(path, KEY) as file:
        file.append([(row("e1"), 1.0), (row("e2"), 2.0)])
    with open_rows(path, KEY) as file:
        assert list(file.done) == ["e1", "e2"] and file.seconds == {"e1": 1.0, "e2": 2.0}
        file.append([])
        file.append([(row("e3"), 3.0)])
    assert path.read_bytes() == sealed(line("e1"), line("e2"), line("e3"))
    with open_rows(path, KEY, fresh=True) as file:
        assert file.done == {} and file.seconds == {}, "nothing is kept if it is to start fresh"
    assert path.read_bytes() == SEALED_HEAD and times_path(path).read_bytes() == b""


def test_torn_tail_at_every_byte(path: Path) -> None:
    good, last = sealed(line("e1")), seal(line("e2"))
    first, second = (seal(b'{"id":"e%d","seconds":%d.0}\n' % (n, n)) for n in (1, 2))
    for cut in range(len(last)):
        path.write_bytes(good + last[:cut])
        times_path(path).write_bytes(first + second[:20])
        with open_rows(path, KEY) as file:
            assert path.read_bytes() == good, cut
            assert list(file.done) == ["e1"] and file.seconds == {"e1": 1.0}
            assert file.damaged == 0, "what a kill cut off is no damage"
            file.append([(row("e2"), 2.0)])
            assert file.seconds == {"e1": 1.0, "e2": 2.0}
        assert path.read_bytes() == good + last, cut
        assert times_path(path).read_bytes() == first + second


def test_torn_header_at_every_byte(path: Path) -> None:
    for cut in range(len(SEALED_HEAD)):
        path.write_bytes(SEALED_HEAD[:cut])
        times_path(path).write_bytes(b"left over")
        with open_rows(path, KEY) as file:
            file.append([(row(), 1.0)])
        assert path.read_bytes() == sealed(LINE), cut
        assert times_path(path).read_bytes() == seal(b'{"id":"e1","seconds":1.0}\n')


@pytest.mark.parametrize("tail", [b"\0\0\0\n", b"\n", b'{"id":\n', b"\xff\n", b"\0\0\0"])
def test_a_last_line_of_rubbish_is_dropped(path: Path, tail: bytes) -> None:
    path.write_bytes(sealed(LINE) + tail)
    open_rows(path, KEY).close()
    assert path.read_bytes() == sealed(LINE)


def test_every_flipped_bit_of_a_row_is_noticed(path: Path) -> None:
    """Only the damaged row is lost, and it is counted; its bytes are gone from the file."""
    data, first = sealed(line("e1"), line("e2")), len(sealed(line("e1")))
    for place in range(len(SEALED_HEAD), len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 1 << place % 8
        path.write_bytes(flipped)
        with open_rows(path, KEY) as file:
            joined = place == first - 1
            kept = [] if joined else ["e2"] if place < first else ["e1"]
            torn = place == len(data) - 1  # without its newline the last line is a torn one
            assert list(file.done) == kept and file.damaged == (not torn), place
        assert path.read_bytes() == sealed(*map(line, kept)), place


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (seal(HEAD.replace(b"ab", b"cd")) + SEALED_LINE, "other settings.*over with --fresh, or"),
        (seal(HEAD.replace(b":1", b":2")), r"newer faithbench \(rows 2, this one reads up to 1\)"),
        (seal(b'{"faithbench_rows":1}\n'), "is not a rows file: its first line is no header"),
        (HEAD + LINE, "is not a file of unfinished rows, or its first line is damaged; start over"),
        (SEALED_HEAD.replace(b"ab", b"cd") + SEALED_LINE, "or its first line is damaged"),
        (b"my thesis\n", "is not a file of unfinished rows"),
        (b"my thesis", "is not a file of unfinished rows"),
    ],
)
def test_other_files_are_refused_and_left_alone(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(FaithbenchError, match=message) as caught:
        open_rows(path, KEY)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content


def test_an_example_is_written_once(path: Path) -> None:
    with open_rows(path, KEY) as file:
        file.append([(row(), 1.0)])
        for chunk in (["e1"], ["e2", "e2"]):
            with pytest.raises(FaithbenchError, match=f"already holds example '{chunk[0]}'; give"):
                file.append([(row(example), 1.0) for example in chunk])
    assert path.read_bytes() == sealed(LINE)


def test_finish_gives_the_bytes_of_an_unbroken_run(path: Path) -> None:
    order, final = ["e3", "e1", "e2"], path.with_name("final.rows.jsonl")
    with open_rows(path, KEY) as file:
        file.append([(row(example), 1.0) for example in order])
        whole = file.finish([row(example) for example in order], final)
    expected = HEAD + line("e3") + line("e1") + line("e2")
    assert final.read_bytes() == expected and whole == hashlib.sha256(expected).hexdigest()
    assert path.exists(), "until the record is written, the run can be continued"
    with open_rows(path, KEY, fresh=True) as file:
        file.append([(row("e2"), 1.0)])
    # Its row was never written.
    times_path(path).write_bytes(seal(b'{"id":"e1","seconds":9.0}\n'))
    with open_rows(path, KEY) as file:
        assert file.seconds == {}
        file.append([(row("e1"), 1.0), (row("e3"), 3.0)])
        assert file.finish([row(example) for example in order], final) == whole
        assert file.finish([row(example) for example in order], final) == whole
        file.discard()
    assert final.read_bytes() == expected
    assert times_path(final).read_bytes() == (
        b'{"id":"e3","seconds":3.0}\n{"id":"e1","seconds":1.0}\n'
    )
    assert sorted(path.parent.iterdir()) == [final, times_path(final)]


@pytest.mark.parametrize(
    ("order", "message"),
    [
        (["e1", "e2"], "holds 1 examples but 2 were asked for, 1 of them missing; start over"),
        ([], "holds 1 examples but 0 were asked for, 0 of them missing"),
        (["e1", "e1"], "holds 1 examples but 2 were asked for, 0 of them missing"),
    ],
)
def test_finish_needs_exactly_the_examples(path: Path, order: list[str], message: str) -> None:
    with open_rows(path, KEY) as file:
        file.append([(row(), 1.0)])
        with pytest.raises(FaithbenchError, match=message):
            file.finish([row(example) for example in order], path.with_name("final"))
    assert path.read_bytes() == sealed(LINE)


CHILD = """
import sys
from pathlib import Path
from faithbench.records.rows_writer import open_rows
from tests.support.builders import KEY, row
with open_rows(Path(sys.argv[1]), KEY) as file:
    print("open", flush=True)
    for number in range(int(sys.argv[2])):
        file.append([(row(f"{number}{part}"), 1.0) for part in "abc"])
        print(number, flush=True)
    sys.stdin.read()
"""


def child(path: Path, chunks: int) -> subprocess.Popen[str]:
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", CHILD, str(path), str(chunks)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=root, stdin=pipe, stdout=pipe, text=True)


def test_a_killed_run_keeps_what_it_acknowledged(path: Path) -> None:
    with child(path, 10**9) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline().strip() for _ in range(40)]
        process.kill()
    assert printed == ["open", *map(str, range(39))]
    with open_rows(path, KEY) as file:
        kept = list(file.done)
        everything = [f"{number}{part}" for number in range(len(kept)) for part in "abc"]
        assert kept == everything[: len(kept)] and len(kept) >= 39 * 3
        assert set(file.seconds) == set(kept)
        file.append([(row("last"), 1.0)])
        final = path.with_name("final")
        file.finish([file.done[example] for example in (*kept, "last")], final)
    assert [kept_row.id for kept_row in read_rows(final)] == [*kept, "last"]


def test_two_runs_never_write_one_file(path: Path) -> None:
    busy = r"is being written by another run; wait for it to end or choose .*--results"
    with child(path, 1) as process:
        assert process.stdout is not None
        assert [process.stdout.readline() for _ in range(2)] == ["open\n", "0\n"]
        before = path.read_bytes()
        with pytest.raises(FaithbenchError, match=busy):
            open_rows(path, KEY)
        assert path.read_bytes() == before
        process.kill()
    with open_rows(path, KEY) as file:
        assert list(file.done) == ["0a", "0b", "0c"]
        with pytest.raises(FaithbenchError, match=busy):
            open_rows(path, KEY)


def test_a_file_replaced_while_being_locked_is_opened_anew(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_bytes(SEALED_HEAD)
    lock = rows_writer._lock

    def other_run_finishes_first(file: Any) -> bool:
        monkeypatch.setattr(rows_writer, "_lock", lock)
        replace_file(path, sealed(LINE))
        return lock(file)

    monkeypatch.setattr(rows_writer, "_lock", other_run_finishes_first)
    with open_rows(path, KEY) as file:
        assert list(file.done) == ["e1"]


def test_a_full_disk_leaves_no_half_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with open_rows(path, KEY) as file:
        file.append([(row("e1"), 1.0)])
        before = path.read_bytes(), times_path(path).read_bytes()
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(FaithbenchError, match=r"cannot write rows file .*No space left"):
                file.append([(row("e2"), 1.0)])
            with pytest.raises(FaithbenchError, match=r"cannot write rows file .*No space left"):
                file.finish([row("e1")], path.with_name("final"))
        assert (path.read_bytes(), times_path(path).read_bytes()) == before
        assert list(file.done) == ["e1"]
        file.append([(row("e2"), 1.0)])
    assert path.read_bytes() == sealed(line("e1"), line("e2"))


def test_folders_and_texts_that_cannot_be_written(path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"cannot write rows file .*Is a directory; fix that"):
        open_rows(path.parent, KEY)
    with open_rows(path, KEY) as file:
        with pytest.raises(FaithbenchError, match="example 'e1': its id or a token is not valid"):
            file.append([(row(tokens=["\ud800", "b"]), 1.0)])
        assert file.done == {} and times_path(path).read_bytes() == b""


def test_rows_without_their_times_are_never_left(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove = Path.unlink

    def unlink(self: Path, missing_ok: bool = False) -> None:
        if self == path:
            raise KeyboardInterrupt
        remove(self, missing_ok)

    with open_rows(path, KEY) as file, monkeypatch.context() as patch:
        file.append([(row("e1"), 1.0)])

        patch.setattr(Path, "unlink", unlink)
        with pytest.raises(KeyboardInterrupt):
            file.discard()
    assert path.exists() and not times_path(path).exists()
    with open_rows(path, KEY) as file:
        assert file.done == {} and file.seconds == {}


def test_a_file_without_rows_can_be_dropped(path: Path) -> None:
    with open_rows(path, KEY) as file:
        file.drop_if_empty()
    assert not path.exists() and not times_path(path).exists()
    with open_rows(path, KEY) as file:
        file.append([(row("e1"), 1.0)])
        file.drop_if_empty()
    assert unseal(path.read_bytes()).lines == [HEAD, line("e1")]
