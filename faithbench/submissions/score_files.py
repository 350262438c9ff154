"""Files of attributions: one object per example id, aligned with what the model reads."""

from __future__ import annotations

import gzip
import io
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.core.schema import Facts, describe_error
from faithbench.core.text import readable
from faithbench.core.types import Encoding, Evidence, Example
from faithbench.data.tasks import Task
from faithbench.data.words import word_spans
from faithbench.submissions.sandbox.messages import Score

MOST_BYTES = 64 << 20


class ScoredExample(Facts):
    """One line of a file: an example's id and its scores, in reading order."""

    id: str
    scores: tuple[Score, ...]


def score_file(folder: Path, task: str) -> Path:
    """Return the file of a task's attributions."""
    paths = [folder / "scores" / f"{task}.jsonl{ending}" for ending in ("", ".gz")]
    found = [path for path in paths if path.is_file()]
    if len(found) != 1:
        said = "both are there: keep one" if found else "neither is there: write one"
        raise FaithbenchError(f"scores/{task}.jsonl or scores/{task}.jsonl.gz: {said}")
    return found[0]


def read_scores(path: Path) -> dict[str, tuple[float, ...]]:
    """Read a file of attributions: each id once, finite numbers, no more than 64 MB unpacked."""
    found: dict[str, tuple[float, ...]] = {}
    for number, line in enumerate(_lines(path), 1):
        place = f"scores/{path.name}, line {number}"
        try:
            one = ScoredExample.model_validate_json(line, strict=True)
        except ValidationError as error:
            raise FaithbenchError(
                f"{place}: {readable(describe_error(error))}; "
                'a line is {"id": "...", "scores": [...]}'
            ) from error
        if one.id in found:
            raise FaithbenchError(f"{place}: example {readable(one.id, 60)!r} appears twice")
        found[one.id] = one.scores
    return found


def aligned_scores(
    folder: Path, task: Task, unit: str, encodings: Sequence[Encoding]
) -> dict[str, tuple[float, ...]]:
    """Return a score for each erasable token of each example, from those of tokens or of words."""
    path = score_file(folder, task.name)
    found = read_scores(path)
    ids = {encoding.example.id for encoding in encodings}
    for names, said in ((ids - set(found), "lacks"), (set(found) - ids, "has, beside the task's,")):
        if names:
            first = readable(min(names), 60)
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise FaithbenchError(
                f"scores/{path.name} {said} example {first!r}{more}; give all examples of the "
                "split, or those of a --limit, and no others"
            )
    aligned = {}
    for encoding in encodings:
        own = found[encoding.example.id]
        places = words_of_evidence(encoding.example, task.evidence)
        wanted = int(encoding.erasable.sum()) if unit == "tokens" else len(places)
        if len(own) != wanted:
            raise FaithbenchError(
                f"scores/{path.name}, example {readable(encoding.example.id, 60)!r}: "
                f"{len(own)} scores for {wanted} {unit} that may be erased; give one for each, "
                "in reading order"
            )
        aligned[encoding.example.id] = own if unit == "tokens" else _shared(encoding, places, own)
    return aligned


def words_of_evidence(example: Example, evidence: Evidence) -> range:
    """Return the places of the words to score among all words: text before text_b."""
    first, second = len(word_spans(example.text)), len(word_spans(example.text_b or ""))
    start = first if evidence == "text_b" else 0
    return range(start, first if evidence == "text" else first + second)


def _shared(encoding: Encoding, places: range, scores: Sequence[float]) -> tuple[float, ...]:
    """Share a word's score equally among its tokens: their sum is the word's score again.

    A word that truncation cut off, or that has no token of its own, has nobody to give its
    score to; a token in no word gets 0.
    """
    of_word = dict(zip(places, scores, strict=True))
    tokens = encoding.words[encoding.erasable].tolist()
    pieces = Counter(tokens)
    return tuple(of_word[word] / pieces[word] if word >= 0 else 0.0 for word in tokens)


def _lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a plain or gzipped file, and stop one that unpacks to too much."""
    try:
        with path.open("rb") as raw:
            file: io.BufferedIOBase = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
            left = MOST_BYTES
            while line := file.readline(left + 1):
                left -= len(line)
                if left < 0:
                    raise FaithbenchError(
                        f"scores/{path.name} holds more than {MOST_BYTES >> 20} MB; "
                        "give fewer digits"
                    )
                yield line
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FaithbenchError(
            f"scores/{path.name} cannot be read: {readable(str(reason))}; write it again"
        ) from error
