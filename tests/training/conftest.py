"""Trainings remember where their bases lie: here in a folder of the tests, not in the user's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("FAITHBENCH_HOME", str(tmp_path_factory.mktemp("home")))
        yield
