"""Chunks in this process: each computed when it is asked for, and not before."""

from __future__ import annotations

import re
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.models.session import Session
from faithbench.run import backends
from faithbench.run.backends import WORTH_FORKING, choose_backend, serial
from faithbench.run.backends.processes import Processes
from faithbench.run.backends.serial import Serial
from faithbench.run.loop import run
from tests.support.jobs import content, make_job, quiet


def test_chunks_are_computed_as_they_are_asked_for(
    tmp_path: Path, tiny_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed: list[Any] = []
    monkeypatch.setattr(serial, "compute_chunk", lambda *parts: computed.append(parts[2]))
    job = make_job(tmp_path, tiny_model())
    chunks: Any = ["first", "second", "third"]
    results = Serial().compute(Session(job.model), job, chunks, lambda *_: None)
    next(results)
    assert computed == ["first"]
    assert len(list(results)) == 2 and computed == chunks


def test_the_number_of_jobs_chooses_the_backend() -> None:
    assert choose_backend(1) == Serial(threads=1)
    assert choose_backend(3) == Processes(jobs=3)
    assert choose_backend(3).threads == 1


@pytest.mark.parametrize(
    ("cores", "chosen"), [(4, Processes(jobs=4, least_work=WORTH_FORKING)), (1, Serial(threads=1))]
)
def test_by_default_there_is_a_process_for_each_core(
    cores: int, chosen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "default_processes", lambda: cores)
    assert choose_backend() == chosen
    assert choose_backend(device="cuda:0") == Serial(threads=None)


def test_a_backend_is_found_by_name_and_settings() -> None:
    assert choose_backend(backend="processes:timeout=60,jobs=3") == Processes(3, timeout=60.0)
    assert choose_backend(5, backend="processes:timeout=60") == Processes(5, timeout=60.0)
    with pytest.raises(FaithbenchError, match="no backend named 'proceses'; did you mean 'proc"):
        choose_backend(backend="proceses")
    with pytest.raises(FaithbenchError, match="no setting of processes named 'core'"):
        choose_backend(backend="processes:core=2")


def test_an_installed_package_brings_a_backend(
    tmp_path: Path, tiny_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package of docs/extending.md, as pip would lay it out."""
    page = (Path(__file__).parents[3] / "docs" / "extending.md").read_text()
    (code,) = re.findall(r"```python backend\n(.*?)```", page, re.DOTALL)
    (table,) = re.findall(r"```toml backend\n(.*?)```", page, re.DOTALL)
    ((group, points),) = tomllib.loads(table)["project"]["entry-points"].items()
    ((name, place),) = points.items()
    (tmp_path / f"{place.partition(':')[0]}.py").write_text(code)
    info = tmp_path / "toy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1.0\n")
    points = f"[{group}]\n{name} = {place}\nno = builtins:len\n"
    (info / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)

    job = make_job(tmp_path, tiny_model())
    whole = replace(job, results=tmp_path / "whole")
    run(whole, quiet, Serial(threads=1))
    backend = choose_backend(2, backend=f"{name}:shuffle=7")
    assert (backend.threads, getattr(backend, "jobs", 0)) == (1, 2)
    run(job, quiet, backend)
    assert content(job.results) == content(whole.results)
    with pytest.raises(FaithbenchError, match="'no' of package toy is not a backend"):
        choose_backend(backend="no")
