"""Files of attributions: one JSON object per example, aligned with the tokens of the model."""

from __future__ import annotations

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.schema import Facts, describe_error
from faithbench.core.text import readable
from faithbench.core.types import Encoding, Evidence, Example
from faithbench.data.tasks import Task
from faithbench.data.words import word_spans
from faithbench.submissions.sandbox.messages import Score

MAX_BYTES = 64 << 20
"""Largest size after unpacking: a small archive can unpack to any size."""

UNITS = ("tokens", "words")
"""What a score may belong to."""


class ScoredExample(Facts):
    """One line of a file: the id of an example and its scores, in reading order."""

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


def read_scores(path: Path) -> dict[str, tuple[float, ...]]:
    """Read scores by example id; each id appears once, and all scores are finite numbers."""
    scores: dict[str, tuple[float, ...]] = {}
    for number, line in enumerate(_lines(path), 1):
        where = f"scores/{path.name}, line {number}"
        try:
            scored = ScoredExample.model_validate_json(line, strict=True)
        except ValidationError as error:
            raise FaithbenchError(
                f"{where}: {readable(describe_error(error))}; "
                'a line is {"id": "...", "scores": [...]}'
            ) from error
        if scored.id in scores:
            raise FaithbenchError(f"{where}: example {readable(scored.id, 60)!r} appears twice")
        scores[scored.id] = scored.scores
    return scores


def aligned_scores(
    folder: Path, task: Task, unit: str, encodings: Sequence[Encoding]
) -> dict[str, tuple[float, ...]]:
    """Return by example id a score per erasable token, read from those of tokens or of words."""
    path = score_file(folder, task.name)
    return align(read_scores(path), f"scores/{path.name}", task, unit, encodings)


def align(
    scores: Mapping[str, tuple[float, ...]],
    origin: str,
    task: Task,
    unit: str,
    encodings: Sequence[Encoding],
) -> dict[str, tuple[float, ...]]:
    """Return by example id a score per erasable token; `origin` names the scores in errors."""
    if unit not in UNITS:
        raise unknown("unit of scores", unit, UNITS)
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
    aligned = {}
    for encoding in encodings:
        given = scores[encoding.example.id]
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
    """Yield the lines of a plain or gzipped file; raise once it is too large unpacked."""
    try:
        with path.open("rb") as raw:
            file: io.BufferedIOBase = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            left = MAX_BYTES
            # A line may be all there is: it is read up to one byte more than is left.
            while line := file.readline(left + 1):
                left -= len(line)
                if left < 0:
                    raise FaithbenchError(
                        f"scores/{path.name} holds more than {MAX_BYTES >> 20} MB; "
                        "give fewer digits"
                    )
                yield line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FaithbenchError(
            f"scores/{path.name} cannot be read: {readable(str(reason))}; write it again"
        ) from error
