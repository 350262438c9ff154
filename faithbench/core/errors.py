"""Errors that a user reads, and what a stopped run keeps."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True)
class Kept:
    """How much of a run is on disk, where the same command will find it again."""

    done: int
    total: int
    unit: str = "examples"

    def __str__(self) -> str:
        if not self.done:
            return f"none of {self.total} {self.unit} was finished, so nothing is kept"
        verb = "is" if self.done == 1 else "are"
        return (
            f"{self.done} of {self.total} {self.unit} {verb} kept; the same command continues there"
        )


@dataclass(frozen=True)
class Written(Kept):
    """All that was to be computed is on disk, and only its display was stopped."""

    def __str__(self) -> str:
        return f"{self.done} of {self.total} {self.unit} are written"


class FaithbenchError(Exception):
    """Something the user can fix: the message says what was asked, found, and what to do.

    `kept` is set where a run was stopped by the error.
    """

    kept: Kept | None = None


class CannotServeError(FaithbenchError):
    """An explainer cannot explain this model or these inputs, whatever else is asked of it.

    It is raised before anything is explained: by an explainer's `check`, or by its first call. A
    run of several explainers leaves this one out. A wrong setting is a plain FaithbenchError.
    """


class WrongAnswerError(FaithbenchError):
    """An explainer asked or gave what it must not; the run says whose fault it is."""


class RefusedError(FaithbenchError):
    """Explainers of a run that cannot serve its model: `reasons` says why, by their labels."""

    def __init__(self, model: str, reasons: Mapping[str, str]) -> None:
        self.model, self.reasons = model, dict(reasons)
        if len(self.reasons) == 1:
            ((label, reason),) = self.reasons.items()
            super().__init__(f"explainer {label!r} cannot serve model {model!r}: {reason}")
        else:
            all_reasons = ", ".join(f"{label} ({why})" for label, why in self.reasons.items())
            super().__init__(f"these explainers cannot serve model {model!r}: {all_reasons}")


class NoMemoryError(FaithbenchError):
    """The system gave an explainer or metric no memory: elsewhere, or later, it may."""


# Torch makes the third of oneDNN's "out of memory", and Python the last of C code that got none.
_NO_MEMORY = (
    "can't allocate memory",
    "out of memory",
    "could not create a primitive",
    "error return without exception set",
)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that there was no memory, in torch's words for CPU or GPU."""
    return isinstance(error, (MemoryError, NoMemoryError)) or (
        isinstance(error, (RuntimeError, SystemError))
        and any(words in str(error) for words in _NO_MEMORY)
    )


_NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


def why_not_written(error: BaseException) -> str | None:
    """Return why a disk takes no more, in a few words, or None if that is not what is wrong."""
    number = error.errno if isinstance(error, OSError) else None
    # Libraries of other languages tell the system's number in words.
    if number is None and (told := re.search(r"\(os error (\d+)\)", str(error))):
        number = int(told[1])
    return os.strerror(number) if number in _NOT_WRITTEN else None


class Interrupted(KeyboardInterrupt):
    """Ctrl-C in the middle of a run that can be continued."""

    def __init__(self, kept: Kept) -> None:
        super().__init__(str(kept))
        self.kept = kept


@contextmanager
def telling_kept(count: Callable[[], int], total: int, unit: str = "examples") -> Iterator[None]:
    """Add to an error or Ctrl-C in this block how much of the run is kept by then."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise Interrupted(Kept(count(), total, unit)) from stop
    except FaithbenchError as error:
        error.kept = Kept(count(), total, unit)
        raise


def unknown(kind: str, name: str, known: Iterable[str]) -> FaithbenchError:
    """Build the error for a name that is not in the catalogue, with the nearest one offered."""
    names = sorted(known)
    close = get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
    return FaithbenchError(f"no {kind} named {name!r}; {hint}")
