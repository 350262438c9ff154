"""Sources are found by name: those of the folder, and those that other packages bring."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import faithbench
from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset, sources
from faithbench.data.sources import built_in_sources, find_source, installed_sources
from faithbench.data.task_schema import TABLES, SourceTable, source_names
from faithbench.data.tasks import load_task
from faithbench.records.schema import TaskFacts
from tests.support.builders import MINI

pytestmark = pytest.mark.usefixtures("alone")

# A source whose rows are numbers: `up_to` of them, each in a text of its own.
READER = """
import hashlib

from faithbench.data.sources import SplitRows
{imports}

remote = False


def obstacle(wanted):
    return None if wanted.table.up_to else "there is no number below 0"


def read(wanted):
    numbers = range(wanted.table.up_to)
    rows = [
        (f"number {{n}}", {{"id": str(n), "text": f"the number {{n}}", "label": n % 2}})
        for n in numbers
    ]
    digest = hashlib.sha256(repr(rows).encode())
    return SplitRows(rows, digest.hexdigest, rationale="none", checked=True)
"""
TABLE = """
class ToyTable(SourceTable):
    up_to: int
"""
TOY_TASK = f"{MINI}\n[{{table}}]\nup_to = {{up_to}}\nsplits = {{{{ test = 'all' }}}}\n"


def test_each_source_of_the_folder_has_a_table() -> None:
    assert built_in_sources() == ("bundled", "folder", "hub")
    assert tuple(TABLES) == ("folder", "hub", "bundled"), "in the order that auto tries"
    for name in built_in_sources():
        source = find_source(name)
        assert source.table is TABLES[name] and issubclass(source.table, SourceTable)
        assert source.remote is (name == "hub")


def test_a_source_is_one_file_and_one_line_of_the_schema(tmp_path: Path) -> None:
    package = tmp_path / "faithbench"
    heavy = shutil.ignore_patterns("bundled", "__pycache__", "assets")
    shutil.copytree(Path(faithbench.__file__).parent, package, ignore=heavy)
    reader = READER.format(imports="from faithbench.data.task_schema import ToyTable")
    (package / "data" / "sources" / "toy.py").write_text(f"{reader}\ntable = ToyTable\n")
    schema = package / "data" / "task_schema.py"
    text = schema.read_text()
    line = "    bundled: BundledTable | None = None\n"
    assert text.count(line) == 1
    text = text.replace(line, f"{line}    toy: ToyTable | None = None\n")
    schema.write_text(text.replace("class SourceTables", f"{TABLE}\n\nclass SourceTables"))
    (tmp_path / "mini.toml").write_text(TOY_TASK.format(table="toy", up_to=4))
    code = """
from faithbench.cli.options import Source
from faithbench.data.dataset import load_dataset, sources
from faithbench.data.tasks import load_task
from faithbench.records.schema import TaskFacts

task = load_task("mini.toml")
data = load_dataset(task)
print(data.source, [(example.text, example.label) for example in data.examples][:2], data.checked)
print(sources(task)["toy"], "toy" in Source.__metadata__[0].help)
facts = dict(name="mini", version=1, kind="classification", split="test", n=4)
TaskFacts(source="toy", data_sha256=data.sha256, data_checked=True, rationale="none", **facts)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "toy [('the number 0', 0), ('the number 1', 1)] True",
        "yes True",
    ]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that brings one source that works and one that does not import."""
    site = tmp_path / "site"
    (site / "toys-1.0.dist-info").mkdir(parents=True)
    (site / "toys-1.0.dist-info" / "METADATA").write_text("Name: toys\nVersion: 1.0\n")
    points = "toy = toy_source\nbroken = no_such_module\nhub = toy_source\n"
    (site / "toys-1.0.dist-info" / "entry_points.txt").write_text(f"[faithbench.sources]\n{points}")
    reader = READER.format(imports="from faithbench.data.task_schema import SourceTable")
    (site / "toy_source.py").write_text(f"{reader}{TABLE}\ntable = ToyTable\n")
    monkeypatch.syspath_prepend(str(site))
    installed_sources.cache_clear()
    yield
    installed_sources.cache_clear()
    sys.modules.pop("toy_source", None)


def write_task(folder: Path, table: str, up_to: str = "4") -> str:
    path = folder / "mini.toml"
    path.write_text(TOY_TASK.format(table=table, up_to=up_to))
    return str(path)


@pytest.mark.usefixtures("installed")
def test_another_package_brings_a_source(tmp_path: Path) -> None:
    assert source_names() == ("folder", "hub", "bundled", "broken", "toy"), "hub stays ours"
    task = load_task(write_task(tmp_path, "sources.toy"))
    data = load_dataset(task, limit=2)
    assert (data.source, len(data.examples), data.rationale) == ("toy", 2, "none")
    rows = [
        (f"number {n}", {"id": str(n), "text": f"the number {n}", "label": n % 2}) for n in range(4)
    ]
    assert data.sha256 == hashlib.sha256(repr(rows).encode()).hexdigest()
    assert sources(task)["toy"] == "yes"
    none = load_task(write_task(tmp_path, "sources.toy", up_to="0"))
    assert sources(none)["toy"] == "there is no number below 0"
    facts = {"name": "mini", "version": 1, "kind": "classification", "split": "test", "n": 4}
    TaskFacts(**facts, source="toy", data_sha256="", data_checked=True, rationale="none")


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("table", "up_to", "expected"),
    [
        ("sources.toy", "'x'", "key 'sources': toy: key 'up_to': Input should be a valid integer"),
        ("sources.ty", "4", "no installed package brings a source 'ty'; there are broken, toy"),
        ("sources.broken", "4", "plugin 'broken' (no_such_module) does not import: ModuleNotFound"),
        ("toy", "4", "key 'toy' is unknown"),
    ],
)
def test_faults_of_a_foreign_source(tmp_path: Path, table: str, up_to: str, expected: str) -> None:
    with pytest.raises(FaithbenchError) as caught:
        load_task(write_task(tmp_path, table, up_to))
    assert expected in str(caught.value)


def test_a_record_names_a_source_that_is_there() -> None:
    facts = {"name": "mini", "version": 1, "kind": "classification", "split": "test", "n": 4}
    with pytest.raises(ValueError, match="Input should be 'folder', 'hub' or 'bundled'"):
        TaskFacts(**facts, source="toy", data_sha256="", data_checked=True, rationale="none")
