"""The leaderboard's files: the same bytes from the same records, and nothing unescaped."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import replace_file
from faithbench.leaderboard import build
from faithbench.leaderboard.board import Board
from faithbench.leaderboard.build import differences, make_board, render, write_files
from tests.support.stores import store

UP = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.75]
NONE = ()
HOSTILE = "<script>alert(1)</script>|`x`[a](http://b)\\input{/etc/passwd}$1$_*\n\x1b[31m"


@pytest.fixture
def records(tmp_path: Path) -> Path:
    folder = tmp_path / "records"
    store(folder, "lime-11111111", {"aopc": UP, "lodds": UP})
    store(folder, "random-22222222", {"aopc": [0.0] * 7, "lodds": [None, *UP[1:]]})
    return folder


def test_all_files_and_what_they_say(records: Path, tmp_path: Path) -> None:
    files = {name: data.decode() for name, data in render(make_board(records, NONE)).items()}
    assert list(files) == [
        "README.md", "badges/lime.json", "badges/random.json", "index.html", "leaderboard.json",
        "leaderboard.schema.json", "tables/sst2.tex", "tasks/sst2.md", "manifest.json",
    ]  # fmt: skip
    page = files["tasks/sst2.md"]
    assert "| explainer | AOPC ↑ | LOdds ↓ |" in page and "**bundled**" in page
    # 2.85 / 7 = .407, and the best is bold; one value of the other is missing.
    assert "| lime | **.407** [" in page and "| random | .000 [.000, .000] | " in page
    assert "(1 skipped) |" in page and "| pairs tested | 1 | " in page
    assert "[all metrics, intervals and tests](tasks/sst2.md)" in files["README.md"]
    assert "(bundled)" in files["README.md"]
    tex = files["tables/sst2.tex"]
    assert r"\toprule" in tex and r"\textbf{.407}\textsuperscript{a}" in tex
    assert r"AOPC $\uparrow$" in tex and r"forward\_equivalents $\downarrow$" in tex


def test_json_is_the_board_and_fits_its_schema(records: Path) -> None:
    board = make_board(records, NONE)
    files = render(board)
    data = json.loads(files["leaderboard.json"])
    assert Board.model_validate_json(files["leaderboard.json"], strict=True) == board
    assert list(data) == sorted(data) and list(data["tables"][0]) == sorted(data["tables"][0])
    assert data["tables"][0]["columns"][0]["pairs"] == [
        ["lime", "random", "signed-rank", 7, 0.01562, 0.01562, 1.0, ""]
    ]
    schema = json.loads(files["leaderboard.schema.json"])
    assert set(schema["properties"]) == set(data)


def test_order_and_place_of_records_change_nothing(records: Path, tmp_path: Path) -> None:
    first = render(make_board(records, NONE))
    assert render(make_board(records, NONE)) == first
    # Written in another order, in a folder of another name.
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in sorted(records.iterdir(), reverse=True):
        shutil.copy(path, copy / path.name)
    assert render(make_board(copy, NONE)) == first
    # The same values in another order of examples give the same table.
    names = [f"e{i}" for i in range(7)]
    store(copy, "lime-11111111", {"aopc": UP[::-1], "lodds": UP[::-1]}, ids=names[::-1])
    turned = make_board(copy, NONE)
    assert turned.tables[0].columns == make_board(records, NONE).tables[0].columns
    assert turned.digest != make_board(records, NONE).digest


def test_check_finds_every_difference(records: Path, tmp_path: Path) -> None:
    out, files = tmp_path / "out", render(make_board(records, NONE))
    assert len(differences(files, out)) == 9 and differences(files, out)[0].endswith(": missing")
    assert write_files(files, out) == list(files) and differences(files, out) == []
    assert write_files(files, out) == [], "nothing is written twice"
    page = out / "tasks" / "sst2.md"
    page.write_bytes(page.read_bytes().replace(b".407", b".408", 1))
    assert differences(files, out) == [f"{page}: differs"]
    page.unlink()
    assert write_files(files, out) == ["tasks/sst2.md"] and differences(files, out) == []


def test_what_a_build_made_is_replaced_and_removed_by_the_next(
    records: Path, tmp_path: Path
) -> None:
    out, former = tmp_path / "out", render(make_board(records, NONE), "beside")
    write_files(former, out)
    (out / "tasks" / "notes.md").write_text("mine\n")
    store(records, "random-22222222", {"aopc": [0.1] * 7, "lodds": [None, *UP[1:]]})
    files = render(make_board(records, NONE))
    assert differences(files, out)[-1] == f"{out / 'data' / 'sst2.json'}: no longer belongs here"
    changed = write_files(files, out)
    assert changed[-1] == "data/sst2.json" and "tasks/sst2.md" in changed
    assert not (out / "data" / "sst2.json").exists() and differences(files, out) == []
    assert (out / "tasks" / "notes.md").read_text() == "mine\n"


@pytest.mark.parametrize("name", ["README.md", "index.html", "tasks/sst2.md", "manifest.json"])
@pytest.mark.parametrize("former", [True, False])
def test_what_no_build_made_is_not_overwritten(
    records: Path, tmp_path: Path, name: str, former: bool
) -> None:
    out, files = tmp_path / "out", render(make_board(records, NONE))
    if former:
        write_files(files, out)
    (out / name).parent.mkdir(parents=True, exist_ok=True)
    (out / name).write_text("{}\n")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(FaithbenchError) as caught:
        write_files(files, out)
    assert str(caught.value).startswith(f"{out / name} ") and "\n" not in str(caught.value)
    assert "would be overwritten" in str(caught.value) and "--overwrite" in str(caught.value)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert name in write_files(files, out, overwrite=True) and differences(files, out) == []


def test_a_pipe_or_link_in_the_place_of_a_page_is_refused(records: Path, tmp_path: Path) -> None:
    out, files = tmp_path / "out", render(make_board(records, NONE))
    write_files(files, out)
    page, notes = out / "index.html", tmp_path / "notes.html"
    page.rename(notes)
    page.symlink_to(notes)  # the very bytes, but elsewhere
    with pytest.raises(FaithbenchError, match=r"out/index\.html would be overwritten"):
        write_files(files, out)
    page.unlink()
    os.mkfifo(page)
    with pytest.raises(FaithbenchError, match=r"out/index\.html would be overwritten"):
        write_files(files, out)
    assert differences(files, out) == [f"{page}: differs"]


def test_a_build_that_was_killed_can_be_done_again(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write_files(render(make_board(records, NONE), "beside"), out)
    store(records, "random-22222222", {"aopc": [0.1] * 7, "lodds": [None, *UP[1:]]})
    files = render(make_board(records, NONE))
    for last in range(1, 5):
        written: list[Path] = []

        def dies(path: Path, data: bytes, written: list[Path] = written, last: int = last) -> None:
            if len(written) == last:
                raise KeyboardInterrupt
            written.append(path)
            replace_file(path, data)

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(build, "replace_file", dies)
            write_files(files, out)
        assert written[0] == out / "manifest.json"
        store(records, "random-22222222", {"aopc": [0.1 * last] * 7, "lodds": [None, *UP[1:]]})
        files = render(make_board(records, NONE))
    write_files(files, out)
    assert differences(files, out) == []
    assert {p.relative_to(out).as_posix() for p in out.rglob("*") if p.is_file()} == set(files)


def test_a_first_build_writes_each_file_once(
    records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else, killed at the last, it leaves a temporary file, and the next has nothing to write."""
    written: list[str] = []

    def noted(path: Path, data: bytes) -> None:
        written.append(path.relative_to(tmp_path / "out").as_posix())
        replace_file(path, data)

    monkeypatch.setattr(build, "replace_file", noted)
    files = render(make_board(records, NONE))
    write_files(files, tmp_path / "out")
    assert written[0] == "manifest.json" and sorted(written) == sorted(files)
    assert differences(files, tmp_path / "out") == []


def test_a_board_of_a_version_without_a_manifest_has_a_way_out(
    records: Path, tmp_path: Path
) -> None:
    out, files = tmp_path / "out", render(make_board(records, NONE))
    write_files(files, out)
    (out / "manifest.json").unlink()
    assert write_files(files, out) == ["manifest.json"], "what is the very same is adopted"
    (out / "manifest.json").unlink()
    for name in ("tasks/old.md", "tables/old.tex"):
        (out / name).write_bytes(files[name.replace("old", "sst2")])
    (out / "tasks" / "notes.md").write_text("mine\n")
    (out / "index.html").write_text("<p>of the version before")
    with pytest.raises(FaithbenchError, match="replace it with --overwrite"):
        write_files(files, out)
    assert write_files(files, out, overwrite=True) == [
        "index.html", "manifest.json", "tasks/old.md", "tables/old.tex",
    ]  # fmt: skip
    assert (out / "tasks" / "notes.md").exists() and differences(files, out) == []


def test_a_link_out_of_the_folder_is_not_followed(records: Path, tmp_path: Path) -> None:
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (elsewhere / "sst2.md").write_text("mine\n")
    (out / "tasks").symlink_to(elsewhere)
    with pytest.raises(FaithbenchError, match="out/tasks is a link, and files elsewhere would be"):
        write_files(render(make_board(records, NONE)), out)
    assert (elsewhere / "sst2.md").read_text() == "mine\n" and not (out / "index.html").exists()


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    for stem, name in (("lime-11111111", HOSTILE), ("random-22222222", f"{HOSTILE}2")):
        store(
            tmp_path, stem, {"aopc": UP}, settings={"k|<b>": HOSTILE},
            explainer={"name": name, "package": HOSTILE}, model={"name": HOSTILE},
            task={"name": HOSTILE, "split": HOSTILE},
            protocol={"erasure_token": HOSTILE},
        )  # fmt: skip
    files = render(make_board(tmp_path, NONE))
    for name, data in files.items():
        assert not set(name) & set("<>|`\n$*"), name
        text = data.decode()
        if name.endswith((".md", ".tex")):
            assert "\x1b" not in text
        if name.endswith(".md"):
            assert "<script" not in text and "<b>" not in text and "http://" not in text
            # In every table each line has as many cells as its heading.
            for block in text.split("\n\n"):
                rows = [line for line in block.splitlines() if line.startswith("| ")]
                cells = {line.replace("\\|", "").count("|") for line in rows}
                assert len(cells) <= 1, block
        if name.endswith(".tex"):
            body = [line for line in text.splitlines() if not line.startswith("%")]
            assert body and not any("\\input" in line for line in body)


def test_several_processes_make_the_same_board(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for task in ("sst2", "agnews", "imdb"):
        for index, name in enumerate(("lime", "random", "gradient")):
            values = {"aopc": [0.1 * index, 0.2, 0.3 + 0.1 * index]}
            store(tmp_path / task, f"{name}-1111111{index}", values, task={"name": task})
    alone = make_board(tmp_path, NONE)
    files = render(alone)
    monkeypatch.setattr(build, "PARALLEL_FROM", 1)
    assert make_board(tmp_path, NONE) == alone and render(alone) == files
    assert [table.id for table in alone.tables] == ["agnews", "imdb", "sst2"]
    store(tmp_path / "sst2", "lime-22222222", {"aopc": [0.1, 0.2, 0.3]})
    with pytest.raises(FaithbenchError, match="two records of lime under the same conditions"):
        make_board(tmp_path, NONE)
