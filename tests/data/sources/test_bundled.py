"""The data that are shipped with the package."""

from __future__ import annotations

import pytest

from faithbench.data.dataset import Dataset, load_dataset, sources
from faithbench.data.tasks import load_task
from tests.support.builders import make_task

pytestmark = pytest.mark.usefixtures("alone")


def test_the_bundled_sentences() -> None:
    found: Dataset = load_dataset(load_task("sst2"), source="bundled")
    labels = [example.label for example in found.examples]
    assert len(labels) >= 120
    assert abs(labels.count(0) - labels.count(1)) <= 0.1 * len(labels)
    assert all(example.rationale for example in found.examples)
    assert all(example.id.startswith("bundled-sst2-") for example in found.examples)
    assert (found.source, found.rationale, found.checked) == ("bundled", "human", True)


def test_a_file_that_is_not_shipped() -> None:
    task = make_task(bundled={"splits": {"test": "test.jsonl"}})
    assert sources(task)["bundled"].startswith("no file ")
    assert sources(task)["bundled"].endswith("/data/bundled/mini/test.jsonl")
