"""Task files: the one that is shipped, and what is said about faulty ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from faithbench.core.errors import FaithbenchError
from faithbench.data.tasks import Task, load_task, task_folder, task_names
from tests.support.builders import MINI

GOOD = (
    "\n"
    + MINI
    + """
[folder]
name = "mini"
splits = { test = "test" }

[hub]
dataset = "owner/mini"
revision = "0123456789012345678901234567890123456789"
splits = { test = "validation" }
columns = { text = "sentence", label = "label" }

[models.folder]
name = "bundled:mini"
"""
)


def write(folder: Path, text: str, name: str = "mini.toml") -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def message(folder: Path, text: str, name: str = "mini.toml") -> str:
    path = write(folder, text, name)
    with pytest.raises(FaithbenchError) as caught:
        load_task(path)
    said = str(caught.value)
    assert path in said
    assert "\n" not in said.replace("\\n", "")
    return said


def test_sst2_as_shipped() -> None:
    task = load_task("sst2")
    assert task.labels == ("negative", "positive")
    assert (task.kind, task.evidence, task.rationale) == ("classification", "text", "proxy")
    assert "treebank's word labels" in task.rationale_note
    assert task.folder is not None
    assert task.hub is not None
    assert task.bundled is not None
    assert set(task.folder.sha256) == {"train", "dev", "test"}
    assert task.hub.splits == {"train": "train", "test": "validation"}
    assert task.hub.columns == {"id": "idx", "text": "sentence", "label": "label"}
    assert task.bundled.rationale == "human"
    assert {source: model.name for source, model in task.models.items()} == {
        "folder": "bundled:sst2",
        "bundled": "bundled:sst2",
        "hub": "textattack/bert-base-uncased-SST-2",
    }


def test_every_shipped_task_loads() -> None:
    assert "sst2" in task_names()
    assert list(task_names()) == sorted(task_names())
    for name in task_names():
        assert load_task(name).name == name
    assert (task_folder() / "sst2.toml").is_file()


def test_a_path_is_read_and_the_task_is_frozen(tmp_path: Path) -> None:
    task = load_task(write(tmp_path, GOOD))
    assert task.models["folder"].revision is None
    assert (task.rationale, task.rationale_note, task.bundled) == ("none", "", None)
    with pytest.raises(ValidationError, match="frozen"):
        task.version = 2


def test_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(FaithbenchError, match=r"no task named 'sst-2'; did you mean 'sst2'\?"):
        load_task("sst-2")


def test_missing_file_names_it_and_the_tasks_there_are(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match=r"absent\.toml: No such file.*sst2"):
        load_task(str(tmp_path / "absent.toml"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('title = "Mini"', "", "key 'title' is missing; expected a text"),
        ('dataset = "owner/mini"', "", "key 'hub.dataset' is missing"),
        ('"bundled:mini"', '"bundled:mini"\nsize = 3', "key 'models.folder.size' is unknown"),
        (
            "version = 1",
            "version = 1\ntitel = 'x'",
            "key 'titel' is unknown; expected one of",
        ),
        ("version = 1", 'version = "1"', "key 'version': expected a valid integer, found '1'"),
        ("version = 1", "version = 0", "key 'version': expected greater than or equal to 1"),
        (
            '"classification"',
            '"regression"',
            "expected 'classification', 'pair', 'qa', 'multiple-choice' or",
        ),
        ('["no", "yes"]', '"no"', "key 'labels': expected a list, found 'no'"),
        ('["no", "yes"]', '["no", 1]', "key 'labels.1': expected a valid string, found 1"),
        ('["no", "yes"]', '["no"]', "expected two labels or more for a classification task"),
        ('["no", "yes"]', '["no", "no"]', "expected labels that differ from each other"),
        ('{ test = "test" }', '{ eval = "test" }', "key 'folder.splits.eval': expected to match"),
        ('{ test = "test" }', '{ test = "../x" }', "key 'folder.splits.test': expected to match"),
        ("0123456789" * 4, "main", "key 'hub.revision': expected to match pattern"),
        (', label = "label"', "", "key 'hub': columns must name the hub's column for label"),
        ('"classification"', '"pair"', "expected hub.columns.text_b"),
        ("licence", 'evidence = "both"\nlicence', "expected evidence = 'text'"),
        ("[hub]", '[[published]]\nmodel = "B"\n[hub]', "key 'published.0.metric' is missing"),
        ("[models.folder]", "[models.bundled]", "models.bundled is given, but the task has no"),
        ("[models.folder]", "[models.cloud]", "key 'models.cloud': expected 'folder', 'hub' or"),
        ('name = "mini"\nversion', 'name = "Mini"\nversion', "key 'name': expected to match"),
        ("version = 1", "version = = 1", "is not valid TOML: Invalid value (at line 3"),
    ],
)
def test_faults_name_file_key_and_expectation(
    tmp_path: Path, old: str, new: str, expected: str
) -> None:
    assert old in GOOD
    assert expected in message(tmp_path, GOOD.replace(old, new))


def test_sum_for_a_file_no_split_uses(tmp_path: Path) -> None:
    text = GOOD.replace("[hub]", f'[folder.sha256]\ntrain = "{"a" * 64}"\n[hub]')
    assert "key 'folder': sha256 names train, which no split uses" in message(tmp_path, text)


CUT = """[folder.derive.test]
by = "article"
shares = { test = 40, dev = 60 }

[hub]"""


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", None),
        ('by = "article"', "", "key 'folder.derive.test.by' is missing; expected a text"),
        ("40", "30", "key 'folder.derive.test': expected shares that add up to 100, found 90"),
        ("dev = 60", "dev = 40, train = 20", "derive.test shares out dev, test, train, but the"),
        ("derive.test]", "derive.all]", "key 'folder': derive names all, which no split uses"),
        (
            'by = "article"',
            'by = "article"\nat = 1',
            "'folder.derive.test.at' is unknown; expected",
        ),
        (
            "[folder.derive.test]",
            "[folder.rows]\ntrain = 3\n[folder.derive.test]",
            "rows names train",
        ),
    ],
)
def test_splits_cut_from_one_file(tmp_path: Path, old: str, new: str, expected: str | None) -> None:
    good = GOOD.replace('{ test = "test" }', '{ test = "test", dev = "test" }', 1)
    assert "splits dev, test are one file: add derive" in message(tmp_path, good)
    text = good.replace("[hub]", CUT)
    if expected is None:
        folder = load_task(write(tmp_path, text)).folder
        assert folder is not None and folder.derive["test"].shares == {"test": 40, "dev": 60}
    else:
        assert old in text
        assert expected in message(tmp_path, text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ('layout = "squad"\ncolumns = { text = "a", text_b = "b" }', "column for answers"),
        ('form = "cloze"\ncolumns = { text = "a" }', "for text_b and answers and options"),
        ('columns = { text = "a", label = "b", options = "c" }', "columns.options is not read"),
        ('columns = { text = "a", label = "b", body = "c" }', "key 'hub.columns.body': expected"),
    ],
)
def test_columns_of_each_layout(tmp_path: Path, columns: str, expected: str) -> None:
    text = GOOD.replace('columns = { text = "sentence", label = "label" }', columns)
    assert expected in message(tmp_path, text)


@pytest.mark.parametrize(
    ("revision", "pinned"),
    [
        (f'revision = "{"0123456789" * 4}"', True),
        ("", False),
        ('revision = "refs/convert/parquet"', False),
    ],
)
def test_only_a_commit_pins_the_hub(tmp_path: Path, revision: str, pinned: bool) -> None:
    text = GOOD.replace(f'revision = "{"0123456789" * 4}"', revision)
    source = load_task(write(tmp_path, text)).hub
    assert source is not None and source.pinned is pinned


def test_a_name_may_hold_an_underscore(tmp_path: Path) -> None:
    text = GOOD.replace('"mini"', '"mini_r"', 1)
    assert load_task(write(tmp_path, text, "mini_r.toml")).name == "mini_r"


def test_a_task_without_any_source(tmp_path: Path) -> None:
    text = GOOD[: GOOD.index("[folder]")] + "[models]\n"
    assert "expected at least one source: folder, hub, bundled" in message(tmp_path, text)


def test_the_file_must_bear_the_task_s_name(tmp_path: Path) -> None:
    said = message(tmp_path, GOOD, name="other.toml")
    assert "key 'name': expected 'other', the file's name, found 'mini'" in said


def test_bytes_that_are_no_toml(tmp_path: Path) -> None:
    for data in (b"name = '\xff'", b"version = " + b"9" * 5000):
        (tmp_path / "mini.toml").write_bytes(data)
        with pytest.raises(FaithbenchError, match=r"mini\.toml is not valid TOML"):
            load_task(str(tmp_path / "mini.toml"))


def test_schema_is_closed() -> None:
    assert Task.model_json_schema()["additionalProperties"] is False


def test_import_stays_light() -> None:
    code = (
        "import sys, faithbench.data.dataset; from faithbench.data.tasks import load_task; "
        "load_task('sst2');"
        "print({'torch', 'transformers', 'datasets', 'huggingface_hub'} & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "set()"
