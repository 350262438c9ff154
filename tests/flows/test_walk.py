"""A run walks down the rooms, and no module is part of a cycle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from faithbench.run.loop import run
from tests.support.benchmarks import load_benchmark
from tests.support.jobs import make_job, quiet


def test_a_run_goes_down_only(tmp_path: Path, tiny_model: Any) -> None:
    tool = load_benchmark("walk")
    job = make_job(tmp_path, tiny_model())
    seen = tool.walk(lambda: run(job, quiet))
    assert seen.upward(tool.rooms_in_order()) == []
    assert {"core", "data", "models", "explainers", "metrics", "records", "run"} <= seen.rooms
    assert len(seen.functions) > 100


def test_a_call_that_climbs_is_seen() -> None:
    tool = load_benchmark("walk")
    seen = tool.Walk(calls={("core/files.py", "cli/app.py", "main"), ("cli/a.py", "run/b.py", "f")})
    assert seen.upward(tool.rooms_in_order()) == ["core/files.py -> cli/app.py:main"]


def test_no_module_is_part_of_a_cycle() -> None:
    import grimp

    graph = grimp.build_graph("faithbench", exclude_type_checking_imports=True)
    folders = {name.rpartition(".")[0] for name in graph.modules}
    # A package that names what its modules offer imports them, and they import their siblings.
    modules = sorted(graph.modules - folders)
    cyclic = [
        f"{first} <-> {second}"
        for first in modules
        for second in graph.find_modules_directly_imported_by(first)
        if second in graph.modules - folders
        and first < second
        and graph.chain_exists(second, first)
    ]
    assert cyclic == []
