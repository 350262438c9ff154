"""A small job whose model lies in a folder, as workers elsewhere load it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.run.job import Job
from faithbench.run.request import Request, make_job


@pytest.fixture
def stored_job(tmp_path: Path, tiny_model: Any) -> Job:
    model = tiny_model()
    model.network.save_pretrained(tmp_path / "net")
    model.tokenizer.save_pretrained(tmp_path / "net")
    return make_job(
        Request(
            explainer="random,attention,gradient",
            task="sst2",
            model=str(tmp_path / "net"),
            limit=12,
            metrics="aopc,naopc",
            device="cpu",
            human=False,
            batch=2,
            seeds=2,
            results=tmp_path / "results",
        )
    )
