"""Checksums inside files: damage is left out or refused, never believed.

A file that grows has one in each line; a JSON object that is written whole has its sha256.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from faithbench.core.files import parse_json

_LENGTH: Final = 16
"""Hexadecimal digits of the checksum: 64 bits, far more than accidents can match."""
_KEY: Final = "sha256"


class Unsealed(NamedTuple):
    """The lines that are whole, without checksums; how many are not; and the length without tail.

    What follows the last newline was being written when its process died.
    """

    lines: list[bytes]
    damaged: int
    good: int


def seal(line: bytes) -> bytes:
    """Return a line, which ends in a newline, behind its checksum."""
    return _checksum(line) + b" " + line


def unseal(data: bytes) -> Unsealed:
    """Check the lines of a file, each against its own checksum."""
    *sealed, tail = data.split(b"\n")
    lines = [line[_LENGTH + 1 :] + b"\n" for line in sealed if _is_whole(line)]
    return Unsealed(lines, len(sealed) - len(lines), len(data) - len(tail))


def seal_json(content: Mapping[str, object]) -> str:
    """Return an object as canonical JSON text with its sha256 in a line of its own.

    It is that of all other lines, as `grep -v '^  "sha256"' FILE | sha256sum` gives it.
    """
    text = json.dumps(
        {**content, _KEY: ""}, sort_keys=True, indent=2, ensure_ascii=False, allow_nan=False
    )
    # Two spaces and no more: the line of a key of the object itself, not of a part of it.
    before, empty, after = f"{text}\n".partition(f'\n  "{_KEY}": "')
    digest = _sha256_without_line(f"{before}{empty}{after}".encode())[0]
    return f"{before}{empty}{digest}{after}"


def unseal_json(content: Mapping[str, Any], data: bytes, *, sealed: bool) -> dict[str, Any]:
    """Return the object of a file without its sha256, checked against the bytes of that file.

    Raise ValueError if that is another, or if there is one where, by the schema, there is none.
    """
    digest, line = _sha256_without_line(data)
    matches = line.rstrip(b",\n") == f'  "{_KEY}": "{digest}"'.encode()
    if (_KEY in content) != sealed or (sealed and not matches):
        raise ValueError(f"its content does not match its {_KEY}")
    return {key: value for key, value in content.items() if key != _KEY}


def parse_sealed(data: bytes) -> dict[str, Any]:
    """Return the object of a file that `seal_json` made; raise ValueError if it is damaged."""
    content = parse_json(data.decode())
    if not isinstance(content, dict):
        raise ValueError("it holds no JSON object")
    return unseal_json(content, data, sealed=True)


def _sha256_without_line(data: bytes) -> tuple[str, bytes]:
    """Return the digest of a text without the line that names it, and that line."""
    start = data.find(f'\n  "{_KEY}": "'.encode()) + 1
    end = data.find(b"\n", start) + 1
    return hashlib.sha256(data[:start] + data[end:]).hexdigest(), data[start:end]


def _is_whole(line: bytes) -> bool:
    return line[: _LENGTH + 1] == _checksum(line[_LENGTH + 1 :] + b"\n") + b" "


def _checksum(line: bytes) -> bytes:
    return hashlib.sha256(line).hexdigest()[:_LENGTH].encode()
