"""Errors of the hub's libraries, as one line with a way out."""

from __future__ import annotations

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.data.hub_faults import Fault, find_fault, telling_faults


class TimeoutException(Exception):  # noqa: N818  # the name that the library gives it
    pass


class ReadTimeout(TimeoutException):
    pass


def test_every_cause_counts() -> None:
    try:
        try:
            raise ReadTimeout("slow")
        except ReadTimeout as error:
            raise OSError("cannot read\nconfig.json") from error
    except OSError as error:
        assert find_fault(error) == Fault("the hub broke off or stopped answering", "try again")


def test_an_unknown_fault_keeps_its_words_on_one_line() -> None:
    fault = find_fault(ValueError("two\n  lines\x1b[31m"))
    assert fault == Fault("ValueError: two lines [31m", "try again")


def test_words_count_where_the_cause_is_gone() -> None:
    error = RuntimeError("Dataset 'x' is a gated dataset on the Hub.")
    assert find_fault(error).reason == "access to it is restricted"


@pytest.mark.parametrize(
    ("revision", "shown"), [(None, "main"), ("v1", "v1"), ("0123456789" * 4, "01234567")]
)
def test_the_line_names_repository_and_revision(revision: str | None, shown: str) -> None:
    with (
        pytest.raises(FaithbenchError) as caught,
        telling_faults("owner/x", revision, "take another"),
    ):
        raise KeyError("k")
    assert str(caught.value) == (
        f"cannot load owner/x at {shown} from the hub (KeyError: 'k'); try again, or take another"
    )


def test_our_own_errors_pass() -> None:
    with (
        pytest.raises(FaithbenchError, match=r"^ours$"),
        telling_faults("owner/x", None, "take another"),
    ):
        raise FaithbenchError("ours")
