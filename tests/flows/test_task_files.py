"""Every task's loader: on made rows always, on the real ones where their folder is there."""

from __future__ import annotations

from pathlib import Path

import pytest

from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task, task_folder, task_names
from tests.support.tasks import N, put_folder, put_hub, use_hub_cache

REAL = Path(__file__).parents[3] / "shared" / "data"
TASKS = [load_task(name) for name in task_names()]
IN_FOLDERS = [task for task in TASKS if task.folder]
ON_HUB = [task for task in TASKS if task.hub]
CARD = ("sst2", "agnews", "evinf", "multirc", "semeval", "imdb", "squad")
ARTICLES = {"squad": (48, 14), "squad2": (35, 11)}
# Of each split: rows, rows of the second class, rows with a rationale, spans of rationales.
MARKED = {
    "litbank": [(5263, 2386, 2386, 4989), (935, 352, 352, 696), (2364, 1004, 1004, 2164)],
    "genia": [(7005, 1688, 1687, 2268), (952, 270, 270, 360), (1415, 305, 304, 426)],
    "cbt-like-ne": [(10846, 3679, 3679, 3769), (1089, 392, 392, 408), (821, 312, 312, 317)],
    "cbt-like-cn": [(17734, 3215, 3215, 3323), (2817, 552, 552, 584), (1961, 362, 362, 377)],
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FAITHBENCH_DATA", raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def test_the_tasks_there_are() -> None:
    assert set(task_names()) == {
        *CARD, "movies", "imdb_r", "squad2", "cola", "yelp", "mnli", "snli", "news20",
        "news20-body", "hatexplain", "qqp", "cbt-ne", "cbt-cn", "ace", "ere",
        "litbank", "genia", "cbt-like-ne", "cbt-like-cn", "mrpc", "cad-nli",
    }  # fmt: skip
    sides = {task.name: task.evidence for task in TASKS if task.evidence != "text"}
    assert sides == dict.fromkeys(("mnli", "snli", "qqp", "mrpc", "cad-nli"), "both")
    rationales = {task.name: task.rationale for task in TASKS if task.rationale != "none"}
    assert rationales == {
        "sst2": "proxy", "evinf": "human", "multirc": "human", "movies": "human",
        "imdb_r": "human", "hatexplain": "human", "ace": "proxy", "ere": "proxy",
        "cbt-ne": "proxy", "cbt-cn": "proxy", "litbank": "proxy", "genia": "proxy",
        "cbt-like-ne": "proxy", "cbt-like-cn": "proxy", "cad-nli": "proxy",
    }  # fmt: skip


@pytest.mark.parametrize("name", CARD)
def test_the_seven_of_the_card_have_a_bundled_sample_and_model(name: str) -> None:
    task = load_task(name)
    assert task.bundled is not None and task.bundled.splits == {"test": "test.jsonl"}
    assert task.models["bundled"].name == task.models["folder"].name == f"bundled:{name}"


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_every_file_says_what_it_pins(task) -> None:
    assert task.licence and task.papers
    assert task.rationale == "none" or task.rationale_note
    text = (task_folder() / f"{task.name}.toml").read_text(encoding="utf-8")
    assert text.startswith("# ") and all(len(line) <= 100 for line in text.splitlines())
    if task.folder and not task.folder.get:
        assert set(task.folder.sha256) == set(task.folder.splits.values())
        assert set(task.folder.rows) == set(task.folder.splits) == {"train", "dev", "test"}
    if task.hub and not task.hub.pinned:
        assert "pinned" in text, "what is not pinned is said to be so"


@pytest.mark.parametrize("task", IN_FOLDERS, ids=lambda task: task.name)
def test_made_rows_of_a_folder(task, tmp_path: Path) -> None:
    bare = put_folder(task, tmp_path)
    seen: dict[tuple[str, str], str] = {}
    for split, stem in task.folder.splits.items():
        found = load_dataset(bare, split=split, folder=tmp_path)
        assert (found.source, found.rationale, found.checked) == ("folder", task.rationale, False)
        for example in found.examples:
            assert seen.setdefault((stem, example.id), split) == split
            assert example.text.startswith("Row ") or task.folder.layout == "cloze"
            assert (example.text_b is None) == (task.kind == "classification")
            assert (example.rationale is None) == (task.rationale == "none")
            if example.rationale:
                assert [example.text[a:b] for a, b in example.rationale] == ["good"]
            if example.answers:
                assert (example.answers[0].text, example.label) == ("Row", 0)
    # Nothing is lost: each file's rows are in one split each.
    assert len(seen) == N * len(set(task.folder.splits.values()))


@pytest.mark.parametrize("task", ON_HUB, ids=lambda task: task.name)
def test_made_rows_through_the_hub_s_own_client(
    task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_hub(task, use_hub_cache(tmp_path, monkeypatch))
    for split in task.hub.splits:
        found = load_dataset(task, source="hub", split=split)
        assert (found.source, found.checked) == ("hub", task.hub.pinned)
        assert found.rationale == task.hub.rationale
        if task.hub.layout == "cloze":
            # Twelve rows of three sentences, of which one holds no candidate.
            assert len(found.examples) == 24
            first, second = found.examples[:2]
            assert (first.label, first.rationale, second.label) == (1, ((0, 3),), 0)
            assert (first.text_b, second.text) == ("XXXXX met Bob.", "Bob and Annie.")
        else:
            labels = len(task.labels)
            odd = task.hub.layout == "squad"
            assert [e.label for e in found.examples] == [
                (n % 2 if labels > 1 else 0) if odd else n % labels for n in range(11)
            ]
            assert all(e.text.startswith("A good film") for e in found.examples)
            answers = [a.text for e in found.examples for a in e.answers]
            assert answers == ["good"] * len(answers)
            assert len(answers) == (0 if not odd else 11 if labels == 1 else 6)


@pytest.mark.skipif(not REAL.is_dir(), reason="the real data are not on this machine")
@pytest.mark.parametrize("task", IN_FOLDERS, ids=lambda task: task.name)
def test_real_rows(task) -> None:
    if task.folder.get:
        pytest.skip("licensed by the LDC")
    texts: dict[str, set[str]] = {}
    for split, rows in task.folder.rows.items():
        found = load_dataset(task, split=split, folder=REAL)
        assert (len(found.examples), found.checked) == (rows, True)
        assert {e.label for e in found.examples} == set(range(len(task.labels)))
        marked = sum(e.rationale is not None for e in found.examples)
        assert (marked == 0) == (task.rationale == "none")
        for example in found.examples:
            for answer in example.answers:
                assert example.text.startswith(answer.text, answer.start)
        texts[split] = {e.text for e in found.examples}
    if len(set(task.folder.splits.values())) == 1:
        assert not texts["train"] & texts["test"] and not texts["dev"] & texts["test"]


@pytest.mark.skipif(not REAL.is_dir(), reason="the real data are not on this machine")
@pytest.mark.parametrize("name", MARKED)
def test_labels_and_rationales_that_are_made_from_the_files(name: str) -> None:
    counts = []
    for split in ("train", "dev", "test"):
        examples = load_dataset(load_task(name), split=split, folder=REAL).examples
        spans = [len(e.rationale or ()) for e in examples]
        positive = sum(e.label for e in examples)
        counts.append((len(examples), positive, sum(map(bool, spans)), sum(spans)))
    assert counts == MARKED[name]


@pytest.mark.skipif(not REAL.is_dir(), reason="the real data are not on this machine")
@pytest.mark.parametrize("name", ARTICLES)
def test_no_article_is_on_two_sides(name: str) -> None:
    from faithbench.data.jsonl import read_rows, share_of

    task = load_task(name)
    assert task.folder is not None
    path = task.folder.file(REAL, "test")
    derived = task.folder.derive["dev_full"]
    articles = {
        split: {row["article"] for _, row in share_of(read_rows(path), derived, split)}
        for split in task.folder.splits
    }
    total, in_test = ARTICLES[name]
    assert sum(map(len, articles.values())) == len(set().union(*articles.values())) == total
    assert len(articles["test"]) == in_test


@pytest.mark.skipif(not REAL.is_dir(), reason="the real data are not on this machine")
def test_bodies_are_the_ends_of_the_posts_and_in_the_same_splits() -> None:
    """Two posts of train have no body; the digest that cuts off dev is that of whole posts."""
    whole, cut = load_task("news20"), load_task("news20-body")
    lost = {}
    for split in ("train", "dev", "test"):
        examples = load_dataset(whole, split=split, folder=REAL).examples
        posts = {example.id: example.text for example in examples}
        bodies = load_dataset(cut, split=split, folder=REAL).examples
        assert all(posts[e.id].endswith(e.text) and posts[e.id] != e.text for e in bodies)
        lost[split] = len(posts) - len(bodies)
    assert lost == {"train": 2, "dev": 0, "test": 0}
