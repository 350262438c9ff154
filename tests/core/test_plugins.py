"""Code from elsewhere: what of a file counts, and what is said of one that cannot be used."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from faithbench.core import plugins
from faithbench.core.errors import FaithbenchError
from faithbench.core.plugins import EXPLAINER_MARK, installed, marked_objects, module_of_file

FILE = """
from faithbench import explainer
from faithbench.core.errors import FaithbenchError

@explainer("mine")
class Mine: ...

@explainer("yours")
class Yours: ...

class Plain: ...
"""


def test_what_a_decorator_marked_is_listed_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "two.py"
    path.write_text(FILE)
    classes = marked_objects(module_of_file(path), EXPLAINER_MARK)
    assert [(cls.__name__, cls.faithbench_name) for cls in classes] == [
        ("Mine", "mine"),
        ("Yours", "yours"),
    ]


def test_a_file_is_imported_once(tmp_path: Path) -> None:
    path = tmp_path / "once.py"
    path.write_text(FILE)
    first = module_of_file(path)
    path.write_text("raise RuntimeError")
    assert module_of_file(path) is first


def test_what_a_file_imports_is_not_its_own(tmp_path: Path) -> None:
    (tmp_path / "first.py").write_text(FILE)
    module_of_file(tmp_path / "first.py")
    (tmp_path / "second.py").write_text(
        "from faithbench_plugin_first import Mine\n"
        "from faithbench import explainer\n"
        "@explainer('third')\n"
        "class Third: ...\n"
    )
    classes = marked_objects(module_of_file(tmp_path / "second.py"), EXPLAINER_MARK)
    assert [cls.__name__ for cls in classes] == ["Third"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1", "plugin file broken.py names no explainer and no metric"),
        ("import no_such_module", "plugin file broken.py does not import: ModuleNotFoundError"),
        ("1 / 0", "plugin file broken.py does not import: ZeroDivisionError: division by zero"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "broken.py"
    path.write_text(content)
    with pytest.raises(FaithbenchError, match=message):
        module_of_file(path)


def test_a_file_that_is_not_there_or_not_python_is_named(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"none\.py does not exist; check --plugin"):
        module_of_file(tmp_path / "none.py")
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(FaithbenchError, match=r"notes\.txt is not a Python file"):
        module_of_file(tmp_path / "notes.txt")


def test_entry_points_are_listed_without_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [EntryPoint("broken", "no_such_module:X", "some"), EntryPoint("root", "math:sqrt", "")]
    monkeypatch.setattr(plugins, "entry_points", lambda group: points if group == "some" else [])
    broken, root = installed("some")
    assert (broken.name, broken.origin, broken.version) == ("broken", "package unknown", "")
    assert root.load()(9) == 3
    with pytest.raises(FaithbenchError, match=r"plugin 'broken' \(no_such_module:X\) does not im"):
        broken.load()
    assert list(installed("other")) == []
