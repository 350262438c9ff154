"""The wheel: what is in it, and that an installed copy works away from the source tree."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAME = f"faithbench-{tomllib.loads((ROOT / 'pyproject.toml').read_text())['project']['version']}"


def python(*words: object, cwd: Path, **variables: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(cwd), **variables}
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build from a copy that, like a working tree, holds caches and tests besides."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("out")
    for name in ("pyproject.toml", "README.md", "LICENSE", "NOTICE", ".gitignore"):
        shutil.copy(ROOT / name, tree)
    for name in ("faithbench", "tasks", "tests"):
        shutil.copytree(ROOT / name, tree / name)
    cache = tree / "faithbench" / "__pycache__"
    cache.mkdir(exist_ok=True)
    (cache / "left.cpython-311.pyc").write_bytes(b"")
    python("-m", "build", "--wheel", "--no-isolation", "--outdir", out, ".", cwd=tree)
    (made,) = out.glob("*.whl")
    return made


def test_wheel_holds_what_is_needed_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        size = sum(entry.file_size for entry in archive.infolist())
    assert wheel.name == f"{NAME}-py3-none-any.whl"
    bundled = {
        f"faithbench/data/bundled/sst2/{p.name}"
        for p in (ROOT / "faithbench/data/bundled/sst2").iterdir()
        if p.is_file()
    }
    assert len(bundled) == 5 and bundled <= names
    students = {
        p.relative_to(ROOT).as_posix()
        for p in (ROOT / "faithbench/data/bundled").glob("*/students/*/*")
    }
    assert students and students <= names
    assert "faithbench/py.typed" in names
    assert "faithbench/_tasks/sst2.toml" in names and "faithbench/cli/app.py" in names
    modules = {p.relative_to(ROOT).as_posix() for p in (ROOT / "faithbench").rglob("*.py")}
    assets = {p.relative_to(ROOT).as_posix() for p in (ROOT / "faithbench").rglob("assets/*")}
    assert len(assets) > 10 and assets | modules <= names
    tops = {name.split("/")[0] for name in names}
    assert tops == {"faithbench", f"{NAME}.dist-info"}
    assert [n for n in names if "__pycache__" in n or "golden" in n or n.endswith(".pyc")] == []
    # Ten models of 1.4 MB each, students of 2 MB each, and little else.
    assert size < 30_000_000


def test_installed_copy_lists_its_tasks(wheel: Path, tmp_path: Path) -> None:
    target, elsewhere = tmp_path / "site", tmp_path / "elsewhere"
    elsewhere.mkdir()
    quiet = ("--quiet", "--disable-pip-version-check", "--no-index")
    python("-m", "pip", "install", "--no-deps", *quiet, "--target", target, wheel, cwd=elsewhere)
    where = (
        "import faithbench, faithbench.data.tasks as t; print(faithbench.__file__, t.task_folder())"
    )
    found = python("-c", where, cwd=elsewhere, PYTHONPATH=str(target)).split()
    assert found == [f"{target}/faithbench/__init__.py", f"{target}/faithbench/_tasks"]
    listed = python("-m", "faithbench.cli", "list", "tasks", cwd=elsewhere, PYTHONPATH=str(target))
    assert "\nsst2 " in listed
    shipped = (
        "from faithbench.data.dataset import load_dataset; "
        "from faithbench.data.tasks import load_task; "
        "print(len(load_dataset(load_task('sst2'), source='bundled').examples))"
    )
    assert python("-c", shipped, cwd=elsewhere, PYTHONPATH=str(target)) == "140\n"
