"""entry.toml: closed, short, and without invisible characters."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.submissions.entry import read_entry

GOOD = """
name = "my-x"
authors = ["Ada L.", "Zoë Ünal"]
paper = "https://aclanthology.org/D13-1170/"
licence = "Apache-2.0"
kind = "plugin"
explainer = "my-x"
[settings]
scale = 2.5
deep = true
"""
SCORES = """
name = "my-x"
authors = ["Ada"]
licence = "MIT"
kind = "attributions"
method = "length"
unit = "words"
[[scores]]
task = "sst2"
"""


def read(tmp_path: Path, text: str | bytes, name: str = "my-x"):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "entry.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_entry(folder)


def test_an_entry_is_read(tmp_path: Path) -> None:
    entry = read(tmp_path, GOOD)
    assert entry.authors == ("Ada L.", "Zoë Ünal")
    assert entry.settings == {"scale": 2.5, "deep": True}


def test_attributions_name_their_files(tmp_path: Path) -> None:
    (one,) = read(tmp_path, SCORES).scores
    assert (one.task, one.source, one.split, one.model) == ("sst2", "bundled", "test", None)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "my-x"', 'name = "other"', "key 'name' is 'other', the folder is 'my-x'"),
        ("[settings]", "extra = 1\n[settings]", "unknown key 'extra'"),
        ('authors = ["Ada L.", "Zoë Ünal"]', "authors = []", "key 'authors'"),
        ('"Ada L."', '"Ada\\u202eL"', "invisible character U\\+202E"),
        ('"Ada L."', '"Ada\\nL"', "invisible character U\\+000A"),
        ('"Ada L."', f'"{"x" * 301}"', "at most 300 characters"),
        ('"Ada L."', '" Ada"', "begins or ends with a space"),
        ("https://aclanthology.org/D13-1170/", "javascript:alert(1)", "looks like an address"),
        ("https://aclanthology.org/D13-1170/", "https://a.b/<script>", "looks like an address"),
        ('"plugin"', '"pickle"', "key 'kind'"),
        ('explainer = "my-x"', "", "needs the key 'explainer'"),
        ('explainer = "my-x"', 'explainer = "my-x"\nunit = "words"', "has no key 'unit'"),
        ("2.5", "inf", "not valid TOML for an entry"),
        ("2.5", "1979-05-27", "not valid TOML for an entry"),
        ("2.5", "[1, 2]", "key 'settings.scale"),
        ("scale = 2.5", '"__class__.x" = 1', "key 'settings"),
        ("licence = ", "licence ", "not valid TOML for an entry"),
    ],
)
def test_a_wrong_entry_is_one_line(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in GOOD
    with pytest.raises(FaithbenchError, match=message) as caught:
        read(tmp_path, GOOD.replace(old, new))
    assert "\n" not in str(caught.value)
    assert "entry.toml" in str(caught.value)


def test_attributions_have_no_code(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="has no key 'explainer'"):
        read(tmp_path, SCORES.replace("[[scores]]", 'explainer = "x"\n[[scores]]'))


def test_a_task_stands_once(tmp_path: Path) -> None:
    with pytest.raises(FaithbenchError, match="appears twice"):
        read(tmp_path, SCORES + '[[scores]]\ntask = "sst2"\n')


@pytest.mark.parametrize(
    "data", [b"\xff\xfe\x00", b"x = " + b"[" * 9000, b"\x80\x04]q\x00.", b"a" * 30_000]
)
def test_what_is_no_entry_at_all_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(FaithbenchError) as caught:
        read(tmp_path, data)
    assert "\n" not in str(caught.value)


def test_a_missing_entry_says_who_writes_one(tmp_path: Path) -> None:
    (tmp_path / "my-x").mkdir()
    with pytest.raises(FaithbenchError, match="`faithbench submission new` writes one"):
        read_entry(tmp_path / "my-x")
