"""Files of rows: what is written is what is read, and what was changed is refused."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from faithbench.core.errors import FaithbenchError
from faithbench.core.seals import seal
from faithbench.records import rows_file
from faithbench.records.rows_file import read_rows, times_path
from faithbench.records.rows_writer import open_rows
from tests.support.builders import HEAD, KEY, LINE, row


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sst2.random-0.jsonl"


def test_a_file_has_a_header_and_a_line_per_row(path: Path) -> None:
    with open_rows(path, KEY) as file:
        assert file.done == {}
        file.append([(row(), 0.25)])
        assert file.done == {"e1": row()} and file.seconds == {"e1": 0.25}
    assert path.read_bytes() == seal(HEAD) + seal(LINE)
    times = path.parent / "sst2.random-0.times.jsonl"
    assert times_path(path) == times
    assert times.read_bytes() == seal(b'{"id":"e1","seconds":0.25}\n')


def test_reading_checks_the_file(path: Path) -> None:
    with pytest.raises(
        FaithbenchError, match=r"cannot read rows file .*: No such file.*next to its"
    ):
        read_rows(path)
    path.write_bytes(HEAD + LINE)
    assert read_rows(path, hashlib.sha256(HEAD + LINE).hexdigest()) == (row(),)
    with pytest.raises(FaithbenchError, match=r"has sha256 [0-9a-f]{64}, its record says 00; rest"):
        read_rows(path, "00")
    for torn in (HEAD + LINE[:-1], HEAD + LINE + b"{\n", HEAD[:-1], b""):
        path.write_bytes(torn)
        with pytest.raises(FaithbenchError, match="ends in half a line; run the explainer again"):
            read_rows(path)
        assert path.read_bytes() == torn, "reading changes nothing"


def test_a_bomb_is_not_unpacked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert rows_file.MAX_UNPACKED == 256 * 1024 * 1024
    monkeypatch.setattr(rows_file, "MAX_UNPACKED", 2 << 20)
    path = tmp_path / "x.rows.jsonl.gz"
    path.write_bytes(gzip.compress(b"\n" * (3 << 20)))
    with pytest.raises(FaithbenchError, match="holds more than 2 MB unpacked, which is refused"):
        read_rows(path)
    whole = gzip.compress(b"x" * 100)
    wrong_sum = whole[:-8] + bytes([whole[-8] ^ 1]) + whole[-7:]
    for broken in (b"no gzip", b"", whole[:-9], whole[:-1], wrong_sum, whole + whole, whole + b"x"):
        path.write_bytes(broken)
        with pytest.raises(FaithbenchError, match=r"is not a whole gzip file: .*; restore it"):
            read_rows(path)


finite = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=50, deadline=None)
@given(st.text(), st.lists(st.tuples(st.text(), finite)), st.dictionaries(st.text(), finite))
def test_any_row_survives(
    tmp_path_factory: pytest.TempPathFactory,
    example: str,
    scored: list[tuple[str, float]],
    values: dict[str, float],
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.jsonl"
    tokens, scores = [token for token, _ in scored], [score for _, score in scored]
    made = row(example, tokens=tokens, scores=scores, values=values)
    path.unlink(missing_ok=True)
    with open_rows(path, KEY) as file:
        file.append([(made, 0.0)])
    with open_rows(path, KEY) as file:
        assert file.done == {made.id: made}
        file.finish([made], path.with_name("final.jsonl"))
    assert read_rows(path.with_name("final.jsonl")) == (made,)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            HEAD + b'{"id"\n' + LINE,
            r"line 2 is damaged: Input data was truncated; restore the file, or del",
        ),
        (HEAD + LINE + LINE[:-1] + b"x\n" + b"{", "line 3 is damaged: JSON is malformed: trail"),
        (HEAD + LINE + LINE, "line 3 is damaged: example 'e1' appears twice"),
        (HEAD + LINE.replace(b'"id"', b'"ID"'), "line 2 is damaged: Object contains unk.*`ID`"),
        (HEAD + LINE.replace(b'"id":"e1",', b""), "line 2 is damaged: .* required field `id`"),
        (HEAD + LINE.replace(b"0.1,", b"NaN,") + LINE, "line 2 is damaged: JSON is malformed"),
        (HEAD + LINE.replace(b"0.1,", b"1e999,"), r"line 2 is damaged: .*range.*scores.0."),
        (HEAD + LINE.replace(b":9", b':"9"'), r"line 2 is damaged: .*`int`.*`str`.*rows_asked"),
        (HEAD + LINE.replace(b":9", b":9.0"), r"line 2 is damaged: .*`int`.*`float`.*rows_asked"),
        (HEAD + LINE.replace(b":9", b":-9"), r"line 2 is damaged: .*>= 0.*rows_asked"),
        (HEAD + LINE.replace(b"e1", b"\xff") + LINE, "line 2 is damaged: .*utf-8"),
        (HEAD + LINE.replace(b"0.1,", b""), "line 2 is damaged: 1 scores for 2 tokens"),
    ],
)
def test_a_damaged_line_is_named(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(FaithbenchError, match=message) as caught:
        read_rows(path)
    assert str(path) in str(caught.value)
    assert path.read_bytes() == content
