"""No flipped bit of a sealed line or object is believed, nor held against another line."""

from __future__ import annotations

import hashlib
import json

import pytest

from faithbench.core.seals import parse_sealed, seal, seal_json, unseal, unseal_json

LINES = [b'{"id":"e1","values":[0.25]}\n', b'{"id":"e2"}\n']
DATA = b"".join(map(seal, LINES))


def test_whole_lines_come_back() -> None:
    assert unseal(DATA) == (LINES, 0, len(DATA))
    assert unseal(b"") == ([], 0, 0)


def test_every_flipped_bit_costs_its_own_line_alone() -> None:
    first = len(seal(LINES[0]))
    for place in range(len(DATA)):
        for bit in range(8):
            flipped = bytearray(DATA)
            flipped[place] ^= 1 << bit
            kept = unseal(bytes(flipped)).lines
            joined = place == first - 1  # without its newline, a line runs into the next
            assert kept == ([] if joined else LINES[1:] if place < first else LINES[:1]), place


def test_every_cut_leaves_whole_lines() -> None:
    first = len(seal(LINES[0]))
    for cut in range(len(DATA)):
        found = unseal(DATA[:cut])
        assert found.damaged == 0 and found.good == (0 if cut < first else first)
        assert found.lines == (LINES[:1] if cut >= first else [])


CONTENT = {"mean": 0.25, "part": {"sha256": "é"}, "schema": 3, "task": 'a\n  "sha256": "'}


def test_the_sha256_of_an_object_is_of_its_other_lines() -> None:
    text = seal_json(CONTENT)
    lines = text.splitlines(keepends=True)
    (own,) = [line for line in lines if line.startswith('  "sha256": ')]
    digest = hashlib.sha256("".join(line for line in lines if line != own).encode()).hexdigest()
    assert own == f'  "sha256": "{digest}",\n' and lines[-1] == "}\n"
    assert json.loads(text) == CONTENT | {"sha256": digest}
    assert seal_json(dict(reversed(CONTENT.items()))) == text
    assert unseal_json(json.loads(text), text.encode(), sealed=True) == CONTENT


def test_the_sha256_may_come_last() -> None:
    text = seal_json({"a": 1})
    digest = hashlib.sha256(b'{\n  "a": 1,\n}\n').hexdigest()
    assert text == f'{{\n  "a": 1,\n  "sha256": "{digest}"\n}}\n'
    assert unseal_json(json.loads(text), text.encode(), sealed=True) == {"a": 1}


def test_no_flipped_bit_of_an_object_is_believed() -> None:
    whole = seal_json(CONTENT).encode()
    parsed = 0
    for place in range(8 * len(whole)):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        with pytest.raises(ValueError):
            parse_sealed(bytes(flipped))
        try:
            content = json.loads(flipped.decode())
        except ValueError:
            continue
        parsed += 1
        with pytest.raises(ValueError, match="its content does not match its sha256"):
            unseal_json(content, bytes(flipped), sealed=True)
    assert parsed > 200, "most flips of a digit or a letter leave valid JSON"


def test_a_file_that_was_sealed_is_parsed() -> None:
    assert parse_sealed(seal_json(CONTENT).encode()) == CONTENT
    for data, said in ((b"[1]", "it holds no JSON object"), (b'{"a": 1}', "does not match its")):
        with pytest.raises(ValueError, match=said):
            parse_sealed(data)


def test_an_object_has_a_sha256_where_its_schema_says_so() -> None:
    bare = json.dumps(CONTENT, indent=2).encode()
    assert unseal_json(CONTENT, bare, sealed=False) == CONTENT
    for content, data, sealed in (
        (CONTENT, bare, True),
        (json.loads(seal_json(CONTENT)), seal_json(CONTENT).encode(), False),
        (json.loads(seal_json(CONTENT)), json.dumps(json.loads(seal_json(CONTENT))).encode(), True),
        ({}, b"", True),
    ):
        with pytest.raises(ValueError, match="does not match"):
            unseal_json(content, data, sealed=sealed)
