"""Files of attributions: one JSON object per example, aligned with the tokens of the model."""

from __future__ import annotations

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import numpy as np

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.files import parse_json
from faithbench.core.text import readable
from faithbench.core.types import Encoding, Evidence, Example, Floats
from faithbench.data.tasks import Task
from faithbench.data.words import word_spans

MAX_BYTES = 64 << 20
"""Largest size after unpacking: a small archive can unpack to any size."""
MAX_LINE_BYTES = 1 << 20
"""Largest size of a line: parsed, it takes up to 50 times as much memory."""
MAX_EXAMPLES = 200_000
"""Number of lines at most: an example without scores takes memory too."""

UNITS = ("tokens", "words")
"""What a score may belong to."""


Score = Annotated[float, msgspec.Meta(ge=-1e30, le=1e30)]
"""A score; larger ones would overflow where they are added."""


class ScoredExample(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a file: the id of an example and its scores, in reading order."""

    # Not a pydantic model, which keeps an object for every wrong value of a long line.

    id: str
    scores: tuple[Score, ...]


def score_file(folder: Path, task: str) -> Path:
    """Return the file of attributions for a task, packed or not."""
    paths = [folder / "scores" / f"{task}.jsonl{ending}" for ending in ("", ".gz")]
    files = [path for path in paths if path.is_file()]
    if len(files) != 1:
        problem = "both are there: keep one" if files else "neither is there: write one"
        raise FaithbenchError(f"scores/{task}.jsonl or scores/{task}.jsonl.gz: {problem}")
    return files[0]


def read_scores(path: Path) -> dict[str, Floats]:
    """Read scores by example id; each id appears once, and all scores are finite numbers."""
    decode = msgspec.json.Decoder(ScoredExample).decode
    scores: dict[str, Floats] = {}
    for number, line in enumerate(_lines(path), 1):
        where = f"scores/{path.name}, line {number}"
        try:
            scored = decode(line)
            parse_json(line.decode())  # refuses a key twice, of which the decoder takes the last
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise FaithbenchError(
                f'{where}: {readable(str(error))}; a line is {{"id": "...", "scores": [...]}}'
            ) from None
        if scored.id in scores:
            raise FaithbenchError(f"{where}: example {readable(scored.id, 60)!r} appears twice")
        if len(scores) == MAX_EXAMPLES:
            raise FaithbenchError(f"{where}: there are more than {MAX_EXAMPLES} examples")
        # An array takes a fourth of the memory of as many numbers of Python.
        scores[scored.id] = np.array(scored.scores, dtype=np.float64)
    if not scores:
        raise FaithbenchError(
            f"scores/{path.name}, line 1: the file is empty; "
            'write a line {"id": "...", "scores": [...]} for each example'
        )
    return scores


def aligned_scores(
    folder: Path, task: Task, unit: str, encodings: Sequence[Encoding]
) -> dict[str, tuple[float, ...]]:
    """Return by example id a score per erasable token, read from those of tokens or of words."""
    path = score_file(folder, task.name)
    return align(read_scores(path), f"scores/{path.name}", task, unit, encodings)


def align(
    scores: Mapping[str, Sequence[float] | Floats],
    origin: str,
    task: Task,
    unit: str,
    encodings: Sequence[Encoding],
) -> dict[str, tuple[float, ...]]:
    """Return by example id a score per erasable token; `origin` names the scores in errors."""
    if unit not in UNITS:
        raise unknown("unit of scores", unit, UNITS)
    check_ids(scores, origin, encodings)
    aligned = {}
    for encoding in encodings:
        given = tuple(float(score) for score in scores[encoding.example.id])
        words = words_of_evidence(encoding.example, task.evidence)
        expected = int(encoding.erasable.sum()) if unit == "tokens" else len(words)
        if len(given) != expected:
            raise FaithbenchError(
                f"{origin}, example {readable(encoding.example.id, 60)!r}: "
                f"{len(given)} scores for {expected} {unit} that may be erased; give one for each, "
                "in reading order"
            )
        aligned[encoding.example.id] = (
            given if unit == "tokens" else _share_among_tokens(encoding, words, given)
        )
    return aligned


def check_ids(scores: Collection[str], origin: str, encodings: Sequence[Encoding]) -> None:
    """Refuse scores of other examples than those asked for; `origin` names the scores."""
    ids = {encoding.example.id for encoding in encodings}
    differences = {"lacks": ids - set(scores), "has, besides the task's,": set(scores) - ids}
    for verb, names in differences.items():
        if names:
            first = readable(min(names), 60)
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise FaithbenchError(
                f"{origin} {verb} example {first!r}{more}; give all examples of the "
                "split, or those of a --limit, and no others"
            )


def words_of_evidence(example: Example, evidence: Evidence) -> range:
    """Return the indices of the words to score among all words, those of text before text_b."""
    first, second = len(word_spans(example.text)), len(word_spans(example.text_b or ""))
    start = first if evidence == "text_b" else 0
    return range(start, first if evidence == "text" else first + second)


def _share_among_tokens(
    encoding: Encoding, words: range, scores: Sequence[float]
) -> tuple[float, ...]:
    """Share a word's score equally among its tokens: their sum is the word's score again.

    The score of a word without tokens (cut off by truncation, say) is dropped, and a token in no
    word gets 0.
    """
    of_word = dict(zip(words, scores, strict=True))
    tokens = encoding.words[encoding.erasable].tolist()
    pieces = Counter(tokens)
    return tuple(of_word[word] / pieces[word] if word >= 0 else 0.0 for word in tokens)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain or gzipped file; raise once one, or all together, are too large.

    No more than a line is ever in memory, whatever an archive unpacks to.
    """
    try:
        with path.open("rb") as raw:
            file: io.BufferedIOBase = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            size = number = 0
            while line := file.readline(MAX_LINE_BYTES + 1):
                size, number = size + len(line), number + 1
                if len(line) > MAX_LINE_BYTES or size > MAX_BYTES:
                    most = MAX_LINE_BYTES if len(line) > MAX_LINE_BYTES else MAX_BYTES
                    part = "the line" if most == MAX_LINE_BYTES else "the file, up to here,"
                    raise FaithbenchError(
                        f"scores/{path.name}, line {number}: {part} has more than {most >> 20} MB; "
                        "give fewer digits"
                    )
                yield line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FaithbenchError(
            f"scores/{path.name} cannot be read: {readable(str(reason))}; write it again"
        ) from error
