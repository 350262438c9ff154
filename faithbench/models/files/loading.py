"""How files of models are loaded: without code of theirs, and with one line for damage."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from faithbench.core.errors import FaithbenchError

_LONGEST = 200


@contextmanager
def unloadable(ref: str, option: str = "--model") -> Iterator[None]:
    """Turn whatever libraries raise over a model's files into one line that names the model.

    Broad on purpose: transformers, tokenizers and peft answer damaged files with errors of any
    kind. Every load inside passes `trust_remote_code=False`: left out, transformers would ask on
    the terminal whether to run code that comes with a model, and take "y" from a pipe.
    """
    try:
        yield
    except (FaithbenchError, MemoryError):
        raise
    except Exception as error:
        said = " ".join(str(error).split())
        if "trust_remote_code" in said:
            raise FaithbenchError(
                f"model {ref!r} comes with code of its own, which faithbench never runs; "
                f"choose a model of an architecture that transformers has with {option}"
            ) from None
        shown = said if len(said) <= _LONGEST else f"{said[:_LONGEST]}..."
        raise FaithbenchError(
            f"model {ref!r} cannot be loaded ({type(error).__name__}: {shown}); "
            f"restore its files, or choose another with {option}"
        ) from error
