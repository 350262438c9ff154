"""What went wrong on the Hugging Face hub, in one line with a way out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from faithbench.core.errors import FaithbenchError
from faithbench.core.text import plain


@dataclass(frozen=True)
class Fault:
    """Why something could not be had from the hub, and what the user can do about it."""

    reason: str
    remedy: str


_GATED = Fault("access to it is restricted", "ask for access on its page and run `hf auth login`")
_MISSING = Fault("it is not there, or private", "check the name, run `hf auth login`")
_BROKEN = Fault("the hub broke off or stopped answering", "try again")
# By the names of classes: the library that makes the connections changes with huggingface_hub's
# version. The first that fits counts: to that library, a gated repository is one not found.
_FAULTS = {
    "GatedRepoError": _GATED,
    "RevisionNotFoundError": Fault("it has no such revision", "check the revision"),
    "RepositoryNotFoundError": _MISSING,
    "TimeoutException": _BROKEN,
    "NetworkError": _BROKEN,
    "RemoteProtocolError": _BROKEN,
    "UnpicklingError": Fault(
        "its pytorch_model.bin holds more than tensors", "ask its owner for safetensors"
    ),
}

# `datasets` drops the cause of some errors, so that their words are all that is left.
_WORDS = {"is a gated dataset": _GATED, "or cannot be accessed": _MISSING}


@contextmanager
def telling_faults(name: str, revision: str | None, otherwise: str) -> Iterator[None]:
    """Turn what the hub's libraries raise in this block into one line that names the repository.

    `otherwise` is the way out that is left if the fault stays.
    """
    try:
        yield
    except FaithbenchError:
        raise
    # Five libraries raise here, and their errors have no common base.
    except Exception as error:
        fault = find_fault(error)
        # A commit is known by its first digits; other names of revisions are shorter than these.
        at = revision[:8] if revision and len(revision) == 40 else revision or "main"
        raise FaithbenchError(
            f"cannot load {name} at {at} from the hub ({fault.reason}); {fault.remedy}, "
            f"or {otherwise}"
        ) from error


def find_fault(error: BaseException) -> Fault:
    """Return the fault behind an error: libraries wrap each other's, so every cause counts."""
    names = {kind.__name__ for cause in _causes(error) for kind in type(cause).__mro__}
    for kind, fault in _FAULTS.items():
        if kind in names:
            return fault
    for words, fault in _WORDS.items():
        if words in str(error):
            return fault
    return Fault(f"{type(error).__name__}: {plain(str(error))}", "try again")


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what led to it, the last one first."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__
