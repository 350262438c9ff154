"""Errors: hints for misspelt names, and what a stopped run keeps."""

from __future__ import annotations

import errno

import pytest

from faithbench.core.errors import (
    FaithbenchError,
    Interrupted,
    Kept,
    telling_kept,
    unknown,
    why_not_written,
)


def test_a_misspelt_name_gets_the_nearest_one() -> None:
    known = ["lime", "attention", "rollout"]
    assert str(unknown("explainer", "atention", known)) == (
        "no explainer named 'atention'; did you mean 'attention'?"
    )
    assert str(unknown("explainer", "zzz", known)) == (
        "no explainer named 'zzz'; known: attention, lime, rollout"
    )


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (Kept(0, 6), "none of 6 examples was finished, so nothing is kept"),
        (Kept(1, 6), "1 of 6 examples is kept; the same command continues there"),
        (Kept(2, 4, "epochs"), "2 of 4 epochs are kept; the same command continues there"),
    ],
)
def test_kept_is_a_sentence(kept: Kept, expected: str) -> None:
    assert str(kept) == expected
    assert str(Interrupted(kept)) == expected


def test_what_is_kept_is_counted_when_a_run_stops() -> None:
    done = ["a"]
    with pytest.raises(Interrupted) as stop, telling_kept(lambda: len(done), 3):
        done.append("b")
        raise KeyboardInterrupt
    assert stop.value.kept == Kept(2, 3)
    with pytest.raises(FaithbenchError) as caught, telling_kept(lambda: len(done), 3):
        raise FaithbenchError("wrong")
    assert str(caught.value) == "wrong"
    assert caught.value.kept == Kept(2, 3)
    assert FaithbenchError("elsewhere").kept is None


def test_a_full_disk_is_told_in_words_of_any_library() -> None:
    assert why_not_written(OSError(errno.ENOSPC, "full")) == "No space left on device"
    of_library = ValueError("I/O error: File too large (os error 27)")
    assert why_not_written(of_library) == "File too large"
    assert why_not_written(OSError(errno.EROFS, "x")) == "Read-only file system"
    for other in (OSError(errno.ENOENT, "x"), ValueError("28"), OSError("x"), KeyError(28)):
        assert why_not_written(other) is None


def test_other_errors_pass_as_they_are() -> None:
    with pytest.raises(ZeroDivisionError), telling_kept(lambda: 0, 3):
        raise ZeroDivisionError
