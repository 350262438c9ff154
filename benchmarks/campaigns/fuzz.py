"""Feed the loaders files that are almost right, by the ten thousand.

    python -m benchmarks.campaigns.fuzz --out FOLDER [--each 2200] [--seed 0]

Mutations know the structure of a file: in JSON, lines of JSON and TOML a value is replaced by a
hostile one, a key renamed, dropped or added, a list emptied or nested; in all files bytes are
changed, removed, repeated or put in. A loader may refuse in one line or accept; a traceback, more
than a line, more than five seconds or more than 500 MB is a finding.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import re
import resource
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.campaigns.readers import Reader, make_files, readers
from benchmarks.campaigns.trials import (
    Campaign,
    alarm,
    cpu_seconds,
    draws,
    load_libraries,
    write_campaign,
)
from faithbench.core.errors import FaithbenchError
from faithbench.core.seals import parse_sealed, seal, seal_json

FINE = ("refused", "accepted")
SECONDS = 5.0
MOST_MB = 500
TURN = 100
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**63, 10**30, -0.0, 0.5, 1e308, 1e-320, "", "x", "0",
    "../../x", "/etc/passwd", "\u0000", "\u202e", "\ud800", "\u2028", "[red]", "x" * 5000, [], [[]],
    {}, [None], {"": {}}, "nan", "1e999", "<script>", "%s{0}", "é", "a\nb", "\x1b[31m",
)  # fmt: skip
SNIPPETS = (
    b"\x00", b"\xff", b"\xf0\x28", b"NaN", b"Infinity", b"-", b"9" * 5000, b"[" * 3000, b'"', b"{",
    b"}", b"\n", b"\r\n", b",", b"=", b"[[", b"1e999", b"\\u0000", b"\\ud800", b"null", b"true",
    b"\xef\xbb\xbf", b"\xe2\x80\xae", b"#", b"'''", b"0x1F", b"1979-05-27", b"inf", b"nan",
)  # fmt: skip


def mutated(data: bytes, name: str, numbers: random.Random) -> bytes:
    """Return a file's bytes, changed in one to three places."""
    packed = name.endswith(".gz")
    if packed and numbers.random() < 0.7:
        return gzip.compress(mutated(gzip.decompress(data), name[:-3], numbers), 1)
    for _ in range(numbers.choice((1, 1, 2, 3))):
        in_structure = numbers.random() < 0.6
        if in_structure and name.endswith((".json", ".jsonl")):
            data = _json_mutated(data, name, numbers)
        elif in_structure and name.endswith(".toml"):
            data = _toml_mutated(data, numbers)
        else:
            data = _bytes_mutated(data, numbers)
    return data


def _bytes_mutated(data: bytes, numbers: random.Random) -> bytes:
    start = numbers.randrange(len(data) + 1)
    end = min(len(data), start + numbers.choice((0, 1, 2, 8, 64)))
    way = numbers.randrange(4)
    if way == 0:
        return data[:start] + numbers.choice(SNIPPETS) + data[end:]
    if way == 1:
        return data[:start] + data[end:]
    if way == 2:
        return data[:end] + data[start:]
    return data[:start] + numbers.randbytes(end - start) + data[end:]


def _json_mutated(data: bytes, name: str, numbers: random.Random) -> bytes:
    """Change a value of a JSON file, or of one of its lines."""
    lines = data.splitlines(keepends=True) if name.endswith(".jsonl") else [data]
    if not lines:
        return data
    index = numbers.randrange(len(lines))
    # Lines that grow have a checksum, which a forger would renew.
    sealed = re.match(rb"[0-9a-f]{16} ", lines[index])
    try:
        content = json.loads(lines[index][17 * bool(sealed) :])
    except (ValueError, RecursionError):
        return _bytes_mutated(data, numbers)
    changed = _changed(content, numbers)
    line = json.dumps(changed).encode() + b"\n"
    if sealed:
        line = seal(line)
    elif isinstance(changed, dict) and _is_sealed(data):
        changed.pop("sha256", None)
        with suppress(UnicodeEncodeError):  # half a character can be escaped, and not be sealed
            line = seal_json(changed).encode()
    return b"".join([*lines[:index], line, *lines[index + 1 :]])


def _is_sealed(data: bytes) -> bool:
    """Return whether a file is an object that names its own sha256, which a forger would renew."""
    try:
        parse_sealed(data)
    except (ValueError, RecursionError):
        return False
    return True


def _changed(content: Any, numbers: random.Random) -> Any:
    """Return JSON content with a value, a key or a length changed somewhere."""
    if isinstance(content, dict) and content and numbers.random() < 0.9:
        key = numbers.choice(list(content))
        copy = dict(content)
        way = numbers.randrange(8)
        if way == 0:
            del copy[key]
        elif way == 1:
            copy[str(numbers.choice(VALUES))] = copy.pop(key)
        elif way == 2:
            copy[numbers.choice(("extra", "__class__", ""))] = numbers.choice(VALUES)
        else:
            copy[key] = _changed(copy[key], numbers)
        return copy
    if isinstance(content, list) and content and numbers.random() < 0.9:
        index = numbers.randrange(len(content))
        way = numbers.randrange(5)
        if way == 0:
            return content[:index] + content[index + 1 :]
        if way == 1:
            return content + [content[index]] * numbers.choice((1, 3))
        return [*content[:index], _changed(content[index], numbers), *content[index + 1 :]]
    if isinstance(content, int | float) and not isinstance(content, bool):
        near = (content + 1, -content, content * 1e9, float(content), str(content))
        return numbers.choice((*near, *VALUES))
    return numbers.choice(VALUES)


def _toml_mutated(data: bytes, numbers: random.Random) -> bytes:
    """Change the value or the key of a line of TOML, or repeat or drop a line."""
    lines = data.decode(errors="surrogateescape").split("\n")
    index = numbers.randrange(len(lines))
    key, equals, _ = lines[index].partition("=")
    way = numbers.randrange(5)
    if way == 0:
        del lines[index]
    elif way == 1:
        lines.insert(numbers.randrange(len(lines)), lines[index])
    elif way == 2 and equals:
        lines[index] = f"{key.strip()}x{equals}{lines[index].partition('=')[2]}"
    elif equals:
        value = numbers.choice(VALUES)
        text = json.dumps(value) if value is not None else "[]"
        lines[index] = f"{key}= {text.replace('{}', '{ }')}"
    return "\n".join(lines).encode(errors="surrogateescape")


def verdict_of(reader: Reader) -> tuple[str, str]:
    """Read a mutated file and say what became of it."""
    try:
        with alarm(SECONDS):
            reader.read()
    except FaithbenchError as error:
        line = str(error)
        return ("refused", "") if "\n" not in line else ("more than a line", line[:200])
    except TimeoutError:
        return "hangs", ""
    except Exception as error:
        return "traceback", _where(error)
    return "accepted", ""


def _where(error: Exception) -> str:
    """Return an error with the line of ours that it came from."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = Path(trace.tb_frame.f_code.co_filename)
        if "faithbench" in file.parts and "site-packages" not in file.parts:
            place = f"{file.name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return f"{type(error).__name__} at {place}: {error}"[:160]


def run_fuzz(
    campaign: Campaign, files: list[Reader], each: int, seed: int, minutes: float = 600
) -> None:
    """Mutate each kind of file so many times, in turns, until the time is over."""
    deadline = time.monotonic() + 60 * minutes
    for start in range(0, each, TURN):
        for reader in files:
            data = reader.file.read_bytes()
            numbers = draws("fuzz", reader.kind, seed, start)
            try:
                for number in range(start, min(start + TURN, each)):
                    if time.monotonic() > deadline:
                        return
                    changed, trial = mutated(data, reader.file.name, numbers), f"{seed}.{number}"
                    if f"{reader.kind}/{trial}" not in campaign.done:
                        reader.file.write_bytes(changed)
                        campaign.add(reader.kind, trial, *verdict_of(reader))
            finally:
                reader.file.write_bytes(data)


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--each", type=int, default=2200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=600, help="stop after so many minutes")
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    folder = options.out.resolve() / "files"
    load_libraries()
    make_files(folder, options.out.resolve() / "places")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    campaign = Campaign("fuzz", options.out / "fuzz.jsonl", FINE)
    chosen = [r for r in readers(folder) if not options.only or r.kind in options.only]
    run_fuzz(campaign, chosen, options.each, options.seed, options.minutes)
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
    if more > MOST_MB:
        campaign.findings.append(f"memory grew by {more} MB")
    write_campaign(
        campaign, "Fuzzed loaders", "python -m benchmarks.campaigns.fuzz --out FOLDER",
        f"The process of {'the last call' if campaign.continued else 'all trials'} grew by "
        f"{more} MB at its peak.", cpu_seconds(),
    )  # fmt: skip


if __name__ == "__main__":
    main()
