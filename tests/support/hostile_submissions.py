"""Hostile submissions, made from an honest one: every part of it changed in every way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.records import forge_record
from tests.support.submissions import record_of, replace_rows, rows_of

# What only its author can know, and no number on a board depends on.
FREE = ("environment.", "source.", "timing.seconds_total")
DEEP = "[" * 50_000
NAMES = (
    "..", "../x", "../../etc", "/etc/passwd", "a/b", "a\\b", "x.", "x ", " x", "-x", "X", "CON",
    "con", "nul", "lpt1", "all", "x\x00", "x\n", "x\r", "ü", "\u0430ttention", "x\u200b", "\u202ex",
    "x\uff0fy", "~root", "$HOME", "`id`", "x;id", "x|y", "<script>", "x" * 41, "x" * 5000, "",
    "random", "lrp-mask", "human", "attention", "integrated-gradients", "%2e%2e", "x%00", "x:y",
)  # fmt: skip
FILES = (
    "evil.py", "conftest.py", "setup.py", "pyproject.toml", ".git/config",
    ".github/workflows/x.yml",
    "sitecustomize.py", "explainer.pyc", "explainer.so", "data/x.pkl", "data/x.pt", "data/x.bin",
    "data/x.npy", "data/x.py", "data/x.tar.gz", "data/x.zip", "data/a/b.json", "data/.hidden.json",
    "records/x.json", "records/a/x.json", "records/a/b/c/x.json", "records/a/b/x.pkl",
    "records/a/b/.x.json", "records/a/b/x.json.gz", "scores/x.json", "scores/sst2.csv",
    "scores/sst2.jsonl.bz2", "scores/sst2.jsonl.gz", "scores/agnews.jsonl", "explainer.py",
    "test_explainer.py", "data/x.json", "Makefile", "entry.json", "records/a/b/x.rows.jsonl",
)  # fmt: skip
ENTRIES = (
    'name = "other"', 'kind = "plugin"', 'kind = "pickle"', 'unit = "letters"', "authors = []",
    'authors = "Ada"', "authors = [1]", 'licence = ""', 'licence = "\\u0000"', "extra = 1",
    'licence = "\\u202e"', 'paper = "javascript:alert(1)"', 'paper = "data:text/html,x"',
    'code = "file:///etc/passwd"', 'code = "https://x/\\"onload"', 'method = ""', "method = 3",
    'explainer = "x"', "settings = {a = 1}", "scores = []", 'scores = [{task = "../x"}]',
    'scores = [{task = "nothing"}]', 'scores = [{task = "agnews"}]',
    'scores = [{task = "sst2", source = "web"}]', 'scores = [{task = "sst2", split = "../x"}]',
    'scores = [{task = "sst2"}, {task = "sst2"}]', 'scores = [{task = "sst2", sudo = true}]',
    "licence = 1979-05-27", "licence = nan", "licence = [[[[]]]]", f"licence = {DEEP}",
    "requirements = 1", f'paper = "{"x" * 301}"', "= 1", "\x00",
)  # fmt: skip

Hostile = tuple[str, Callable[[Path], object]]


def hostile_files() -> Iterator[Hostile]:
    """Change what lies in the folder: strays, links, other entries, other scores."""
    for path in FILES:
        yield f"file {path}", lambda folder, path=path: _put(folder / path, b"x")
    for path in ("entry.toml", "README.md", "scores/sst2.jsonl", "records"):
        yield f"link {path}", lambda folder, path=path: _link(folder / path)
    for line in ENTRIES:
        yield f"entry {line[:40]!r}", lambda folder, line=line: _set_entry(folder, line)
    for data in (b"", b"\xff\xfe", b"\x80\x04\x95pickle.", b"PK\x03\x04", b"\x1f\x8b\x08", b"{}",
                 DEEP.encode(), b"x" * 30_000):  # fmt: skip
        yield f"entry {data[:8]!r}", lambda folder, data=data: _put(folder / "entry.toml", data)
        yield (
            f"scores {data[:8]!r}",
            lambda folder, data=data: _put(folder / "scores" / "sst2.jsonl", data or b"\n"),
        )


def hostile_records(honest: Path) -> Iterator[Hostile]:
    """Change one value of the record, or of a row with the digest to match, or swap the file."""
    path = record_of(honest)
    for key, value in leaves(json.loads(path.read_text())):
        # Metrics are many, and one is as good as another.
        ways = others(value)[:2] if key.startswith("metrics.") else others(value)
        for number, other in enumerate(ways):
            if not key.startswith(FREE):
                yield (
                    f"record {key} {number}",
                    lambda folder, key=key, other=other: _set_record(folder, key, other),
                )
    first = json.loads(rows_of(honest).read_text().splitlines()[1])
    for key, value in leaves(first):
        if key != "right_without_rationale":  # the model's to say
            for number, other in enumerate(others(value)):
                yield (
                    f"row {key} {number}",
                    lambda folder, key=key, other=other: _set_row(folder, key, other),
                )
    for name, data in {
        "empty": b"", "list": b"[]", "pickle": b"\x80\x04\x95.", "deep": DEEP.encode(),
        "nan": b'{"schema": NaN}', "twice": b'{"schema": 1, "schema": 1}', "zip": b"PK\x03\x04",
        "digits": b'{"schema": ' + b"9" * 9999 + b"}", "latin": b'{"schema": "\xe9"}',
    }.items():  # fmt: skip
        yield f"record {name}", lambda folder, data=data: _put(record_of(folder), data)
        yield f"rows {name}", lambda folder, data=data: replace_rows(folder, data)
    yield "rows twice", lambda folder: replace_rows(folder, _repeated(rows_of(folder)))
    yield "rows fewer", lambda folder: replace_rows(folder, _fewer(rows_of(folder)))
    yield "rows reversed", lambda folder: replace_rows(folder, _reversed(rows_of(folder)))


def others(value: object) -> list[object]:
    """Return values in place of one: near, far, of other types, and of no type at all."""
    if isinstance(value, bool):
        return [not value, "yes"]
    if isinstance(value, int | float):
        return [value + 1, value + 1e-3, -1e308, str(value), [value]]
    if isinstance(value, str):
        return [f"{value}x", "../../x", "<script>alert(1)</script>", 3, None]
    return ["x", 10**30]


def leaves(content: object, key: str = "") -> Iterator[tuple[str, object]]:
    """Yield the key and value of every leaf; of long lists the first alone."""
    if isinstance(content, dict) and content:
        for name, value in content.items():
            yield from leaves(value, f"{key}.{name}" if key else name)
    elif isinstance(content, list) and content:
        yield from leaves(content[0], f"{key}.0")
    else:
        yield key, content


def _put(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _link(path: Path) -> None:
    if path.exists():
        path.rename(path.with_name("old"))
    path.symlink_to("/etc/passwd")


def _set_entry(folder: Path, line: str) -> None:
    """Put a line in the place of the one with its key; tables are dropped if it names them."""
    path, key = folder / "entry.toml", line.partition(" =")[0]
    head, _, table = path.read_text().partition("[[scores]]")
    kept = [old for old in head.splitlines() if old.partition(" =")[0].strip() != key]
    rest = "" if key == "scores" else f"[[scores]]{table}"
    path.write_text("\n".join([*kept, line, rest]))


def _changed(content: Any, key: str, value: object) -> Any:
    first, _, rest = key.partition(".")
    name: Any = int(first) if isinstance(content, list) else first
    # Names of metrics may hold dots: try the longest key that is there.
    if isinstance(content, dict) and first not in content:
        name = next(known for known in content if key == known or key.startswith(f"{known}."))
        rest = key[len(name) + 1 :]
    copy = list(content) if isinstance(content, list) else dict(content)
    copy[name] = _changed(copy[name], rest, value) if rest else value
    return copy


def _set_record(folder: Path, key: str, value: object) -> None:
    path = record_of(folder)
    changed = _changed(json.loads(path.read_text()), key, value)
    if key == "sha256":
        path.write_text(json.dumps(changed, indent=2, ensure_ascii=False) + "\n")
    else:
        forge_record(path, changed)


def _set_row(folder: Path, key: str, value: object) -> None:
    head, first, *rest = rows_of(folder).read_text().splitlines()
    changed = json.dumps(_changed(json.loads(first), key, value))
    replace_rows(folder, "".join(f"{line}\n" for line in (head, changed, *rest)).encode())


def _repeated(path: Path) -> bytes:
    head, first, *rest = path.read_bytes().splitlines(keepends=True)
    return b"".join([head, first, first, *rest[1:]])


def _fewer(path: Path) -> bytes:
    return b"".join(path.read_bytes().splitlines(keepends=True)[:-1])


def _reversed(path: Path) -> bytes:
    head, *rest = path.read_bytes().splitlines(keepends=True)
    return b"".join([head, *reversed(rest)])
