"""The room's own names: each is there, and none is loaded before it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import faithbench.submissions as room


def test_every_name_is_where_the_room_says() -> None:
    assert set(room.__all__) == set(room._MODULES)
    for name in room.__all__:
        assert getattr(room, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'prove'"):
        _ = room.prove


def test_importing_the_room_loads_none_of_it() -> None:
    code = """
import sys
import faithbench.submissions, faithbench.submissions.sandbox
print([name for name in sys.modules if name.startswith("faithbench.submissions.")])
print("numpy" in sys.modules)
"""
    command = [sys.executable, "-c", code]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert output.splitlines() == ["['faithbench.submissions.sandbox']", "False"]
